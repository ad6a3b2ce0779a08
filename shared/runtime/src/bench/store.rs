//! The memory store, with each record written and read in its stored form, and
//! a place at which a turn can be held.

use crate::store::memory::MemoryStore;
use crate::store::{
    Blobs, Committed, Keyed, ReadTasks, ReadThreads, RecordPage, RecordQuery, StoreError,
    TaskWrite, ThreadRecord, ThreadWrite, WriteTasks, WriteThreads, stored,
};
use crate::task::{ContextId, KeyHash, Owner, TaskId, TaskRecord, Timestamp};
use async_trait::async_trait;
use bytes::Bytes;
use std::sync::{Mutex, PoisonError};
use tokio::sync::oneshot;

#[derive(Debug, Default)]
pub(super) struct BenchStore {
    memory: MemoryStore,
    brake: Mutex<Option<Brake>>,
}

/// Holds a turn when it has stored enough events.
#[derive(Debug)]
struct Brake {
    events: u64,
    /// The last event before the turn's own; known after its first commit,
    /// which opens it.
    base: Option<u64>,
    reached: oneshot::Sender<TaskId>,
    go_on: oneshot::Receiver<()>,
}

/// The other side of a held turn.
#[derive(Debug)]
pub(super) struct Stop {
    /// The task, when the turn is held.
    pub(super) reached: oneshot::Receiver<TaskId>,
    /// Lets it go on.
    pub(super) go_on: oneshot::Sender<()>,
}

impl BenchStore {
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
        let base = *brake.base.get_or_insert(record.last_seq);
        if record.last_seq < base + brake.events {
            self.set(Some(brake));
            return;
        }
        // A bench that is gone holds nobody.
        let _gone = brake.reached.send(record.id().clone());
        let _gone = brake.go_on.await;
    }
}

#[async_trait]
impl ReadTasks for BenchStore {
    async fn load(
        &self,
        owner: &Owner,
        id: &TaskId,
        now: Timestamp,
    ) -> Result<Option<TaskRecord>, StoreError> {
        let found = self.memory.load(owner, id, now).await?;
        found.map(|record| read_back(&record)).transpose()
    }

    async fn list(&self, owner: &Owner, query: &RecordQuery) -> Result<RecordPage, StoreError> {
        self.memory.list(owner, query).await
    }

    async fn load_key(
        &self,
        owner: &Owner,
        key: &KeyHash,
        now: Timestamp,
    ) -> Result<Option<Keyed>, StoreError> {
        self.memory.load_key(owner, key, now).await
    }
}

#[async_trait]
impl WriteTasks for BenchStore {
    async fn commit(&self, write: &TaskWrite) -> Result<Committed, StoreError> {
        let write = TaskWrite {
            record: read_back(&write.record)?,
            ..write.clone()
        };
        let committed = self.memory.commit(&write).await?;
        self.brake(&write.record).await;
        Ok(committed)
    }

    async fn heartbeat(
        &self,
        owner: &Owner,
        id: &TaskId,
        epoch: u64,
        lease_until: Timestamp,
    ) -> Result<bool, StoreError> {
        self.memory.heartbeat(owner, id, epoch, lease_until).await
    }
}

#[async_trait]
impl ReadThreads for BenchStore {
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

#[async_trait]
impl WriteThreads for BenchStore {
    async fn put_thread(&self, write: &ThreadWrite) -> Result<bool, StoreError> {
        self.memory.put_thread(write).await
    }
}

#[async_trait]
impl Blobs for BenchStore {
    async fn put(&self, key: &str, bytes: Bytes) -> Result<(), StoreError> {
        self.memory.put(key, bytes).await
    }

    async fn get(&self, key: &str) -> Result<Option<Bytes>, StoreError> {
        self.memory.get(key).await
    }
}

/// The record as another instance would read it.
fn read_back(record: &TaskRecord) -> Result<TaskRecord, StoreError> {
    stored::task_of_text(&stored::task_text(record)?)
}
