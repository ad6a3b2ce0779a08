//! Limits how much a skill may keep.

use crate::engine::EngineError;
use crate::task::A2aError;
use a2a_lambda_skill::AgentError;

/// A skill wants to keep more than is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine) struct StateTooLargeError {
    /// Bytes in stored form.
    pub(in crate::engine) current: usize,
    /// The most bytes allowed.
    pub(in crate::engine) allowed: usize,
}

/// Checks that `current` bytes may be kept, before anything is written. The size is
/// that of the stored form: `stored::saved_size` of a task, `stored::state_size` of a
/// thread.
///
/// # Errors
/// [`StateTooLargeError`], which converts to [`AgentError`] and [`EngineError`].
pub(in crate::engine) const fn check_state_size(
    current: usize,
    limit: usize,
) -> Result<(), StateTooLargeError> {
    if current > limit {
        return Err(StateTooLargeError {
            current,
            allowed: limit,
        });
    }
    Ok(())
}

impl From<StateTooLargeError> for AgentError {
    fn from(error: StateTooLargeError) -> Self {
        Self::state_too_large(error.current as u64, error.allowed as u64)
    }
}

impl From<StateTooLargeError> for EngineError {
    fn from(error: StateTooLargeError) -> Self {
        Self::from(A2aError::StateTooLarge {
            current: error.current as u64,
            allowed: error.allowed as u64,
        })
    }
}

#[cfg(test)]
mod tests;
