//! The ends of turns that could not read what they needed.

use crate::auth::Caller;
use crate::engine::doubles::Paused;
use crate::engine::{Engine, Policy, RandomIds, Services};
use crate::prelude::*;
use crate::store::memory::MemoryStore;
use crate::store::queue::{Ack, Receipt, WorkItem};
use crate::store::{ReadTasks, ReadThreads, StoreError, ThreadRecord, ThreadWrite, WriteThreads};
use crate::task::{
    ContextId, Generation, Message, Metadata, Owner, Part, Refusal, SendCommand, SendMode, Sent,
    Subject, TaskId, TaskRecord, TaskState, TenantId, Timestamp,
};
use async_trait::async_trait;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Conversations that can be out of reach.
#[derive(Default)]
struct Threads {
    memory: MemoryStore,
    away: AtomicBool,
}

#[async_trait]
impl ReadThreads for Threads {
    async fn load_thread(
        &self,
        owner: &Owner,
        id: &ContextId,
    ) -> Result<Option<ThreadRecord>, StoreError> {
        if self.away.load(Ordering::SeqCst) {
            return Err(StoreError::Unavailable("away".to_owned()));
        }
        self.memory.load_thread(owner, id).await
    }
}

#[async_trait]
impl WriteThreads for Threads {
    async fn put_thread(&self, write: &ThreadWrite) -> Result<bool, StoreError> {
        self.memory.put_thread(write).await
    }
}

/// Reads its conversation, and gives up if it cannot, or if it is told to.
#[skill(id = "recall", tags = ["test"], input_modes = ["text/plain"])]
struct Recalls;

impl SkillHandler for Recalls {
    type Input = String;
    type Output = String;

    async fn on_request(
        &self,
        cx: &mut TaskContext<'_>,
        input: String,
    ) -> AgentResult<OnRequestResult<String>> {
        let read = cx.thread().await;
        if input == "anyway" {
            return OnRequestResult::done("read or not".to_owned());
        }
        read?;
        OnRequestResult::done("read".to_owned())
    }
}

/// The one message of a queue.
struct Only;

#[async_trait]
impl Receipt for Only {
    async fn hide(&self, _: Duration) -> Result<(), StoreError> {
        Ok(())
    }
}

struct World {
    engine: Engine,
    store: Arc<MemoryStore>,
    threads: Arc<Threads>,
}

impl World {
    fn away() -> Self {
        let store = Arc::new(MemoryStore::new());
        let threads = Arc::new(Threads::default());
        threads.away.store(true, Ordering::SeqCst);
        let services = Services {
            tasks: store.clone(),
            threads: threads.clone(),
            blobs: store.clone(),
            clock: Arc::new(Paused::new()),
            ids: Arc::new(RandomIds),
            model: None,
        };
        let agent = Agent::builder("test").skill(Recalls).build().unwrap();
        Self {
            engine: Engine::new(Arc::new(agent), services, Policy::default()),
            store,
            threads,
        }
    }

    async fn send(&self, text: &str, mode: SendMode) -> Result<Sent, Refusal> {
        let command = SendCommand {
            message: Message::from_user("m-1", vec![Part::text(text)]),
            client_task_id: None,
            mode,
            history_length: 100,
            accepted_output_modes: Vec::new(),
            push: None,
            metadata: Metadata::new(),
            generation: Generation::V10,
            idempotency_key: None,
        };
        let caller = Caller::behind(&owner(), None);
        let sent = self.engine.send(&caller, command, None).await;
        sent.map_err(|error| error.refusal)
    }

    async fn work(&self, task: &TaskId) -> (Ack, TaskRecord) {
        let item = WorkItem {
            owner: owner(),
            task: task.clone(),
            turn: 1,
            dispatch: 1,
        };
        let ack = self.engine.work(&item, &Only, None).await;
        let now = Timestamp::default();
        let found = self.store.load(&owner(), task, now).await.unwrap();
        (ack, found.unwrap())
    }
}

fn owner() -> Owner {
    Owner {
        tenant: TenantId::parse("acme").unwrap(),
        subject: Subject::parse("ann").unwrap(),
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_was_away_while_the_skill_read_its_conversation_fails_no_task() {
    let world = World::away();
    let Ok(Sent::Task(task)) = world.send("hi", SendMode::Immediate).await else {
        panic!("no task");
    };
    let (ack, record) = world.work(&task.id).await;
    assert_eq!((ack, record.state()), (Ack::Keep, TaskState::Working));
    tokio::time::advance(Duration::from_secs(120)).await;
    world.threads.away.store(false, Ordering::SeqCst);
    let (ack, record) = world.work(&task.id).await;
    assert_eq!((ack, record.state()), (Ack::Delete, TaskState::Completed));
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_conversation_is_out_of_reach_may_be_tried_again() {
    let world = World::away();
    let sent = world.send("hi", SendMode::Blocking).await;
    assert!(matches!(sent, Err(Refusal::Unavailable { .. })), "{sent:?}");
    // A skill that can do without it is not held up.
    let sent = world.send("anyway", SendMode::Blocking).await;
    let Ok(Sent::Task(task)) = sent else {
        panic!("{sent:?}");
    };
    assert_eq!(task.status.state, TaskState::Completed);
}
