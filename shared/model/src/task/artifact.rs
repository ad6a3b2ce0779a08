//! Artifacts: the output of a task.

use super::{Metadata, Part, PartContent};
use serde::{Deserialize, Serialize};

/// An output of a task. It is final when the task completes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Artifact {
    /// The id, made by the server; another task makes another id for the same name.
    #[serde(rename = "artifactId")]
    pub id: String,
    /// The name identifies the artifact inside its task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// A description for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The content; in an update, one chunk of it.
    pub parts: Vec<Part>,
    /// URIs of extensions used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extensions: Vec<String>,
    /// Free-form members.
    #[serde(default, skip_serializing_if = "Metadata::is_empty")]
    pub metadata: Metadata,
    /// The turn whose skill wrote it in chunks. Adjacent texts of them are one text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chunks_of: Option<u32>,
}

impl Artifact {
    /// The artifact without its content.
    #[must_use]
    pub fn without_parts(&self) -> Self {
        Self {
            id: self.id.clone(),
            name: self.name.clone(),
            description: self.description.clone(),
            parts: Vec::new(),
            extensions: self.extensions.clone(),
            metadata: self.metadata.clone(),
            chunks_of: self.chunks_of,
        }
    }

    /// Joins adjacent chunks of one text. A stream shows each chunk as it came.
    pub fn join_chunks(&mut self) {
        if self.chunks_of.is_none() {
            return;
        }
        let mut parts: Vec<Part> = Vec::new();
        for part in std::mem::take(&mut self.parts) {
            match (parts.last_mut(), &part.content) {
                (Some(last), PartContent::Text(chunk)) if last.is_continued_by(&part) => {
                    if let PartContent::Text(text) = &mut last.content {
                        text.push_str(chunk);
                    }
                }
                _ => parts.push(part),
            }
        }
        // A writer ends with an empty text.
        if parts.len() > 1 && parts.last().is_some_and(Part::is_empty_text) {
            parts.pop();
        }
        self.parts = parts;
    }
}
