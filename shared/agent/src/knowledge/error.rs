//! What can fail in a repository of knowledge.

use super::item::ItemError;
use super::path::PathError;
use a2a_lambda::store::StoreError;
use gix_hash::ObjectId;

/// A repository cannot do what it was called for.
///
/// The texts of [`Self::Path`], [`Self::InTheWay`], [`Self::TooLong`] and [`Self::Argument`]
/// are for the caller. The others are defects of the store, for the log.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KnowledgeError {
    /// The path or the scope is not valid.
    #[error(transparent)]
    Path(#[from] PathError),
    /// A folder of the path is an item, or the path is a folder.
    #[error("`path` is `{path}`, but `{other}` is {what}")]
    InTheWay {
        /// The path that was to be written.
        path: String,
        /// What is there.
        other: String,
        /// `an item` or `a folder`.
        what: &'static str,
    },
    /// A content has too many bytes.
    #[error("`{field}` has {bytes} bytes, expected at most {most}")]
    TooLong {
        /// The argument.
        field: &'static str,
        /// Its size.
        bytes: usize,
        /// The limit.
        most: usize,
    },
    /// An argument is not valid for another reason.
    #[error("`{field}` {reason}")]
    Argument {
        /// The argument.
        field: &'static str,
        /// What is wrong with it.
        reason: &'static str,
    },
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
    #[error(transparent)]
    Item(#[from] ItemError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}
