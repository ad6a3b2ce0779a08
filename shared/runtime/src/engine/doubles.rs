//! Provides what the tests of several modules share: a paused clock, a queue, a caller,
//! what the caller sends, and the services of an engine.

use super::{Engine, Services};
use crate::auth::Caller;
use crate::engine::CallBudget;
use crate::store::StoreError;
use crate::store::memory::{MemoryBlobs, MemoryStore};
use crate::store::queue::{
    OpenTask, PushItem, PushQueue, Receipt, WorkItem, WorkMessage, WorkQueue,
};
use crate::store::records::Records;
use crate::store::table::Table;
use crate::task::{
    Generation, Message, Metadata, Owner, Part, SendCommand, SendMode, SendResponse, Subject, Task,
    TaskRecord, TenantId, Timestamp,
};
use crate::testing::TestClock;
use async_trait::async_trait;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The owner of the tasks of [`ann`].
pub(super) fn owner() -> Owner {
    Owner {
        tenant: TenantId::parse("acme").unwrap(),
        subject: Subject::parse("ann").unwrap(),
    }
}

/// The caller of most tests.
pub(super) fn ann() -> Caller {
    Caller::behind(&owner(), None)
}

/// The services of an engine over this store. The clock shows [`START`].
pub(super) fn services(store: &MemoryStore) -> Services {
    Services {
        clock: Arc::new(clock()),
        ..Services::new(store.records.clone(), store.blobs.clone())
    }
}

/// The same over this table, with bytes in memory.
pub(super) fn services_over(table: Arc<dyn Table>) -> Services {
    let blobs = Arc::<MemoryBlobs>::default();
    Services {
        records: Records::new(table).with_blobs(blobs.clone()),
        blobs,
        ..services(&MemoryStore::new())
    }
}

/// The tasks that a sweep finds open, of all shards.
pub(super) async fn open_tasks(store: &MemoryStore) -> Vec<OpenTask> {
    let (mut open, sweep) = (Vec::new(), store.records.sweep());
    for shard in 0..sweep.open_shards() {
        let (page, _) = sweep.open_tasks(shard, None, 100).await.unwrap();
        open.extend(page);
    }
    open
}

/// The send of a new message with this text.
pub(super) fn send_command(text: &str, mode: SendMode) -> SendCommand {
    SendCommand {
        message: Message::from_user("m-1", vec![Part::text(text)]),
        client_task_id: None,
        mode,
        history_length: 100,
        accepted_output_modes: Vec::new(),
        push: None,
        metadata: Metadata::new(),
        generation: Generation::V10,
        idempotency_key: None,
    }
}

/// Sends as `caller`, without a deadline, and returns the task.
pub(super) async fn sent_task(engine: &Engine, caller: &Caller, command: SendCommand) -> Task {
    match engine
        .send(caller, command, CallBudget::default())
        .await
        .unwrap()
    {
        SendResponse::Task(task) => *task,
        SendResponse::Message(message) => panic!("{message:?}"),
    }
}

/// The queue message of the last intent of a task.
pub(super) fn work_item(record: &TaskRecord) -> WorkItem {
    WorkItem {
        owner: record.owner.clone(),
        task: record.id.clone(),
        incarnation: record.incarnation.clone(),
        turn: record.turn,
        dispatch: record.last_dispatch,
    }
}

/// When the tests of the engine begin.
pub(super) const START: Timestamp = Timestamp::from_millis(1_700_000_000_000);

/// A clock that follows Tokio's, which the test runtime pauses.
pub(super) fn clock() -> TestClock {
    TestClock::following(START, 1)
}

/// A queue and the receipt of each message in it. `items` are its messages, `waits` their
/// delays, `hidden` the times for which messages were hidden, and `receives` how often each
/// message has been received.
pub(super) struct FakeQueue<I> {
    pub(super) receives: AtomicU32,
    pub(super) items: Mutex<Vec<I>>,
    pub(super) waits: Mutex<Vec<Duration>>,
    pub(super) hidden: Mutex<Vec<Duration>>,
}

impl<I> Default for FakeQueue<I> {
    fn default() -> Self {
        Self {
            receives: AtomicU32::new(1),
            items: Mutex::default(),
            waits: Mutex::default(),
            hidden: Mutex::default(),
        }
    }
}

impl<I: Clone> FakeQueue<I> {
    fn take(&self, items: &[I]) -> Vec<bool> {
        self.items.lock().unwrap().extend_from_slice(items);
        vec![true; items.len()]
    }
}

#[async_trait]
impl WorkQueue for FakeQueue<WorkItem> {
    async fn send(&self, messages: &[WorkMessage]) -> Result<Vec<bool>, StoreError> {
        let (items, delays): (Vec<_>, Vec<_>) = messages
            .iter()
            .map(|it| (it.item.clone(), it.delay))
            .unzip();
        self.waits.lock().unwrap().extend(delays);
        Ok(self.take(&items))
    }

    async fn waiting(&self) -> Result<usize, StoreError> {
        Ok(0)
    }
}

#[async_trait]
impl PushQueue for FakeQueue<PushItem> {
    async fn send(&self, items: &[PushItem], wait: Duration) -> Result<Vec<bool>, StoreError> {
        self.waits.lock().unwrap().push(wait);
        Ok(self.take(items))
    }
}

#[async_trait]
impl<I: Send> Receipt for FakeQueue<I> {
    async fn hide(&self, time: Duration) -> Result<(), StoreError> {
        self.hidden.lock().unwrap().push(time);
        Ok(())
    }

    fn receives(&self) -> u32 {
        self.receives.load(Ordering::SeqCst)
    }
}
