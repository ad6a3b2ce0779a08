//! Limits how much a skill may keep.

use super::EngineError;
use crate::skill::AgentError;
use crate::task::Refusal;

/// A skill wants to keep more than is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StateTooLarge {
    /// Bytes in stored form.
    pub(super) current: usize,
    /// The most bytes allowed.
    pub(super) allowed: usize,
}

/// Checks that `current` bytes may be kept, before anything is written. The size is
/// that of the stored form: `stored::saved_size` of a task, `stored::state_size` of a
/// thread.
///
/// # Errors
/// [`StateTooLarge`], which converts to [`AgentError`] and [`EngineError`].
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
