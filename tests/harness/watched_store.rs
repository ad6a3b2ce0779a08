//! A store that counts what is written and can be told to fail or to wait.

use a2a_lambda::store::memory::MemoryStore;
use a2a_lambda::store::{
    Blobs, Committed, Keyed, ReadTasks, ReadThreads, RecordPage, RecordQuery, StoreError,
    TaskWrite, ThreadRecord, WriteTasks,
};
use a2a_lambda::task::{ContextId, KeyHash, Owner, TaskId, TaskRecord, TaskState, Timestamp};
use async_trait::async_trait;
use bytes::Bytes;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// Private text that no client may ever see.
pub const STORE_CANARY: &str = "canary-table-arn:aws:dynamodb:0001";

/// One commit the engine asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commit {
    /// The task.
    pub task: TaskId,
    /// The version it asked to write.
    pub version: u64,
    /// The state in it.
    pub state: TaskState,
}

/// The memory store, watched.
#[derive(Debug)]
pub struct WatchedStore {
    inner: MemoryStore,
    commits: Mutex<Vec<Commit>>,
    blobs: AtomicUsize,
    away: AtomicBool,
    open: watch::Sender<bool>,
}

impl Default for WatchedStore {
    fn default() -> Self {
        Self {
            inner: MemoryStore::new(),
            commits: Mutex::default(),
            blobs: AtomicUsize::new(0),
            away: AtomicBool::new(false),
            open: watch::Sender::new(true),
        }
    }
}

impl WatchedStore {
    /// Every commit asked for so far, stored or not.
    #[must_use]
    pub fn commits(&self) -> Vec<Commit> {
        self.list().clone()
    }

    /// Everything ever written or tried: commits and bytes.
    #[must_use]
    pub fn writes(&self) -> usize {
        self.list().len() + self.blobs.load(Ordering::SeqCst)
    }

    /// Whether commits are refused from now on.
    pub fn refuse_commits(&self, away: bool) {
        self.away.store(away, Ordering::SeqCst);
    }

    /// Lets commits wait until [`WatchedStore::release`].
    pub fn hold(&self) {
        self.open.send_replace(false);
    }

    /// Lets them through again.
    pub fn release(&self) {
        self.open.send_replace(true);
    }

    fn list(&self) -> MutexGuard<'_, Vec<Commit>> {
        self.commits.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl ReadTasks for WatchedStore {
    async fn load(
        &self,
        owner: &Owner,
        id: &TaskId,
        now: Timestamp,
    ) -> Result<Option<TaskRecord>, StoreError> {
        self.inner.load(owner, id, now).await
    }

    async fn list(&self, owner: &Owner, query: &RecordQuery) -> Result<RecordPage, StoreError> {
        self.inner.list(owner, query).await
    }

    async fn load_key(
        &self,
        owner: &Owner,
        key: &KeyHash,
        now: Timestamp,
    ) -> Result<Option<Keyed>, StoreError> {
        self.inner.load_key(owner, key, now).await
    }
}

#[async_trait]
impl WriteTasks for WatchedStore {
    async fn commit(&self, write: &TaskWrite) -> Result<Committed, StoreError> {
        self.list().push(Commit {
            task: write.record.id().clone(),
            version: write.record.version(),
            state: write.record.state(),
        });
        let mut open = self.open.subscribe();
        // The sender lives as long as the store, so waiting cannot fail.
        open.wait_for(|open| *open).await.ok();
        if self.away.load(Ordering::SeqCst) {
            return Err(StoreError::Unavailable(STORE_CANARY.to_owned()));
        }
        self.inner.commit(write).await
    }

    async fn heartbeat(
        &self,
        owner: &Owner,
        id: &TaskId,
        epoch: u64,
        lease_until: Timestamp,
    ) -> Result<bool, StoreError> {
        self.inner.heartbeat(owner, id, epoch, lease_until).await
    }
}

#[async_trait]
impl ReadThreads for WatchedStore {
    async fn load_thread(
        &self,
        owner: &Owner,
        id: &ContextId,
    ) -> Result<Option<ThreadRecord>, StoreError> {
        self.inner.load_thread(owner, id).await
    }
}

#[async_trait]
impl Blobs for WatchedStore {
    async fn put(&self, key: &str, bytes: Bytes) -> Result<(), StoreError> {
        self.blobs.fetch_add(1, Ordering::SeqCst);
        self.inner.put(key, bytes).await
    }

    async fn get(&self, key: &str) -> Result<Option<Bytes>, StoreError> {
        self.inner.get(key).await
    }
}
