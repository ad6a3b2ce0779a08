//! What can fail in a repository of knowledge.

use a2a_lambda::skill::AgentError;
use a2a_lambda::store::StoreError;
use gix_hash::ObjectId;

/// A repository cannot do what it was called for.
///
/// The text of [`Self::Input`] is for the caller. The others are defects of the store, for the
/// log.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KnowledgeError {
    /// An argument cannot be used.
    #[error("{0}")]
    Input(String),
    /// The store has no object with this id.
    #[error("object {0} is missing")]
    Missing(ObjectId),
    /// The stored bytes are not the object with this id.
    #[error("object {id} is corrupt: {reason}")]
    Corrupt {
        /// The id by which it was read.
        id: ObjectId,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// An object cannot be encoded.
    #[error("failed to encode an object")]
    Encode(#[source] std::io::Error),
    /// A file is not one that this program wrote.
    #[error("the file is no item: {0}")]
    Item(&'static str),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl KnowledgeError {
    /// The error that a caller gets.
    ///
    /// This is no `From`, because [`AgentError`] converts every error to `INTERNAL_ERROR`.
    pub(super) fn agent_error(self) -> AgentError {
        match self {
            Self::Input(text) => AgentError::invalid_input(text),
            // A content is checked before, so it is a folder.
            Self::Store(StoreError::Refused(_)) => {
                AgentError::invalid_input("`path` is in a folder with too many items")
            }
            _ => AgentError::internal(self),
        }
    }
}
