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
