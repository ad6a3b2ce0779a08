//! The bookmark of an open question.

use super::{AgentError, AgentResult};
use crate::task::SavedSlot;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

/// Where a skill goes on when the client answers: usually an enum with a
/// variant a question. It is saved with the task and given back with the
/// answer, possibly by a newer version of the skill.
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
pub trait SkillSlot: Serialize + DeserializeOwned + Send + 'static {
    /// Whether a skill with this slot can ask. Only [`NoSlot`] says no.
    const CAN_ASK: bool = true;
    /// The version of the form. Raise it with a change that old slots do not
    /// fit, and answer for them in [`SkillSlot::migrate`].
    const VERSION: u32 = 1;

    /// A slot that was saved as version `from`, in today's form. Without an
    /// answer the task fails with `STATE_INCOMPATIBLE`.
    fn migrate(from: u32, saved: Value) -> Option<Self> {
        let _ = (from, saved);
        None
    }
}

/// The slot of a skill that never asks. It has no value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoSlot {}

impl SkillSlot for NoSlot {
    const CAN_ASK: bool = false;
}

impl Serialize for NoSlot {
    fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        match *self {}
    }
}

impl<'de> Deserialize<'de> for NoSlot {
    fn deserialize<D: Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        Err(serde::de::Error::custom("this skill never asks"))
    }
}

/// The stored form of a slot.
pub(super) fn save<S: SkillSlot>(slot: &S) -> AgentResult<SavedSlot> {
    Ok(SavedSlot {
        version: S::VERSION,
        value: serde_json::to_value(slot).map_err(AgentError::serialization)?,
    })
}

/// The slot that was saved, migrated if it was saved by another version.
pub(super) fn restore<S: SkillSlot>(saved: SavedSlot) -> AgentResult<S> {
    let SavedSlot { version, value } = saved;
    if version != S::VERSION {
        return S::migrate(version, value).ok_or_else(|| {
            AgentError::state_incompatible(format_args!(
                "slot of version {version}, and {} is needed",
                S::VERSION
            ))
        });
    }
    S::deserialize(&value).or_else(|error| {
        S::migrate(version, value).ok_or_else(|| AgentError::state_incompatible(error))
    })
}
