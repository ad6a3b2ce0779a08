//! Where tasks, threads and bytes live: traits, and what they promise.
//!
//! A function is given the narrowest trait it needs: [`ReadTasks`] for
//! `tasks-get`, [`WriteTasks`] for the functions that run turns. A store
//! compares versions and write ids; it never looks at a state to decide.
//! `contract` holds the one suite every implementation passes.

#[cfg(feature = "aws")]
pub mod aws;
mod blobs;
#[cfg(any(test, feature = "contract-tests"))]
pub mod contract;
#[cfg(feature = "aws")]
pub mod dynamodb;
mod excerpt;
mod key;
pub mod memory;
pub mod over;
pub mod push;
pub mod queue;
#[cfg(feature = "aws")]
pub mod s3;
#[cfg(feature = "aws")]
pub mod sqs;
pub mod stored;
mod thread;

pub use thread::{
    Expiring, ExpiringThread, ReadThreads, StateRemoved, SweepThreads, ThreadPage, ThreadPosition,
    ThreadQuery, ThreadRecord, ThreadState, ThreadStatus, ThreadWrite, WriteThreads,
};

pub use blobs::{
    BlobHead, BlobReader, Blobs, Download, Measured, UploadTerms, UploadUrl, remove_below,
};
pub(crate) use blobs::{
    Chained, OBJECTS_AT_ONCE, measured as blobs_measured, measured_to_end, read_up_to,
};
pub use excerpt::{Excerpt, Wanted};
pub use key::{KeyWrite, Keyed};

use crate::task::{
    ContextId, KeyHash, LoggedEvent, Owner, PushRecord, TaskId, TaskRecord, TaskState, Timestamp,
    WriteId,
};
use async_trait::async_trait;
use queue::OpenTask;
use std::cmp::Reverse;

/// Why a store could not answer. None of it is shown to a client.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The store did not answer, or throttled, and nothing is decided. The
    /// same write may be tried again under the same write id.
    #[error("store unavailable: {0}")]
    Unavailable(String),
    /// Other writes were at the same items, each time it was tried: nothing is
    /// decided, and nothing of this call is stored.
    #[error("other writes were in the way: {0}")]
    Contended(String),
    /// The item can never be stored like this.
    #[error("item too large: {0}")]
    TooLarge(String),
    /// What is stored cannot be read.
    #[error("stored item is corrupt: {0}")]
    Corrupt(String),
    /// The store refused the call itself: our fault.
    #[error("store refused the call: {0}")]
    Refused(String),
    /// What was to be stored could not be read where it comes from.
    #[error("failed to read what was to be stored: {0}")]
    Source(#[source] std::io::Error),
}

/// What a write demands of the record it replaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expect {
    /// No record, or one that has expired (at rest with `expires_at <= now`).
    Absent,
    /// The record is of this very task, has exactly this version and has not
    /// expired. Each commit has a version of its own, so this one condition
    /// fences out everybody who has not seen the last commit.
    Version {
        /// The version.
        version: u64,
        /// The task, of those that had its id one after the other.
        incarnation: WriteId,
    },
}

impl Expect {
    /// The record as it stands in `base`; none, if `base` is not stored yet.
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
    /// The whole next record. Its last write id names this commit.
    pub record: TaskRecord,
    /// What must be stored before it.
    pub expect: Expect,
    /// Thread state to write in the same transaction.
    pub thread: Option<ThreadWrite>,
    /// Webhooks to store in the same transaction, over those of the same id.
    pub pushes: Vec<PushRecord>,
    /// The idempotency key of the send that asks for this commit, to write in
    /// the same transaction.
    pub key: Option<KeyWrite>,
    /// The time by which expiry is judged.
    pub now: Timestamp,
}

impl TaskWrite {
    /// The id of this write: the last of its record; `None` in a record that
    /// no commit has made.
    #[must_use]
    pub fn id(&self) -> Option<&WriteId> {
        self.record.write_ids.last()
    }

