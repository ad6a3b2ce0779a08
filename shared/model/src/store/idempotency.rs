//! Idempotency keys, stored beside the tasks they name.
//!
//! A key is written in the commit of its send and kept as long as its task. A key
//! is free when its task has expired, is gone, or has given its id to another task.

use crate::task::{KeyHash, TaskRecord};

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
pub struct Keyed {
    /// The hash of the content of its send.
    pub content: String,
    /// The current record of the task of that send.
    pub record: TaskRecord,
}
