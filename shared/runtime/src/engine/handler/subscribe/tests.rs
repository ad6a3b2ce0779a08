//! A waiting call belongs to one task, not to its id.

use crate::auth::Caller;
use crate::engine::CallBudget;
use crate::engine::doubles::services_over;
use crate::engine::{Engine, Policy};
use crate::prelude::*;
use crate::store::memory::MemoryStore;
use crate::store::table::{Query, QueryPage, ReadTable as _, Table};
use crate::store::{StoreError, keys};
use crate::task::{
    A2aError, CancelCommand, Generation, Message, Metadata, Owner, Part, SendCommand, SendMode,
    Subject, TaskId, TaskKey, TaskRecord, TenantId, Timestamp,
};
use crate::testing::{TableHooks, TableLayer};
use async_trait::async_trait;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Answers a read of the event log with this, as if it had come before a deletion.
#[derive(Debug, Default)]
struct LateTail {
    tail: Mutex<Option<QueryPage>>,
}

#[async_trait]
impl TableHooks for LateTail {
    async fn query(&self, table: &dyn Table, query: &Query) -> Result<QueryPage, StoreError> {
        let reads_log = keys::task_key_of(query.partition.key()).is_some();
        let late = self.tail.lock().unwrap().clone();
        match late.filter(|_| reads_log) {
            Some(late) => Ok(late),
            None => table.query(query).await,
        }
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

async fn send(engine: &Engine, store: &MemoryStore) -> TaskRecord {
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
        .records
        .load(&owner, &id(), Timestamp::default())
        .await;
    found.unwrap().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_waiting_call_shows_no_later_task_of_the_same_id() {
    let store = MemoryStore::new();
    let layer = TableLayer::new(store.table.clone(), LateTail::default());
    let services = services_over(layer.clone());
    let agent = Agent::builder("test").skill(work).build().unwrap();
    let engine = Engine::new(Arc::new(agent), services, Policy::default());

    let first = send(&engine, &store).await;
    let cancel = CancelCommand {
        id: id(),
        metadata: Metadata::new(),
    };
    engine.tasks.cancel(&caller(), &cancel).await.unwrap();
    let task = TaskKey::new(&caller().owner, &id());
    let log = keys::task_items(&task).into();
    let tail = store.table.query(&log).await.unwrap();
    engine.tasks.delete_task(&caller(), &id()).await.unwrap();
    let second = send(&engine, &store).await;
    assert!(!second.is_same_task(&first));

    // The wait reads the log of the first task, and then the record of the second.
    *layer.hooks.tail.lock().unwrap() = Some(tail);
    let until = engine.reader.clock.now().plus(Duration::from_secs(5));
    let waited = engine.reader.wait_for_rest(&caller(), first, until).await;
    assert_eq!(waited.unwrap_err().a2a_error, A2aError::TaskNotFound);
}
