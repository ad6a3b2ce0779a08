//! Projections: reads of a part of a task.

use crate::task::TaskRecord;

/// Which content of a task to read besides its status and metadata.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Projection {
    /// How many of the newest messages.
    pub history_length: usize,
    /// Whether to read the artifacts.
    pub artifacts: bool,
    /// About how many bytes may be read. Beyond them the oldest messages are left
    /// out, and the artifacts from the first incomplete one on.
    pub bytes: usize,
}

/// A task with the wanted part of its content.
#[derive(Debug, Clone, PartialEq)]
pub struct ProjectedTask {
    /// The task. Content that was not wanted may be missing, so a store refuses a
    /// commit on top of it.
    pub record: TaskRecord,
    /// Whether all of the wanted content is present.
    pub complete: bool,
    /// How many bytes the store read for it.
    pub read: usize,
}

impl ProjectedTask {
    /// The projection of a whole record.
    #[must_use]
    pub const fn of_whole(record: TaskRecord) -> Self {
        Self {
            record,
            complete: true,
            read: 0,
        }
    }
}
