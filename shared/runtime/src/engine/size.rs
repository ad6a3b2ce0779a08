//! How much a skill may keep.

use super::EngineError;
use crate::skill::AgentError;
use crate::task::Refusal;

/// More is to be kept than may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StateTooLarge {
    /// Bytes in stored form.
    pub(super) current: usize,
    /// Bytes there may be.
    pub(super) allowed: usize,
}

/// Whether `current` bytes may be kept; asked before anything is written. The
/// size is that of the stored form: `stored::saved_size` of a task,
/// `stored::state_size` of a conversation.
///
/// # Errors
/// [`StateTooLarge`], which both an [`AgentError`] and an [`EngineError`] can
/// be made of.
pub(super) const fn check_state_size(current: usize, allowed: usize) -> Result<(), StateTooLarge> {
    if current > allowed {
        return Err(StateTooLarge { current, allowed });
    }
    Ok(())
}

impl From<StateTooLarge> for AgentError {
    fn from(error: StateTooLarge) -> Self {
        Self::state_too_large(error.current as u64, error.allowed as u64)
    }
}

impl From<StateTooLarge> for EngineError {
    fn from(error: StateTooLarge) -> Self {
        Self::from(Refusal::StateTooLarge {
            current: error.current as u64,
            allowed: error.allowed as u64,
        })
    }
}

#[cfg(test)]
mod tests;
