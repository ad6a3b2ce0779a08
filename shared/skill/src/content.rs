//! The content of a message, as a skill author sees it.

use super::{AgentError, AgentResult};
use a2a_lambda_model::task::metadata_keys::CONFIRM;
use a2a_lambda_model::task::{Blob, Message, Part, PartContent};
use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The parts of a message: text, data and files.
///
/// ```
/// use a2a_lambda::skill::Content;
///
/// let content = Content::from_text("Book a flight");
/// assert_eq!(content.first_text(), Some("Book a flight"));
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Content {
    parts: Vec<Part>,
    /// The digest that its message repeats, of whatever type the client sent.
    confirmation: Option<Box<Value>>,
}

impl Content {
    /// Creates content with one text part.
    #[must_use]
    pub fn from_text(text: impl Into<String>) -> Self {
        Self::from_parts(vec![Part::text(text)])
    }

    /// Creates content with one data part.
    ///
    /// # Errors
    /// `SERIALIZATION` when `data` cannot be written as JSON.
    pub fn from_data(data: &impl Serialize) -> AgentResult<Self> {
        let value = serde_json::to_value(data).map_err(AgentError::serialization)?;
        Ok(Self::from_parts(vec![Part::data(value)]))
    }

    /// Creates content with one file part.
    #[must_use]
    pub fn from_file(
        name: impl Into<String>,
        media_type: impl Into<String>,
        bytes: impl Into<Bytes>,
    ) -> Self {
        Self::from_parts(vec![file(name, media_type, bytes)])
    }

    /// Creates content from parts.
    #[must_use]
    pub const fn from_parts(parts: Vec<Part>) -> Self {
        Self {
            parts,
            confirmation: None,
        }
    }

    /// Creates the content of a message.
    pub(crate) fn of_message(message: &Message) -> Self {
        Self {
            parts: message.parts.clone(),
            confirmation: message.metadata.get(CONFIRM).cloned().map(Box::new),
        }
    }

    /// The digest of a question that the client repeats with its answer: `a2a-lambda/confirm` in
    /// the metadata of the message, or else of a part.
    #[must_use]
    pub fn confirmation(&self) -> Option<&Value> {
        let of_parts = || {
            self.parts
                .iter()
                .find_map(|part| part.metadata.get(CONFIRM))
        };
        self.confirmation.as_deref().or_else(of_parts)
    }

    /// Adds a part at the end.
    #[must_use]
    pub fn with(mut self, part: Part) -> Self {
        self.parts.push(part);
        self
    }

    /// The parts, in the order in which they were sent.
    #[must_use]
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The parts by value, in the order in which they were sent.
    #[must_use]
    pub fn into_parts(self) -> Vec<Part> {
        self.parts
    }

    /// The first text part.
    #[must_use]
    pub fn first_text(&self) -> Option<&str> {
        texts(&self.parts).next()
    }

    /// The first data part.
    #[must_use]
    pub fn first_data(&self) -> Option<&Value> {
        first_data(&self.parts)
    }

    /// The first file part.
    #[must_use]
    pub fn first_file(&self) -> Option<FilePart> {
        self.parts.iter().find_map(FilePart::of)
    }

    /// The first text part, as a required input.
    ///
    /// # Errors
    /// `MISSING_INPUT` when there is no text part.
    pub fn text(&self) -> AgentResult<&str> {
        self.first_text()
            .ok_or_else(|| AgentError::missing_input("a text part is needed"))
    }

    /// Decodes a value from the first data part, otherwise from the first text part as a
    /// JSON string.
    ///
    /// # Errors
    /// `MISSING_INPUT` without a data or text part. `INVALID_INPUT`, with a JSON pointer,
    /// when the value does not decode as `T`.
    pub fn parse<T: DeserializeOwned>(&self) -> AgentResult<T> {
        super::input::read(self)
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        Self::from_text(text)
    }
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        Self::from_text(text)
    }
}

/// One data part with the value.
impl From<Value> for Content {
    fn from(value: Value) -> Self {
        Self::from_parts(vec![Part::data(value)])
    }
}

impl From<Vec<Part>> for Content {
    fn from(parts: Vec<Part>) -> Self {
        Self::from_parts(parts)
    }
}

/// A file part of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePart {
    /// The file name, if the client sent one.
    pub name: Option<String>,
    /// The media type; `application/octet-stream` if the client sent none.
    pub media_type: String,
    /// The bytes, or their location.
    pub source: FileSource,
}

/// The bytes of a file, or their location.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileSource {
    /// The bytes.
    Bytes(Bytes),
    /// A URL from the caller. The runtime has not fetched it. Do not trust it: it may point
    /// to an internal address.
    Url(String),
    /// The location of a file in the store, because it is too large to be in its message.
    /// Read it with [`TaskContext::open_file`](super::TaskContext::open_file).
    Stored(Blob),
}

impl FilePart {
    /// What a model reads in place of the file: its name and its media type.
    #[must_use]
    pub fn label(&self) -> String {
        match &self.name {
            Some(name) => format!("[file: {name} ({})]", self.media_type),
            None => format!("[file ({})]", self.media_type),
        }
    }

    /// The file of a part, if it has one.
    #[must_use]
    pub fn of(part: &Part) -> Option<Self> {
        let source = match &part.content {
            PartContent::Raw(bytes) => FileSource::Bytes(bytes.clone()),
            PartContent::Url(url) => FileSource::Url(url.clone()),
            PartContent::Stored(blob) => FileSource::Stored(blob.clone()),
            PartContent::Text(_) | PartContent::Data(_) => return None,
        };
        Some(Self {
            name: part.filename.clone(),
            media_type: part.effective_media_type().to_owned(),
            source,
        })
    }

    /// The file as a part, to send or deliver it again. It does not read stored bytes.
    #[must_use]
    pub fn into_part(self) -> Part {
        let content = match self.source {
            FileSource::Bytes(bytes) => PartContent::Raw(bytes),
            FileSource::Url(url) => PartContent::Url(url),
            FileSource::Stored(blob) => PartContent::Stored(blob),
        };
        Part {
            filename: self.name,
            media_type: Some(self.media_type),
            ..Part::new(content)
        }
    }

    /// The bytes, if they are in the message.
    #[must_use]
    pub const fn bytes(&self) -> Option<&Bytes> {
        match &self.source {
            FileSource::Bytes(bytes) => Some(bytes),
            FileSource::Url(_) | FileSource::Stored(_) => None,
        }
    }
}

/// The texts of parts.
pub(super) fn texts(parts: &[Part]) -> impl Iterator<Item = &str> {
    parts.iter().filter_map(|part| match &part.content {
        PartContent::Text(text) => Some(text.as_str()),
        _ => None,
    })
}

/// The first data part.
pub(super) fn first_data(parts: &[Part]) -> Option<&Value> {
    parts.iter().find_map(|part| match &part.content {
        PartContent::Data(value) => Some(value),
        _ => None,
    })
}

/// Creates a file part.
pub(super) fn file(
    name: impl Into<String>,
    media_type: impl Into<String>,
    bytes: impl Into<Bytes>,
) -> Part {
    Part {
        filename: Some(name.into()),
        media_type: Some(media_type.into()),
        ..Part::new(PartContent::Raw(bytes.into()))
    }
}
