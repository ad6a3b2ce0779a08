//! Threads as a store keeps them: what is stored for a context.
//!
//! - `record`: the stored thread

mod record;

pub use record::{Expiring, ThreadRecord, ThreadState, ThreadStatus};

use crate::task::{ContextId, Owner, Timestamp, WriteId};
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
