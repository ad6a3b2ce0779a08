//! How a turn of a skill starts and ends, without the types of the skill.

use super::{Content, OnRequestResult};
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

/// The end of a turn. The output is already the last artifact.
pub type SkillOutcome = OnRequestResult<(), SavedSlot>;
