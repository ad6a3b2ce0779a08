//! The documents of skills.
//!
//! A document is a JSON text of at most 256 KB under a key in a collection. A collection is
//! of a tenant, or of one subject of it; no call reaches two of them.

use super::{SizeError, StoreError};
use crate::task::{Subject, SubjectKey, TenantId, Timestamp, WriteId};

/// The most bytes of the text of a document. An item of DynamoDB has at most 400 KB.
pub const DOCUMENT_MAX: usize = 256 * 1024;
/// The most bytes of the name of a collection, and of a key.
const LONGEST: usize = 512;

/// Whose documents a collection has.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum DocumentOwner {
    /// All callers of the tenant share them. One that names its author goes when that subject is
    /// erased.
    Tenant(TenantId),
    /// One subject. They go when the subject is erased.
    Subject(SubjectKey),
}

impl DocumentOwner {
    /// The tenant.
    #[must_use]
    pub const fn tenant(&self) -> &TenantId {
        match self {
            Self::Tenant(tenant) => tenant,
            Self::Subject(subject) => subject.tenant(),
        }
    }
}

/// A collection of documents.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct DocumentCollection {
    owner: DocumentOwner,
    name: String,
}

/// Why a name is not a collection or a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a name of documents has 1 to 512 bytes, no control character and no `#`")]
pub struct DocumentNameError;

impl DocumentCollection {
    /// The collection `name`.
    ///
    /// # Errors
    /// [`DocumentNameError`].
    pub fn new(owner: DocumentOwner, name: impl Into<String>) -> Result<Self, DocumentNameError> {
        let name = check_name(name.into())?;
        Ok(Self { owner, name })
    }

    /// Whose it is.
    #[must_use]
    pub const fn owner(&self) -> &DocumentOwner {
        &self.owner
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// The key of a document in its collection: 1 to 512 bytes without control characters and
/// `#`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct DocumentKey(String);

impl DocumentKey {
    /// Checks a key.
    ///
    /// # Errors
    /// [`DocumentNameError`].
    pub fn parse(text: impl Into<String>) -> Result<Self, DocumentNameError> {
        check_name(text.into()).map(Self)
    }

    /// Its text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn check_name(name: String) -> Result<String, DocumentNameError> {
    let wrong = |letter: char| letter == '#' || letter.is_control();
    let valid = (1..=LONGEST).contains(&name.len()) && !name.contains(wrong);
    valid.then_some(name).ok_or(DocumentNameError)
}

/// A stored document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredDocument {
    /// Its key.
    pub key: DocumentKey,
    /// Its content.
    pub text: String,
    /// The id of the write that made it: another write has another one.
    pub version: WriteId,
}

/// What a write expects to find.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DocumentExpect {
    /// Anything. Until the call returns, the write may be done again, also over a later write of
    /// another turn.
    Any,
    /// No document.
    Absent,
    /// The document of this write.
    Version(WriteId),
}

/// A write of one document.
#[derive(Debug, Clone)]
pub struct DocumentWrite {
    /// The collection.
    pub collection: DocumentCollection,
    /// The key.
    pub key: DocumentKey,
    /// The new content; `None` removes the document.
    pub text: Option<String>,
    /// The subject of the tenant with whose erasure the document goes; `None` if it stays.
    pub author: Option<Subject>,
    /// From when on the document is gone; `None` is never.
    pub expires_at: Option<Timestamp>,
    /// What it expects to find.
    pub expect: DocumentExpect,
    /// The id of this write. A repeat of it is done once, unless it expects anything.
    pub id: WriteId,
    /// The time of the write.
    pub now: Timestamp,
}

/// A part of a collection, ordered by the bytes of the keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentPage {
    /// The documents.
    pub documents: Vec<StoredDocument>,
    /// The bytes of the items that were read, with those of documents that are gone.
    pub bytes: usize,
    /// The key behind which the next page begins; `None` on the last page.
    pub next: Option<DocumentKey>,
}

/// Refuses a text that no store keeps.
///
/// # Errors
/// [`StoreError::TooLarge`].
pub fn check_document(write: &DocumentWrite) -> Result<(), StoreError> {
    let size = write.text.as_ref().map_or(0, String::len);
    SizeError::check(size, DOCUMENT_MAX)
}

#[cfg(test)]
mod tests {
    use super::{DocumentKey, DocumentNameError};
    use a2a_lambda_rows::each_row;

    #[test]
    fn a_key_is_any_short_text_without_the_separator_of_the_store() {
        each_row(["a", "notes/2026.md", "ä ö", &"x".repeat(512)], |good| {
            assert_eq!(DocumentKey::parse(good).unwrap().as_str(), good);
        });
        each_row(["", "a#b", "a\nb", "\u{0}", &"x".repeat(513)], |bad| {
            assert_eq!(DocumentKey::parse(bad), Err(DocumentNameError), "{bad:?}");
        });
    }
}
