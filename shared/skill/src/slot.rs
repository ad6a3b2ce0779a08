//! The state that a skill saves with a question.

use super::{AgentError, AgentResult};
use a2a_lambda_model::task::SavedSlot;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The state a skill needs to continue when the client answers: usually an enum with one
/// variant per question. It is saved with the task and given back with the answer, possibly
/// to a newer version of the skill.
///
/// ```
/// use a2a_lambda::skill::SkillSlot;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize)]
/// enum Ask {
///     Where,
///     When { to: String },
/// }
/// impl SkillSlot for Ask {}
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no slot of a skill",
    note = "derive `serde::Serialize` and `serde::Deserialize` for it, and write \
            `impl SkillSlot for {Self} {{}}`"
)]
pub trait SkillSlot: Serialize + DeserializeOwned + Send + 'static {
    /// Whether a skill with this slot type can ask. It is false only for [`NoSlot`].
    const CAN_ASK: bool = true;
    /// The version of the saved form. Raise it with a change that old slots do not fit, and
    /// convert old slots in [`SkillSlot::migrate`].
    const VERSION: u32 = 1;

    /// Converts a slot saved with version `from` to the current form. `None` fails the task
    /// with `STATE_INCOMPATIBLE`. The engine also calls it for a slot of the current
    /// version that does not decode.
    fn migrate(from: u32, value: Value) -> Option<Self> {
        let _ = (from, value);
        None
    }
}

/// The slot type of a skill that never asks. It has no value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum NoSlot {}

impl SkillSlot for NoSlot {
    const CAN_ASK: bool = false;
}

/// Encodes a slot for the store.
pub(super) fn save<S: SkillSlot>(slot: &S) -> AgentResult<SavedSlot> {
    Ok(SavedSlot {
        version: S::VERSION,
        value: serde_json::to_value(slot).map_err(AgentError::serialization)?,
    })
}

/// Decodes a saved slot, and migrates it if another version saved it.
pub(super) fn restore<S: SkillSlot>(saved_slot: SavedSlot) -> AgentResult<S> {
    let SavedSlot { version, value } = saved_slot;
    let result = match version == S::VERSION {
        // A slot may have changed its form without a new version.
        true => S::deserialize(&value).map_err(|error| error.to_string()),
        false => Err(format!(
            "the slot has version {version}, expected {}",
            S::VERSION
        )),
    };
    result.or_else(|cause| {
        S::migrate(version, value).ok_or_else(|| AgentError::state_incompatible(cause))
    })
}
