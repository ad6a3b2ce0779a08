//! Parts: the content of messages and artifacts.

use super::Metadata;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use serde_json::Value;

/// One part of a message or artifact, with exactly one content.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Part {
    /// The content.
    #[serde(flatten)]
    pub content: PartContent,
    /// The name of a file part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filename: Option<String>,
    /// The declared media type; see [`Part::known_media_type`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// Free-form members.
    #[serde(default, skip_serializing_if = "Metadata::is_empty")]
    pub metadata: Metadata,
}

/// The content of a part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PartContent {
    /// Plain text.
    Text(String),
    /// The bytes of a file.
    Raw(#[serde(serialize_with = "to_base64", deserialize_with = "from_base64")] Bytes),
    /// The URL of a file. The runtime never fetches it.
    Url(String),
    /// Any JSON value, `null` included.
    Data(Value),
    /// The bytes of a file in the blob store. Only records contain this; it is
    /// replaced by [`PartContent::Raw`] or a URL before a skill or client reads it.
    #[serde(rename = "object")]
    Stored(Blob),
}

/// A pointer to bytes in the blob store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blob {
    /// The server-made object key.
    pub key: String,
    /// Length in bytes.
    pub size: u64,
    /// SHA-256 in lower-case hex, checked on read.
    pub sha256: String,
    /// The id of the upload that the bytes came from; the upload is deleted with the
    /// task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upload: Option<String>,
}

fn to_base64<S: Serializer>(bytes: &Bytes, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&STANDARD.encode(bytes))
}

fn from_base64<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Bytes, D::Error> {
    let text = String::deserialize(deserializer)?;
    STANDARD
        .decode(text)
        .map(Bytes::from)
        .map_err(D::Error::custom)
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

    /// The media type that decides: that of [`Self::known_media_type`], else
    /// `application/octet-stream`.
    #[must_use]
    pub fn effective_media_type(&self) -> &str {
        self.known_media_type()
            .unwrap_or("application/octet-stream")
    }

    /// The declared media type; else `text/plain` for text, `application/json` for data, and
    /// for a file the type of its first bytes or of its name. `None` for a file that tells
    /// nothing of its type, which is optional (A2A 1.0 §4.1.6, A2A 0.3 §6.6.1).
    #[must_use]
    pub fn known_media_type(&self) -> Option<&str> {
        let media_type = self.media_type.as_deref();
        media_type.or_else(|| match &self.content {
            PartContent::Text(_) => Some("text/plain"),
            PartContent::Data(_) => Some("application/json"),
            // A text may begin with the letters of a format.
            PartContent::Raw(bytes) if std::str::from_utf8(bytes).is_ok() => {
                self.of_name().or_else(|| of_bytes(bytes))
            }
            PartContent::Raw(bytes) => of_bytes(bytes).or_else(|| self.of_name()),
            PartContent::Url(_) | PartContent::Stored(_) => self.of_name(),
        })
    }

    fn of_name(&self) -> Option<&'static str> {
        mime_guess::from_path(self.filename.as_deref()?).first_raw()
    }

    /// Shows data as text, its JSON.
    pub fn show_as_text(&mut self) {
        if let PartContent::Data(value) = &self.content {
            self.content = PartContent::Text(value.to_string());
            self.media_type = None;
        }
    }

    /// Whether `next` is text of the same kind, and neither has a name or metadata.
    #[must_use]
    pub(crate) fn is_continued_by(&self, next: &Self) -> bool {
        let is_plain = |part: &Self| {
            let is_text = matches!(part.content, PartContent::Text(_));
            is_text && part.filename.is_none() && part.metadata.is_empty()
        };
        is_plain(self) && is_plain(next) && self.media_type == next.media_type
    }

    /// Whether it is a text without a character.
    #[must_use]
    pub fn is_empty_text(&self) -> bool {
        matches!(&self.content, PartContent::Text(text) if text.is_empty())
    }

    /// Whether it is a file.
    #[must_use]
    pub const fn is_file(&self) -> bool {
        !matches!(self.content, PartContent::Text(_) | PartContent::Data(_))
    }
}

fn of_bytes(bytes: &[u8]) -> Option<&'static str> {
    infer::get(bytes).map(|kind| kind.mime_type())
}

/// Whether two media types or ranges match a common type. A bare word is a family: `text` is
/// `text/*`, `data` is JSON, `file` is anything.
#[must_use]
pub fn media_types_meet(a: &str, b: &str) -> bool {
    let ((a_type, a_subtype), (b_type, b_subtype)) = (bare(a), bare(b));
    let same = |a: &str, b: &str| a == b || a == "*" || b == "*";
    same(&a_type, &b_type) && same(&a_subtype, &b_subtype)
}

/// The type and the subtype of a media type, in lower case and without parameters.
fn bare(media_type: &str) -> (String, String) {
    // RFC 9110 §8.3.1: type and subtype are case-insensitive; parameters follow a `;`.
    let essence = media_type.split(';').next().unwrap_or_default();
    // Clients name a family of types by its word, as A2A 0.1 names the kinds of parts.
    let (kind, subtype) = match essence.split_once('/') {
        Some(pair) => pair,
        None if essence.trim().eq_ignore_ascii_case("file") => ("*", "*"),
        None if essence.trim().eq_ignore_ascii_case("data") => ("application", "json"),
        None => (essence, "*"),
    };
    (
        kind.trim().to_ascii_lowercase(),
        subtype.trim().to_ascii_lowercase(),
    )
}
