//! The storage traits for tasks, threads and bytes, and the rules every store
//! follows.
//!
//! A function takes the narrowest trait it needs: [`ReadTasks`] for `tasks-get`,
//! [`WriteTasks`] for the functions that run turns. A store decides by versions and
//! write ids only, never by a task's state. `contract` is the test suite that every
//! implementation passes.

mod blobs;
#[cfg(any(test, feature = "contract-tests"))]
pub mod contract;
mod idempotency;
mod projection;
pub mod push;
pub mod queue;
mod thread;
pub mod wrap;

pub use thread::{
    Expiring, ExpiringThread, ReadThreads, StateRemoved, SweepThreads, ThreadPage, ThreadPosition,
    ThreadQuery, ThreadRecord, ThreadState, ThreadStatus, ThreadWrite, WriteThreads,
};

pub use blobs::{
    BlobHead, BlobReader, Blobs, Download, Measured, OBJECTS_AT_ONCE, ReadBlobs, UploadTerms,
    UploadUrl, measured_to_end, read_up_to, remove_below,
};
pub use idempotency::{KeyWrite, Keyed};
pub use projection::{ProjectedTask, Projection};

use crate::task::{
    ContextId, KeyHash, LoggedEvent, Owner, PushRecord, TaskId, TaskRecord, TaskState, Timestamp,
    WriteId,
};
use async_trait::async_trait;
use queue::OpenTask;
use std::cmp::Reverse;

/// Why a store call failed. Clients never see it.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The store did not answer or throttled the call. Whether the write is stored is
    /// unknown; the caller may repeat it under the same write id.
    #[error("store unavailable: {0}")]
    Unavailable(String),
    /// Concurrent writes to the same items won every attempt. Nothing of this call is
    /// stored.
    #[error("concurrent writes won every attempt: {0}")]
    Contended(String),
    /// The item exceeds a size limit; a repeat cannot succeed.
    #[error("item too large: {0}")]
    TooLarge(String),
    /// The stored item cannot be decoded.
    #[error("stored item is corrupt: {0}")]
    Corrupt(String),
    /// The store rejected the call as invalid: a defect of this program.
    #[error("store refused the call: {0}")]
    Refused(String),
    /// Reading the content to store failed at its source.
    #[error("failed to read the content to store: {0}")]
    Source(#[source] std::io::Error),
}

/// The condition of a write on the record that it replaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expect {
    /// There is no record, or it has expired (at rest with `expires_at <= now`).
    Absent,
    /// The record has this incarnation and this version and has not expired. Each
    /// commit increments the version, so the condition fails for every writer that
    /// has not seen the last commit.
    Version {
        /// The version.
        version: u64,
        /// The incarnation: which of the tasks that have had this id.
        incarnation: WriteId,
    },
}

impl Expect {
    /// The condition that `base` is still the stored record; `Absent` if `base` is
    /// not stored yet.
    #[must_use]
    pub fn of(base: &TaskRecord) -> Self {
        match base.version() {
            0 => Self::Absent,
            version => Self::Version {
                version,
                incarnation: base.incarnation.clone(),
            },
        }
    }
}

/// One commit of a task, with the thread changes that belong to it.
#[derive(Debug, Clone)]
pub struct TaskWrite {
    /// The whole next record. Its last write id is the id of this commit.
    pub record: TaskRecord,
    /// The condition on the stored record.
    pub expect: Expect,
    /// Thread state to write in the same transaction.
    pub thread: Option<ThreadWrite>,
    /// Push configs to store in the same transaction; each replaces the one with its
    /// id.
    pub pushes: Vec<PushRecord>,
    /// The idempotency key of the send behind this commit, to write in the same
    /// transaction.
    pub key: Option<KeyWrite>,
    /// The time by which expiry is judged.
    pub now: Timestamp,
}

impl TaskWrite {
    /// The id of this write: the last write id of its record. `None` for a record
    /// that no commit has made.
    #[must_use]
    pub fn id(&self) -> Option<&WriteId> {
        self.record.write_ids.last()
    }