    /// The id without which no store takes a write.
    pub(crate) fn checked_id(&self) -> Result<&WriteId, StoreError> {
        self.id()
            .ok_or_else(|| StoreError::Refused("the record has no write id".to_owned()))
    }
}

/// What became of a write.
#[derive(Debug, Clone, PartialEq)]
pub enum Committed {
    /// It is stored: by this call, or by an earlier try of the same write whose
    /// answer was lost (its write id is in the stored record).
    Done,
    /// Another write stands there; `None` if there is no record any more.
    Conflict(Option<Box<TaskRecord>>),
    /// The task's condition held, but the thread has another version.
    ThreadConflict,
    /// The idempotency key stands for another send of the same caller.
    KeyTaken(Box<Keyed>),
}

/// A page of a caller's tasks.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RecordPage {
    /// The records, newest status first, each as [`ReadTasks::head`] gives it.
    pub records: Vec<TaskRecord>,
    /// Where the next page starts; `None` at the end.
    pub next: Option<ListPosition>,
    /// How many records match the filter: exact up to the limit of the query.
    pub matching: usize,
}

/// A conversation of so many tasks is listed from all of their heads; a larger one
/// by the list index.
pub const IN_CONTEXT: usize = 200;

impl RecordPage {
    /// The page that `query` asks for, of these heads of `owner`'s tasks: all that
    /// can match.
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

/// A place in a list: after the task with this status time and id.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ListPosition {
    /// Status time of the last task of the page.
    pub at: Timestamp,
    /// Its id.
    pub task: TaskId,
}

impl ListPosition {
    /// The place of `record`.
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
    /// The place whose text this is.
    ///
    /// # Errors
    /// [`StoreError::Refused`] if it is none.
    pub(crate) fn parse(text: &str) -> Result<Self, StoreError> {
        let place = || {
            let (at, task) = text.split_once('#')?;
            Some(Self {
                at: Timestamp::from_millis(at.parse().ok()?),
                task: TaskId::parse(task).ok()?,
            })
        };
        place().ok_or_else(|| StoreError::Refused("no place in a list".to_owned()))
    }
}

/// Which records to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordQuery {
    /// Only this conversation.
    pub context_id: Option<ContextId>,
    /// Only this state.
    pub state: Option<TaskState>,
    /// Only a status time at or after this.
    pub status_after: Option<Timestamp>,
    /// Continue after this place.
    pub after: Option<ListPosition>,
    /// At most this many records.
    pub limit: usize,
    /// Stop counting matches here.
    pub count_limit: usize,
    /// The time by which expiry is judged.
    pub now: Timestamp,
}

impl RecordQuery {
    /// Whether the list of `owner`'s tasks contains `record`, on whatever page.
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

/// What a reader that follows a task's event log is told.
#[derive(Debug, Clone, PartialEq)]
pub struct Tail {
    /// Which task it is, of those that had this id one after the other.
    pub incarnation: WriteId,
    /// Its conversation.
    pub context_id: ContextId,
    /// Its state.
    pub state: TaskState,
    /// The number of the last event ever logged.
    pub last_seq: u64,
    /// The events that follow the one asked about, up to the last, in order
    /// and without a gap.
    pub events: Vec<LoggedEvent>,
}

impl Tail {
    /// What `record` holds after event number `after`.
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

/// Reading tasks. Every method starts with an [`Owner`] and answers only that
/// owner's tasks; another's looks absent.
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

    /// The task without what grows, read consistently; `None` as for
    /// [`ReadTasks::load`]. State, versions, lease, expiry and webhooks are there.
    /// Messages, artifacts, events and what a skill keeps may be missing; then
    /// [`TaskRecord::is_partial`] says so, and no commit on top of it is taken.
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

    /// The head of each of `tasks` that [`ReadTasks::head`] gives one of, in no
    /// order. One that is corrupt is logged and left out.
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

