//! The tail of a task's event log, for streams and push deliveries.

use crate::task::{ContextId, LoggedEvent, SkillId, TaskRecord, TaskState, WriteId};

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
            skill: record.skill().cloned(),
            reads_text_alone: record.reads_text_alone,
            state: record.state(),
            last_seq: record.last_seq,
            events: record.events_after(after).cloned().collect(),
        }
    }
}
