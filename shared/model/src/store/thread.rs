//! Threads as a store keeps them: what is stored for a context.
//!
//! - `record`: the stored thread

mod record;

pub use record::{Expiring, ThreadRecord, ThreadState, ThreadStatus};

use super::StoreError;
use crate::task::{ContextId, Owner, Timestamp, WriteId};
use async_trait::async_trait;
use std::time::Duration;

/// A write of a thread, alone or with a task's commit.
#[derive(Debug, Clone, PartialEq)]
pub struct ThreadWrite {
    /// The whole next thread; its `version` is `expect` + 1. Its state is written if
    /// `state_version` is that version. 0 removes the stored state; an earlier version
    /// keeps it.
    pub record: ThreadRecord,
    /// The version it replaces; 0 = none stored.
    pub expect: u64,
    /// The id of the write.
    pub write: WriteId,
}

/// Reading threads.
#[async_trait]
pub trait ReadThreads: Send + Sync {
    /// The stored thread; `None` if absent or not `owner`'s. An expired thread is
    /// returned, because its reader must distinguish expired from unknown.
    ///
    /// # Errors
    /// [`StoreError`] when the store does not answer or the item is corrupt.
    async fn load_thread(
        &self,
        owner: &Owner,
        id: &ContextId,
    ) -> Result<Option<ThreadRecord>, StoreError>;

    /// The same without its state, which may be large.
    ///
    /// # Errors
    /// As [`ReadThreads::load_thread`].
    async fn load_thread_head(
        &self,
        owner: &Owner,
        id: &ContextId,
    ) -> Result<Option<ThreadRecord>, StoreError>;

    /// A page of `owner`'s live contexts, without their state, from an index, never
    /// by a scan. A context without a stored thread has version 0. One with a bare thread
    /// ([`ThreadRecord::is_bare`]) and no task is not listed. The index may lag
    /// and a page may be short; only `next` says where the list continues.
    ///
    /// # Errors
    /// [`StoreError`] when the store does not answer.
    async fn list_threads(
        &self,
        owner: &Owner,
        query: &ThreadQuery,
    ) -> Result<ThreadPage, StoreError>;
}

/// Which contexts to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadQuery {
    /// Continue after this position.
    pub after: Option<ThreadPosition>,
    /// At most this many.
    pub limit: usize,
    /// How long a context lives that has no stored thread.
    pub ttl: Duration,
    /// The time by which expiry is judged.
    pub now: Timestamp,
}

/// A position in a list of contexts: after the one with this last activity and id.
/// Newer positions compare greater.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ThreadPosition {
    /// The last activity.
    pub at: Timestamp,
    /// The context.
    pub context: ContextId,
}

/// A page of a caller's contexts.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ThreadPage {
    /// The contexts, newest activity first.
    pub threads: Vec<ThreadRecord>,
    /// Where the next page starts; `None` at the end.
    pub next: Option<ThreadPosition>,
}

/// A thread that a sweep may have to handle. It is a hint from an index that lags and
/// that a refresh does not write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpiringThread {
    /// The owner.
    pub owner: Owner,
    /// The context.
    pub context_id: ContextId,
    /// Which part is due.
    pub what: Expiring,
}

/// What was removed with an expired state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StateRemoved {
    /// Whether there was a state.
    pub state: bool,
    /// The number of objects removed with it.
    pub objects: usize,
}

/// Finding and removing expired states and deleted contexts, over all tenants.
#[async_trait]
pub trait SweepThreads: WriteThreads {
    /// How many shards the index has. Each shard is read separately.
    fn expiry_shards(&self) -> u32;

    /// Up to `limit` threads of a shard (the first is 0) that are due by `now`
    /// ([`ThreadRecord::swept_at`]), after the position `after`. The second value is
    /// the position of the next page, `None` at the end.
    ///
    /// # Errors
    /// [`StoreError`] when the store does not answer.
    async fn expiring_threads(
        &self,
        shard: u32,
        now: Timestamp,
        after: Option<String>,
        limit: usize,
    ) -> Result<(Vec<ExpiringThread>, Option<String>), StoreError>;

    /// Stores the current expiry of the state of `thread` in the index, so that no
    /// sweep finds the state earlier. A state of another write stays as it is.
    ///
    /// # Errors
    /// [`StoreError`] when the store does not answer.
    async fn note_expiry(&self, thread: &ThreadRecord) -> Result<(), StoreError>;

    /// Removes a state that no thread names, if its stored expiry is at or before
    /// `now`, and then its object.
    ///
    /// # Errors
    /// [`StoreError`] when the store does not answer. An object that cannot be
    /// removed is not an error: it is unreferenced and will be collected.
    async fn remove_state(
        &self,
        owner: &Owner,
        id: &ContextId,
        now: Timestamp,
    ) -> Result<StateRemoved, StoreError>;
}

/// Writing threads outside a task's commit.
#[async_trait]
pub trait WriteThreads: ReadThreads {
    /// Stores the thread if its stored version is `write.expect`; `false` if another
    /// write is stored.
    ///
    /// # Errors
    /// [`StoreError`]; after `Unavailable` the write may or may not be stored.
    async fn put_thread(&self, write: &ThreadWrite) -> Result<bool, StoreError>;

    /// Removes what is stored beside the deleted thread in `record`: its state and
    /// the store's objects for it, but nothing of a later write. A repeat removes
    /// what is left.
    ///
    /// # Errors
    /// [`StoreError`]; after `Unavailable` some of it may be left.
    async fn forget_state(&self, record: &ThreadRecord) -> Result<(), StoreError>;

    /// Removes a thread that is stored as in `record`, after what is stored beside
    /// it. Returns `true` if nothing of it is left; `false` if another write is
    /// stored.
    ///
    /// # Errors
    /// [`StoreError`]; after `Unavailable` the thread may or may not be stored.
    async fn remove_thread(&self, record: &ThreadRecord) -> Result<bool, StoreError>;
}
