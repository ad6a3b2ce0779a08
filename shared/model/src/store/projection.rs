//! Reads of a part of a task: a projection of its content, and the tail of its event log, for streams
//! and push deliveries.

use crate::task::{ContextId, LoggedEvent, SkillId, TaskRecord, TaskState, WriteId};

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

/// What a reader of a task's event log gets.
#[derive(Debug, Clone, PartialEq)]
pub struct Tail {
    /// The incarnation: which of the tasks that have had this id.
    pub incarnation: WriteId,
    /// Its context.
    pub context_id: ContextId,
    /// Its skill.
    pub skill: Option<SkillId>,
    /// Whether the client of its last send reads text and no data.
    pub reads_text_alone: bool,
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
            skill: record.skill.clone(),
            reads_text_alone: record.reads_text_alone,
            state: record.state(),
            last_seq: record.last_seq,
            events: record.events_after(after).cloned().collect(),
        }
    }
}