    /// A head with what is `wanted` of its content, read consistently; `None` if
    /// there is no such task any more. What it says may be newer than the head.
    ///
    /// A store whose heads are whole has nothing to read.
    ///
    /// # Errors
    /// [`StoreError`] when the store does not answer or an item is corrupt.
    async fn excerpt(
        &self,
        head: TaskRecord,
        wanted: Wanted,
        now: Timestamp,
    ) -> Result<Option<Excerpt>, StoreError> {
        let _nothing_to_read = (wanted, now);
        Ok(Some(Excerpt::of_whole(head)))
    }

    /// The task's state and the events after number `after`, read consistently;
    /// `None` as for [`ReadTasks::load`]. With `u64::MAX` it is asked for no
    /// event at all. A store whose `load` reads more than that should have an
    /// answer of its own: this is asked again and again while a stream follows
    /// a task.
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

    /// A page of `owner`'s tasks, from an index and never by a scan. The index
    /// may lag; each record of the page is a head as stored now. The tasks of one
    /// conversation are found without the index while they are [`IN_CONTEXT`] or
    /// fewer: then list and count are exact.
    ///
    /// # Errors
    /// [`StoreError`] when the store does not answer.
    async fn list(&self, owner: &Owner, query: &RecordQuery) -> Result<RecordPage, StoreError>;

    /// What an idempotency key of `owner` stands for, read consistently; `None`
    /// if it is free.
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
    /// Stores one commit if what it expects holds: all of it or nothing.
    ///
    /// Before it says [`Committed::Conflict`] it looks for the commit's own
    /// write id in the stored record, so that an applied write whose answer was
    /// lost counts as [`Committed::Done`].
    ///
    /// # Errors
    /// [`StoreError`]; after `Unavailable` the write may or may not be stored.
    async fn commit(&self, write: &TaskWrite) -> Result<Committed, StoreError>;

    /// The task `id` of `owner`, if its life has ended by `now` and its item is
    /// still there; of its content only what stands in its own item, since what
    /// lies beside it may be gone.
    ///
    /// # Errors
    /// [`StoreError`] when the store does not answer or the item is corrupt.
    async fn ended_task(
        &self,
        owner: &Owner,
        id: &TaskId,
        now: Timestamp,
    ) -> Result<Option<TaskRecord>, StoreError>;

    /// A page of all that is stored in a conversation of `owner`, read consistently:
    /// up to `limit` heads of tasks after the place `after`, the newest made first,
    /// those whose life has ended and the hidden ones among them, and at the end the
    /// task that the conversation is named after; the place to go on from, `None` at
    /// the end. A page may be short.
    ///
    /// # Errors
    /// [`StoreError`] when the store does not answer; [`StoreError::Refused`] for a
    /// place that is none.
    async fn tasks_in(
        &self,
        owner: &Owner,
        context: &ContextId,
        after: Option<String>,
        limit: usize,
    ) -> Result<(Vec<TaskRecord>, Option<String>), StoreError>;

    /// Removes everything stored for a task, if it is stored as in `record`: what
    /// lies beside its item first, then the idempotency keys that stand for it and
    /// that it knows, and the item that decides last, so that a
    /// removal which does not come to its end can be made again. Whoever asks
    /// for it has ended the task's life before: nobody reads it any more.
    /// `true` if nothing of it is left; `false` if another write stands there,
    /// or the task of another owner.
    ///
    /// # Errors
    /// [`StoreError`]; after `Unavailable` some of it may be there, and the same
    /// call may be made again.
    async fn remove_task(&self, record: &TaskRecord) -> Result<bool, StoreError>;

    /// Extends the lease of the turn that runs in `record` to `lease_until`, if
    /// the stored task is that very task, `working` under the same epoch, and
    /// has a lease; `false` if it is not. A turn that was handed over has none,
    /// and a late heartbeat gives it none. The version stays, so a commit on its
    /// way does not lose.
    ///
    /// # Errors
    /// [`StoreError`]; after `Unavailable` the lease may or may not be longer.
    async fn heartbeat(
        &self,
        record: &TaskRecord,
        lease_until: Timestamp,
    ) -> Result<bool, StoreError>;
}
