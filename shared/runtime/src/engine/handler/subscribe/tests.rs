//! A waiting call belongs to one task, not to its id.

use crate::auth::Caller;
use crate::engine::CallBudget;
use crate::engine::doubles::clock;
use crate::engine::{Engine, Policy, RandomIds, Services};
use crate::prelude::*;
use crate::store::memory::MemoryStore;
use crate::store::wrap::WrapTasks;
use crate::store::{ReadTasks as _, StoreError, Tail, WriteTasks};
use crate::task::{
    A2aError, CancelCommand, Generation, Message, Metadata, Owner, Part, SendCommand, SendMode,
    Subject, TaskId, TaskRecord, TenantId, Timestamp,
};
use async_trait::async_trait;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Answers a read of the event log with this, as if it had come before a deletion.
#[derive(Default)]
struct LateTail {
    memory: MemoryStore,
    tail: Mutex<Option<Tail>>,
}

#[async_trait]
impl WrapTasks for LateTail {
    fn tasks(&self) -> &dyn WriteTasks {
        &self.memory
    }

    async fn tail(
        &self,
        owner: &Owner,
        id: &TaskId,
        after: u64,
        now: Timestamp,
    ) -> Result<Option<Tail>, StoreError> {
        let late = self.tail.lock().unwrap().clone();
        if late.is_some() {
            return Ok(late);
        }
        self.memory.records.tail(owner, id, after, now).await
    }
}

/// Says that it is done.
#[skill(id = "work", tags = ["test"], background = true)]
async fn work(_: &mut TaskContext<'_>, _: Content) -> AgentResult<String> {
    Ok("done".to_owned())
}

fn caller() -> Caller {
    let owner = Owner {
        tenant: TenantId::parse("acme").unwrap(),
        subject: Subject::parse("ann").unwrap(),
    };
    Caller::behind(&owner, None)
}

fn id() -> TaskId {
    TaskId::parse("client-1").unwrap()
}

async fn send(engine: &Engine, store: &LateTail) -> TaskRecord {
    let command = SendCommand {
        message: Message::from_user("m-1", vec![Part::text("go")]),
        client_task_id: Some(id()),
        mode: SendMode::Immediate,
        history_length: 10,
        accepted_output_modes: Vec::new(),
        push: None,
        metadata: Metadata::new(),
        generation: Generation::V01,
        idempotency_key: None,
    };
    engine
        .send(&caller(), command, CallBudget::default())
        .await
        .unwrap();
    let owner = caller().owner;
    let found = store
        .memory
        .records
        .load(&owner, &id(), Timestamp::default())
        .await;
    found.unwrap().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_waiting_call_shows_no_later_task_of_the_same_id() {
    let store = Arc::new(LateTail::default());
    let memory = Arc::new(MemoryStore::new());
    let services = Services {
        tasks: store.clone(),
        threads: memory.clone(),
        blobs: memory,
        clock: Arc::new(clock()),
        ids: Arc::new(RandomIds),
        model: None,
    };
    let agent = Agent::builder("test").skill(work).build().unwrap();
    let engine = Engine::new(Arc::new(agent), services, Policy::default());

    let first = send(&engine, &store).await;
    let cancel = CancelCommand {
        id: id(),
        metadata: Metadata::new(),
    };
    engine.cancel(&caller(), &cancel).await.unwrap();
    let (owner, now) = (caller().owner, Timestamp::default());
    let tail = store
        .memory
        .records
        .tail(&owner, &id(), 0, now)
        .await
        .unwrap();
    engine.delete_task(&caller(), &id()).await.unwrap();
    let second = send(&engine, &store).await;
    assert!(!second.is_same_task(&first));

    // The wait reads the log of the first task, and then the record of the second.
    *store.tail.lock().unwrap() = tail;
    let until = engine.reader.clock.now().plus(Duration::from_secs(5));
    let waited = engine.reader.rested(&caller(), first, until).await;
    assert_eq!(waited.unwrap_err().a2a_error, A2aError::TaskNotFound);
}
