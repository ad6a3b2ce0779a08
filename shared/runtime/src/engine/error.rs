//! Defines the engine's error: the part that a client may see, and the cause that only the
//! log gets.

use crate::auth::AuthError;
use crate::store::{SizeError, StoreError, stored};
use crate::task::{A2aError, Generation};
use crate::telemetry::outcomes::{CALLS, FaultClass, TASKS, class_of};
use a2a_lambda_skill::AgentError;
use a2a_lambda_wire::ErrorRow;

/// Seconds after which a client may try again when the store is unavailable.
const RETRY_AFTER: u64 = 1;

/// Why a method failed.
#[derive(Debug, thiserror::Error)]
#[error("{a2a_error}")]
pub struct EngineError {
    /// The error that the client sees.
    pub a2a_error: A2aError,
    /// The cause, logged once at the edge.
    #[source]
    pub(crate) cause: Option<Cause>,
}

/// The internal cause of an error.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Cause {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A rule of the engine was broken.
    #[error("{0}")]
    Broken(String),
    /// What the skill does to its session failed while it was stored.
    #[error("{0}")]
    Skill(AgentError),
}

impl EngineError {
    /// An internal error; only the log gets `text`.
    pub(crate) fn internal(text: impl Into<String>) -> Self {
        Self {
            a2a_error: A2aError::Internal,
            cause: Some(Cause::Broken(text.into())),
        }
    }

    /// An error of the skill that is known only when its changes are stored.
    pub(crate) const fn of_skill(error: AgentError) -> Self {
        Self {
            a2a_error: A2aError::Internal,
            cause: Some(Cause::Skill(error)),
        }
    }

    /// The error with which a task fails whose changes of `bytes` bytes can never be stored:
    /// they are too large, or the skill makes them fail.
    pub(crate) fn ends_task(&self, bytes: usize) -> Option<AgentError> {
        match (&self.a2a_error, &self.cause) {
            (_, Some(Cause::Skill(error))) => Some(error.clone()),
            (&A2aError::StateTooLarge { current, limit }, _) => {
                Some(AgentError::state_too_large(current, limit))
            }
            (_, Some(Cause::Store(StoreError::TooLarge(_)))) => Some(AgentError::state_too_large(
                bytes as u64,
                stored::OPEN_MAX_BYTES as u64,
            )),
            (&A2aError::RateLimited { retry_after }, _) => {
                Some(AgentError::rate_limited(retry_after))
            }
            _ => None,
        }
    }

    /// Whether concurrent writes made a write fail; nothing of it is stored.
    pub(crate) const fn is_contended(&self) -> bool {
        matches!(self.cause, Some(Cause::Store(StoreError::Contended(_))))
    }

    /// Whether a store, the bucket, a key service or a secret was unavailable. It says
    /// nothing about the task.
    pub(crate) const fn is_outage(&self) -> bool {
        matches!(&self.cause, Some(Cause::Store(error)) if error.is_outage())
    }

    /// Whether content of this one task cannot be read: it is damaged, or S3 refuses it.
    pub(crate) const fn is_unreadable(&self) -> bool {
        matches!(
            self.cause,
            Some(Cause::Store(StoreError::Corrupt(_) | StoreError::Denied(_)))
        )
    }

    /// Who has to act on the error of a call.
    pub(crate) fn class(&self) -> FaultClass {
        match (&self.a2a_error, &self.cause) {
            (A2aError::Internal, Some(Cause::Store(_))) => FaultClass::Store,
            (A2aError::Internal, Some(Cause::Skill(error))) => {
                class_of(TASKS, error.code().as_str())
            }
            // A brake: nothing has failed.
            (&A2aError::Unavailable { retry_after }, None) if retry_after > RETRY_AFTER => {
                FaultClass::Caller
            }
            (A2aError::Unfinished { .. }, _) => FaultClass::Caller,
            (error, _) => class_of(CALLS, ErrorRow::of(error, Generation::V10).reason),
        }
    }

    /// Writes the cause to the log, once, at the edge. An error without a cause is the
    /// client's and is not logged.
    pub(crate) fn log(&self) {
        if let Some(cause) = &self.cause {
            tracing::error!(error.cause = %cause, "a call failed: {}", self.a2a_error);
        }
    }

    /// Logs the cause of an error, and returns what the client sees.
    pub(crate) fn log_cause(error: impl Into<Self>) -> A2aError {
        let error = error.into();
        error.log();
        error.a2a_error
    }
}

impl From<A2aError> for EngineError {
    fn from(a2a_error: A2aError) -> Self {
        Self {
            a2a_error,
            cause: None,
        }
    }
}

impl From<AuthError> for EngineError {
    fn from(error: AuthError) -> Self {
        match error {
            AuthError::Refused(_) => A2aError::Unauthenticated.into(),
            AuthError::Unavailable(error) => error.into(),
        }
    }
}

impl From<StoreError> for EngineError {
    fn from(error: StoreError) -> Self {
        let a2a_error = match &error {
            // What a client sent has made its task too large: there is nothing to log.
            &StoreError::TooLarge(SizeError::Bytes { current, limit }) => {
                return A2aError::StateTooLarge { current, limit }.into();
            }
            // Only these errors are worth another request of the client.
            StoreError::Unavailable(_) | StoreError::Denied(_) | StoreError::Contended(_) => {
                A2aError::Unavailable {
                    retry_after: RETRY_AFTER,
                }
            }
            StoreError::Form(_) => A2aError::UnknownStoredForm,
            StoreError::TooLarge(SizeError::Other(_))
            | StoreError::Corrupt(_)
            | StoreError::Refused(_)
            | StoreError::Source(_) => A2aError::Internal,
        };
        Self {
            a2a_error,
            cause: Some(Cause::Store(error)),
        }
    }
}
