//! Parts of tasks: what a reader gets who does not need the whole of one.

use crate::task::TaskRecord;

/// What of a task's content is wanted beside its status and metadata.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// So many of the newest messages.
    pub history_length: usize,
    /// Whether artifacts are wanted.
    pub artifacts: bool,
    /// About so many bytes may be read for it. What does not come within them
    /// is left out: the oldest messages, and artifacts from the first that is
    /// not complete.
    pub bytes: usize,
}

/// A task as far as it was wanted.
#[derive(Debug, Clone, PartialEq)]
pub struct Excerpt {
    /// The task. What was not wanted may be missing, so nothing is committed on
    /// top of it.
    pub record: TaskRecord,
    /// Whether all that was wanted is there.
    pub complete: bool,
    /// Bytes that were read for it.
    pub read: usize,
}

impl Excerpt {
    /// A record that holds all that can be wanted.
    #[must_use]
    pub const fn of_whole(record: TaskRecord) -> Self {
        Self {
            record,
            complete: true,
            read: 0,
        }
    }
}
