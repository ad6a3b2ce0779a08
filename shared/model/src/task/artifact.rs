//! Artifacts: the output of a task.

use super::{Metadata, Part};

/// An output of a task. It is final when the task completes.
#[derive(Debug, Clone, PartialEq)]
pub struct Artifact {
    /// The id, made by the server; another task makes another id for the same name.
    pub id: String,
    /// The name identifies the artifact inside its task.
    pub name: Option<String>,
    /// A description for people.
    pub description: Option<String>,
    /// The content; in an update, one chunk of it.
    pub parts: Vec<Part>,
    /// URIs of extensions used.
    pub extensions: Vec<String>,
    /// Free-form members.
    pub metadata: Metadata,
}

impl Artifact {
    /// Whether `self` and `whole` differ in their parts only.
    #[must_use]
    pub fn is_chunk_of(&self, whole: &Self) -> bool {
        let Self {
            id,
            name,
            description,
            parts: _,
            extensions,
            metadata,
        } = self;
        *id == whole.id
            && *name == whole.name
            && *description == whole.description
            && *extensions == whole.extensions
            && *metadata == whole.metadata
    }

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
        }
    }
}