    /// The id of this write; every store refuses a write without one.
    pub fn checked_id(&self) -> Result<&WriteId, StoreError> {
        self.id()
            .ok_or_else(|| StoreError::Refused("the record has no write id".to_owned()))
    }
}

/// The outcome of a write.
#[derive(Debug, Clone, PartialEq)]
pub enum Committed {
    /// The write is stored: by this call, or by an earlier attempt whose response was
    /// lost (its write id is in the stored record).
    Done,
    /// Another write is stored instead; `None` if there is no live record.
    Conflict(Option<Box<TaskRecord>>),
    /// The task's condition held, but the thread has another version.
    ThreadConflict,
    /// The idempotency key belongs to another send of the same caller.
    KeyTaken(Box<Keyed>),
}

/// A page of a caller's tasks.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RecordPage {
    /// The records, newest status first, each as [`ReadTasks::head`] gives it.
    pub records: Vec<TaskRecord>,
    /// Where the next page starts; `None` at the end.
    pub next: Option<ListPosition>,
    /// How many records match the filter: exact up to `count_limit`.
    pub matching: usize,
}

/// The largest number of tasks in a context that a store lists from their heads. A
/// larger context is listed from the list index.
pub const IN_CONTEXT: usize = 200;

impl RecordPage {
    /// The page for `query` from `heads`, which must contain every head of `owner`
    /// that can match.
    #[must_use]
    pub fn of_all(mut heads: Vec<TaskRecord>, owner: &Owner, query: &RecordQuery) -> Self {
        heads.retain(|head| query.matches(owner, head));
        let matching = heads.len().min(query.count_limit);
        heads.sort_by_key(|head| Reverse(ListPosition::of(head)));
        let after = query.after.as_ref();
        heads.retain(|head| after.is_none_or(|after| ListPosition::of(head) < *after));
        let more = heads.len() > query.limit;
        heads.truncate(query.limit);
        let last = heads.last().filter(|_| more);
        Self {
            next: last.map(ListPosition::of),
            records: heads,
            matching,
        }
    }
}

/// A position in a list: after the task with this status time and id.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ListPosition {
    /// The status time of the last task of the page.
    pub at: Timestamp,
    /// The id of that task.
    pub task: TaskId,
}

impl ListPosition {
    /// The position of `record`.
    #[must_use]
    pub fn of(record: &TaskRecord) -> Self {
        Self {
            at: record.status().timestamp,
            task: record.id().clone(),
        }
    }
}

impl std::fmt::Display for ListPosition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}#{}", self.at.as_millis(), self.task)
    }
}

impl ListPosition {
    /// The position that this text encodes.
    ///
    /// # Errors
    /// [`StoreError::Refused`] if the text is not a position.
    pub fn parse(text: &str) -> Result<Self, StoreError> {
        let place = || {
            let (at, task) = text.split_once('#')?;
            Some(Self {
                at: Timestamp::from_millis(at.parse().ok()?),
                task: TaskId::parse(task).ok()?,
            })
        };
        place().ok_or_else(|| {
            StoreError::Refused(format!("list position `{text}` is not `<ms>#<task id>`"))
        })
    }
}

/// Which records to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordQuery {
    /// Only this context.
    pub context_id: Option<ContextId>,
    /// Only this state.
    pub state: Option<TaskState>,
    /// Only tasks with a status time at or after this.
    pub status_after: Option<Timestamp>,
    /// Continue after this position.
    pub after: Option<ListPosition>,
    /// At most this many records.
    pub limit: usize,
    /// Stop counting matches here.
    pub count_limit: usize,
    /// The time by which expiry is judged.
    pub now: Timestamp,
}

