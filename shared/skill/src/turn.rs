//! How a turn of a skill starts and ends, without the types of the skill.

use super::{AgentError, Artifact, AuthHint, Content};
use a2a_lambda_model::task::SavedSlot;
use std::any::Any;

/// A decoded input of a skill.
#[derive(Debug)]
pub struct Decoded(pub(super) Box<dyn Any + Send>);

/// The start of a turn.
#[derive(Debug)]
pub enum TurnStart {
    /// The first message of a task.
    Request(Decoded),
    /// The answer to an open question.
    Input(SavedSlot, Content),
}

/// The end of a turn.
#[derive(Debug)]
pub enum SkillOutcome {
    /// A reply without a task.
    Message(Content),
    /// A question.
    InputRequired {
        /// The question.
        message: Content,
        /// What the answer gets back.
        slot: SavedSlot,
    },
    /// A request for credentials.
    AuthRequired {
        /// The request.
        message: Content,
        /// What the answer gets back.
        slot: SavedSlot,
        /// The credentials that are needed.
        auth: AuthHint,
    },
    /// The task is completed. The output is already the last artifact.
    Completed {
        /// The last message.
        message: Option<Content>,
        /// The last artifacts.
        artifacts: Vec<Artifact>,
    },
    /// The task failed.
    Failed(AgentError),
    /// The skill rejects the task.
    Rejected {
        /// Why, for the client.
        reason: String,
    },
}
