//! The storage traits for tasks.

use super::queue::OpenTask;
use super::{
    Committed, Keyed, ProjectedTask, Projection, RecordPage, RecordQuery, StoreError, Tail,
    TaskWrite,
};
use crate::task::{ContextId, KeyHash, Owner, TaskId, TaskRecord, Timestamp};
use async_trait::async_trait;

/// Reading tasks. Every method takes an [`Owner`] and returns only that owner's
/// tasks; the tasks of others look absent.
#[async_trait]
pub trait ReadTasks: Send + Sync {
    /// The task, read consistently; `None` if absent, expired or not `owner`'s.
    ///
    /// # Errors
    /// [`StoreError`] when the store does not answer or the item is corrupt.
    async fn load(
        &self,
        owner: &Owner,
        id: &TaskId,
        now: Timestamp,
    ) -> Result<Option<TaskRecord>, StoreError>;

    /// The task without the content that grows, read consistently; `None` as for
    /// [`ReadTasks::load`]. State, versions, lease, expiry and push config ids are
    /// always present. Messages, artifacts, events and saved data may be missing;
    /// then [`is_partial`](crate::task::TaskFields::is_partial) is true and a store refuses a commit on top of
    /// the record.
    ///
    /// # Errors
    /// [`StoreError`] when the store does not answer or the item is corrupt.
    async fn head(
        &self,
        owner: &Owner,
        id: &TaskId,
        now: Timestamp,
    ) -> Result<Option<TaskRecord>, StoreError>;

    /// The heads of those of `tasks` for which [`ReadTasks::head`] returns one, in no
    /// order. A corrupt head is logged and left out.
    ///
    /// # Errors
    /// [`StoreError`] when the store does not answer.
    async fn heads(
        &self,
        tasks: &[OpenTask],
        now: Timestamp,
    ) -> Result<Vec<TaskRecord>, StoreError>;

    /// A head with the content of `projection`, read consistently; `None` if the task no
    /// longer exists. The result may be newer than the head.
    ///
    /// # Errors
    /// [`StoreError`] when the store does not answer or an item is corrupt.
    async fn project(
        &self,
        head: TaskRecord,
        projection: Projection,
        now: Timestamp,
    ) -> Result<Option<ProjectedTask>, StoreError>;

    /// The task's state and the events after number `after`, read consistently;
    /// `None` as for [`ReadTasks::load`]. `u64::MAX` requests no events. Each stream
    /// that follows a task polls this method.
    ///
    /// # Errors
    /// [`StoreError`] when the store does not answer or the item is corrupt.
    async fn tail(
        &self,
        owner: &Owner,
        id: &TaskId,
        after: u64,
        now: Timestamp,
    ) -> Result<Option<Tail>, StoreError>;

    /// A page of `owner`'s tasks, from an index, never by a scan. The index may lag;
    /// each record of the page is the stored head. A context of at most
    /// [`IN_CONTEXT`](super::IN_CONTEXT) tasks is listed without the index: list and
    /// count are exact.
    ///
    /// # Errors
    /// [`StoreError`] when the store does not answer.
    async fn list(&self, owner: &Owner, query: &RecordQuery) -> Result<RecordPage, StoreError>;

    /// The send and the task of an idempotency key of `owner`, read consistently;
    /// `None` if the key is free.
    ///
    /// # Errors
    /// [`StoreError`] when the store does not answer or an item is corrupt.
    async fn load_key(
        &self,
        owner: &Owner,
        key: &KeyHash,
        now: Timestamp,
    ) -> Result<Option<Keyed>, StoreError>;
}

/// Writing tasks.
#[async_trait]
pub trait WriteTasks: ReadTasks {
    /// Stores one commit if its conditions hold: all of it or nothing.
    ///
    /// Before it returns [`Committed::Conflict`], it looks for the write id in the
    /// stored record. A write that was applied but whose response was lost is
    /// [`Committed::Done`].
    ///
    /// # Errors
    /// [`StoreError`]; after `Unavailable` the write may or may not be stored.
    async fn commit(&self, write: &TaskWrite) -> Result<Committed, StoreError>;

    /// Makes the context of a task that is not stored yet know it, until `until`. A pointer
    /// without its task shows nothing anywhere.
    ///
    /// # Errors
    /// [`StoreError`]; then the task must not be stored.
    async fn put_pointer(&self, record: &TaskRecord, until: Timestamp) -> Result<(), StoreError>;

    /// The task `id` of `owner`, if it has expired by `now` and its item still
    /// exists. Only the content in the item itself is read, because the children may
    /// be gone.
    ///
    /// # Errors
    /// [`StoreError`] when the store does not answer or the item is corrupt.
    async fn ended_task(
        &self,
        owner: &Owner,
        id: &TaskId,
        now: Timestamp,
    ) -> Result<Option<TaskRecord>, StoreError>;

    /// A page of everything stored in a context of `owner`, read consistently: up to
    /// `limit` heads after the position `after`, newest creation first, expired
    /// tasks included. The task that the context is named after comes last.
    /// The second value is the position of the next page, `None` at the end. A page
    /// may be short.
    /// # Errors
    /// [`StoreError`] when the store does not answer; [`StoreError::Refused`] for a
    /// malformed position.
    async fn tasks_in(
        &self,
        owner: &Owner,
        context: &ContextId,
        after: Option<String>,
        limit: usize,
    ) -> Result<(Vec<TaskRecord>, Option<String>), StoreError>;

    /// Removes everything stored for a task, if it is stored as in `record`. The
    /// children go first, then the idempotency keys that the record knows and that
    /// still name the task, and the deciding item last, so that an interrupted
    /// removal can be repeated. The caller has ended the task's life before, so that
    /// no reader sees it. Returns `true` if nothing of the task is left; `false` if
    /// another write or the task of another owner is stored.
    ///
    /// # Errors
    /// [`StoreError`]; after `Unavailable` some of it may be there, and the same
    /// call may be made again.
    async fn remove_task(&self, record: &TaskRecord) -> Result<bool, StoreError>;

    /// Extends the lease of the turn in `record` to `lease_until`, if the stored task
    /// has the same incarnation and epoch, is `working` and has a lease; else returns
    /// `false`. A turn that was handed over has no lease, and a late heartbeat does
    /// not give it one. The version does not change, so a commit in flight does not
    /// lose.
    ///
    /// # Errors
    /// [`StoreError`]; after `Unavailable` the lease may or may not be longer.
    async fn heartbeat(
        &self,
        record: &TaskRecord,
        lease_until: Timestamp,
    ) -> Result<bool, StoreError>;
}
