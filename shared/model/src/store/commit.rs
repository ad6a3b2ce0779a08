//! One commit of a task: what it writes, its condition and its outcome.
//!
//! An idempotency key is written in the commit of its send and kept as long as its task. A key
//! is free when its task has expired, is gone, or has given its id to another task.

use super::{StoreError, ThreadWrite};
use crate::task::{KeyHash, PushRecord, TaskRecord, Timestamp, WriteId};

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
        /// Until when it keeps the items beside it. This is not a condition: it decides whether they
        /// have to be prolonged before the write.
        kept_until: Timestamp,
    },
}

impl Expect {
    /// The condition that `base` is still the stored record; `Absent` if `base` is
    /// not stored yet.
    #[must_use]
    pub fn of(base: &TaskRecord) -> Self {
        match base.version {
            0 => Self::Absent,
            version => Self::Version {
                version,
                incarnation: base.incarnation.clone(),
                kept_until: base.kept_until,
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
    /// Whether the context knows the task already, by an earlier pointer. Otherwise a create
    /// writes the pointer before the task, or together with it.
    pub has_pointer: bool,
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

    /// Whether the items beside the task have to be kept longer than before this write.
    #[must_use]
    pub fn prolongs(&self) -> bool {
        match &self.expect {
            Expect::Absent => false,
            Expect::Version { kept_until, .. } => *kept_until < self.record.kept_until,
        }
    }

    /// The id of this write; every store refuses a write without one.
    pub fn checked_id(&self) -> Result<&WriteId, StoreError> {
        self.id()
            .ok_or_else(|| StoreError::Refused("the record has no write id".to_owned()))
    }
}

/// The outcome of a write.
#[derive(Debug, Clone, PartialEq)]
pub enum CommitResult {
    /// The write is stored: by this call, or by an earlier attempt whose response was
    /// lost (its write id is in the stored record).
    Done,
    /// Another write is stored instead; `None` if there is no live record.
    Conflict(Option<TaskRecord>),
    /// The task's condition held, but the thread has another version.
    ThreadConflict,
    /// The idempotency key belongs to another send of the same caller.
    KeyTaken(Box<IdempotencyEntry>),
}

/// A key to write with a task's commit, on the condition that it is free.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyWrite {
    /// The hashed key, its address in the store.
    pub key: KeyHash,
    /// The hash of the send's content.
    pub content: String,
}

/// The send and the task that a key names.
#[derive(Debug, Clone, PartialEq)]
pub struct IdempotencyEntry {
    /// The hash of the content of its send.
    pub content: String,
    /// The current record of the task of that send.
    pub record: TaskRecord,
}
