//! Parts: the content of messages and artifacts.

use super::Metadata;
use bytes::Bytes;
use serde_json::Value;

/// One part of a message or artifact, with exactly one content.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// The content.
    pub content: PartContent,
    /// The name of a file part.
    pub filename: Option<String>,
    /// The declared media type; see [`Part::effective_media_type`].
    pub media_type: Option<String>,
    /// Free-form members.
    pub metadata: Metadata,
}

/// The content of a part.
#[derive(Debug, Clone, PartialEq)]
pub enum PartContent {
    /// Plain text.
    Text(String),
    /// The bytes of a file.
    Raw(Bytes),
    /// The URL of a file. The runtime never fetches it.
    Url(String),
    /// Any JSON value, `null` included.
    Data(Value),
    /// The bytes of a file in the blob store. Only records contain this; it is
    /// replaced by [`PartContent::Raw`] or a URL before a skill or client reads it.
    Stored(Blob),
}

/// A pointer to bytes in the blob store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blob {
    /// The server-made object key.
    pub key: String,
    /// Length in bytes.
    pub size: u64,
    /// SHA-256 in lower-case hex, checked on read.
    pub sha256: String,
    /// The id of the upload that the bytes came from; the upload is deleted with the
    /// task.
    pub upload: Option<String>,
}

impl Part {
    /// A part with this content and nothing else.
    #[must_use]
    pub fn new(content: PartContent) -> Self {
        Self {
            content,
            filename: None,
            media_type: None,
            metadata: Metadata::new(),
        }
    }

    /// A text part.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::new(PartContent::Text(text.into()))
    }

    /// A data part.
    #[must_use]
    pub fn data(value: Value) -> Self {
        Self::new(PartContent::Data(value))
    }

    /// The media type that decides: the declared one; else `text/plain` for text,
    /// `application/json` for data, `application/octet-stream` for a file.
    #[must_use]
    pub fn effective_media_type(&self) -> &str {
        match (&self.media_type, &self.content) {
            (Some(media_type), _) => media_type,
            (None, PartContent::Text(_)) => "text/plain",
            (None, PartContent::Data(_)) => "application/json",
            (None, PartContent::Raw(_) | PartContent::Url(_) | PartContent::Stored(_)) => {
                "application/octet-stream"
            }
        }
    }
}
