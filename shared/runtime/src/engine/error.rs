//! An error with two faces: the refusal a client may see, and the cause it
//! never does.

use crate::store::StoreError;
use crate::task::Refusal;

/// Seconds after which a client may try again when the store is away.
const RETRY_AFTER: u64 = 1;

/// Why a method failed.
#[derive(Debug, thiserror::Error)]
#[error("{refusal}")]
pub struct EngineError {
    /// What the client is told.
    pub refusal: Refusal,
    /// What the log is told, once, at the edge.
    #[source]
    pub(crate) cause: Option<Cause>,
}

/// What went wrong inside.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Cause {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The engine's own rules were broken.
    #[error("{0}")]
    Broken(String),
}

impl EngineError {
    /// Our own mistake, described for the log.
    pub(crate) fn broken(text: impl Into<String>) -> Self {
        Self {
            refusal: Refusal::Internal,
            cause: Some(Cause::Broken(text.into())),
        }
    }

    /// Whether other writes were in the way of one, of which nothing is stored.
    pub(crate) const fn is_contended(&self) -> bool {
        matches!(self.cause, Some(Cause::Store(StoreError::Contended(_))))
    }
}

impl EngineError {
    /// Whether what is stored cannot be read, however often it is tried.
    pub(crate) const fn is_corrupt(&self) -> bool {
        matches!(self.cause, Some(Cause::Store(StoreError::Corrupt(_))))
    }

    /// Writes the cause to the log, once, at the edge that answers. A refusal
    /// without a cause is the client's doing and no event.
    pub(crate) fn log(&self) {
        if let Some(cause) = &self.cause {
            tracing::error!(error.cause = %cause, "a call failed: {}", self.refusal);
        }
    }
}

impl From<Refusal> for EngineError {
    fn from(refusal: Refusal) -> Self {
        Self {
            refusal,
            cause: None,
        }
    }
}

impl From<StoreError> for EngineError {
    fn from(error: StoreError) -> Self {
        let refusal = match &error {
            StoreError::Unavailable(_) | StoreError::Contended(_) => Refusal::Unavailable {
                retry_after: RETRY_AFTER,
            },
            StoreError::TooLarge(_)
            | StoreError::Corrupt(_)
            | StoreError::Refused(_)
            | StoreError::Source(_) => Refusal::Internal,
        };
        Self {
            refusal,
            cause: Some(Cause::Store(error)),
        }
    }
}