impl RecordQuery {
    /// Whether the list of `owner`'s tasks contains `record`, on any page.
    #[must_use]
    pub fn matches(&self, owner: &Owner, record: &TaskRecord) -> bool {
        let context = self.context_id.as_ref();
        record.owner() == owner
            && !record.is_hidden()
            && !record.expired(self.now)
            && context.is_none_or(|context| record.context_id() == context)
            && self.state.is_none_or(|state| record.state() == state)
            && self
                .status_after
                .is_none_or(|after| record.status().timestamp >= after)
    }
}

/// What a reader of a task's event log gets.
#[derive(Debug, Clone, PartialEq)]
pub struct Tail {
    /// The incarnation: which of the tasks that have had this id.
    pub incarnation: WriteId,
    /// Its context.
    pub context_id: ContextId,
    /// Its state.
    pub state: TaskState,
    /// The number of the last logged event.
    pub last_seq: u64,
    /// The events after the requested number up to the last, in order and without a
    /// gap.
    pub events: Vec<LoggedEvent>,
}

impl Tail {
    /// The tail of `record` after event number `after`.
    #[must_use]
    pub fn of(record: &TaskRecord, after: u64) -> Self {
        Self {
            incarnation: record.incarnation.clone(),
            context_id: record.context_id.clone(),
            state: record.state(),
            last_seq: record.last_seq,
            events: record.events_after(after).cloned().collect(),
        }
    }
}

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
    /// then [`TaskRecord::is_partial`] is true and a store refuses a commit on top of
    /// the record.
    ///
    /// # Errors
    /// [`StoreError`] when the store does not answer or the item is corrupt.
    async fn head(
        &self,
        owner: &Owner,
        id: &TaskId,
        now: Timestamp,
    ) -> Result<Option<TaskRecord>, StoreError> {
        self.load(owner, id, now).await
    }

    /// The heads of those of `tasks` for which [`ReadTasks::head`] returns one, in no
    /// order. A corrupt head is logged and left out.
    ///
    /// # Errors
    /// [`StoreError`] when the store does not answer.
    async fn heads(
        &self,
        tasks: &[OpenTask],
        now: Timestamp,
    ) -> Result<Vec<TaskRecord>, StoreError> {
        let mut heads = Vec::new();
        for OpenTask { owner, task } in tasks {
            match self.head(owner, task, now).await {
                Ok(head) => heads.extend(head),
                Err(error @ StoreError::Corrupt(_)) => {
                    tracing::error!(task.id = %task, "failed to read task `{task}`: {error}");
                }
                Err(error) => return Err(error),
            }
        }
        Ok(heads)
    }

    /// A head with the `wanted` content, read consistently; `None` if the task no
    /// longer exists. The result may be newer than the head.
    ///
    /// The default is for a store whose heads are whole records.
    ///
    /// # Errors
    /// [`StoreError`] when the store does not answer or an item is corrupt.
    async fn project(
        &self,
        head: TaskRecord,
        wanted: Projection,
        now: Timestamp,
    ) -> Result<Option<ProjectedTask>, StoreError> {
        let _nothing_to_read = (wanted, now);
        Ok(Some(ProjectedTask::of_whole(head)))
    }

    /// The task's state and the events after number `after`, read consistently;
    /// `None` as for [`ReadTasks::load`]. `u64::MAX` requests no events. Each stream
    /// that follows a task polls this method, so a store should override the default
    /// if its `load` reads more than that.
    ///
    /// # Errors
    /// [`StoreError`] when the store does not answer or the item is corrupt.
    async fn tail(
        &self,
        owner: &Owner,
        id: &TaskId,
        after: u64,
        now: Timestamp,
    ) -> Result<Option<Tail>, StoreError> {
        let found = self.load(owner, id, now).await?;
        Ok(found.map(|record| Tail::of(&record, after)))
    }

    /// A page of `owner`'s tasks, from an index, never by a scan. The index may lag;
    /// each record of the page is the stored head. A context of at most
    /// [`IN_CONTEXT`] tasks is listed without the index: list and count are exact.
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
    /// `limit` heads after the position `after`, newest creation first, expired and
    /// hidden tasks included. The task that the context is named after comes last.
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
