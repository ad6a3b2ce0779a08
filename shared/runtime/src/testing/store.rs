//! The memory store behind a bench: it encodes and decodes each record as
//! DynamoDB would, and can hold a turn after a number of its events.

use crate::store::memory::MemoryStore;
use crate::store::wrap::{WrapBlobs, WrapTasks, WrapThreads};
use crate::store::{
    Blobs, Committed, ReadThreads, StoreError, TaskWrite, ThreadRecord, WriteTasks, WriteThreads,
    stored,
};
use crate::task::{ContextId, Owner, TaskId, TaskRecord};
use async_trait::async_trait;
use std::sync::{Mutex, PoisonError};
use tokio::sync::oneshot;

/// The store of one bench.
#[derive(Debug, Default)]
pub(super) struct TestStore {
    memory: MemoryStore,
    brake: Mutex<Option<Brake>>,
}

/// Holds the commit of a turn once the turn has stored `events` events.
#[derive(Debug)]
struct Brake {
    events: u64,
    /// The number of the last event before those that count. The turn's first commit,
    /// which opens it, sets this.
    base: Option<u64>,
    reached: oneshot::Sender<TaskId>,
    go_on: oneshot::Receiver<()>,
}

/// The test's side of a held turn.
#[derive(Debug)]
pub(super) struct Stop {
    /// Receives the task's id when the turn is held.
    pub(super) reached: oneshot::Receiver<TaskId>,
    /// Releases the turn.
    pub(super) go_on: oneshot::Sender<()>,
}

impl TestStore {
    /// Holds the next turn after this many of its events.
    pub(super) fn stop_after(&self, events: u64) -> Stop {
        let (reached, on_reached) = oneshot::channel();
        let (on_go, go_on) = oneshot::channel();
        self.set(Some(Brake {
            events,
            base: None,
            reached,
            go_on,
        }));
        Stop {
            reached: on_reached,
            go_on: on_go,
        }
    }

    fn set(&self, brake: Option<Brake>) -> Option<Brake> {
        let mut held = self.brake.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut held, brake)
    }

    async fn brake(&self, record: &TaskRecord) {
        let Some(mut brake) = self.set(None) else {
            return;
        };
        let base = *brake.base.get_or_insert(record.last_seq());
        if record.last_seq() < base + brake.events {
            self.set(Some(brake));
            return;
        }
        // Both fail when the bench has been dropped: then the turn is not held.
        let _gone = brake.reached.send(record.id().clone());
        let _gone = brake.go_on.await;
    }
}

#[async_trait]
impl WrapTasks for TestStore {
    fn tasks(&self) -> &dyn WriteTasks {
        &self.memory
    }

    async fn commit(&self, write: &TaskWrite) -> Result<Committed, StoreError> {
        let write = TaskWrite {
            record: read_back(&write.record)?,
            ..write.clone()
        };
        let committed = self.memory.commit(&write).await?;
        self.brake(&write.record).await;
        Ok(committed)
    }
}

#[async_trait]
impl WrapThreads for TestStore {
    fn threads(&self) -> &dyn WriteThreads {
        &self.memory
    }

    async fn load_thread(
        &self,
        owner: &Owner,
        id: &ContextId,
    ) -> Result<Option<ThreadRecord>, StoreError> {
        let found = self.memory.load_thread(owner, id).await?;
        let read_back = |record| stored::decode_thread(stored::encode_thread(&record));
        found.map(read_back).transpose()
    }
}

impl WrapBlobs for TestStore {
    fn blobs(&self) -> &dyn Blobs {
        &self.memory
    }
}

/// The record after a round trip through its stored form.
fn read_back(record: &TaskRecord) -> Result<TaskRecord, StoreError> {
    stored::task_of_text(&stored::task_text(record)?)
}
