//! How a turn of a skill starts and ends, without the types of the skill.

use super::{AgentError, Artifact, AuthHint, Content};
use crate::task::SavedSlot;
use std::any::Any;

/// A decoded input of a skill.
pub(crate) struct Decoded(pub(super) Box<dyn Any + Send>);

/// The start of a turn.
pub(crate) enum TurnStart {
    /// The first message of a task.
    Request(Decoded),
    /// The answer to an open question.
    Input(SavedSlot, Content),
}

/// The end of a turn.
#[derive(Debug)]
pub(crate) enum SkillOutcome {
    /// A reply without a task.
    Message(Content),
    /// A question.
    InputRequired { message: Content, slot: SavedSlot },
    /// A request for credentials.
    AuthRequired {
        message: Content,
        slot: SavedSlot,
        auth: AuthHint,
    },
    /// The task is completed. The output is already the last artifact.
    Completed {
        message: Option<Content>,
        artifacts: Vec<Artifact>,
    },
    /// The task failed.
    Failed(AgentError),
    /// The skill rejects the task.
    Rejected { reason: String },
}
