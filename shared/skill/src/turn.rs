//! How a turn of a skill starts and ends, without the types of the skill.

use super::OnRequestResult;
use a2a_lambda_model::task::SavedSlot;
use std::any::Any;

/// A decoded input of a skill.
#[derive(Debug)]
pub struct Decoded(pub(super) Box<dyn Any + Send>);

/// The end of a turn. The output is already the last artifact.
pub type SkillOutcome = OnRequestResult<(), SavedSlot>;
