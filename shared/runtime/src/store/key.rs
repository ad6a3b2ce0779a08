//! Idempotency keys beside the tasks they stand for.
//!
//! A key is written in the commit of the send it names and never changed. How
//! long it lives is the task's affair: a key whose task has expired, is gone,
//! or has given its id to another task is free.

use crate::task::{KeyHash, TaskRecord, Timestamp};

/// A key to write beside a task's commit, on the condition that it is free.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyWrite {
    /// The key's address.
    pub key: KeyHash,
    /// What the send asks for, as a hash.
    pub content: String,
    /// Until when native expiry must leave it there; it decides nothing.
    pub kept_until: Timestamp,
}

/// What a key stands for.
#[derive(Debug, Clone, PartialEq)]
pub struct Keyed {
    /// What its send asked for, as a hash.
    pub content: String,
    /// The task of that send, as it is now.
    pub record: TaskRecord,
}
