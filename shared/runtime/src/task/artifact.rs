//! What a task delivers.

use super::{Metadata, Part};

/// A deliverable of a task. It is final when the task completes.
#[derive(Debug, Clone, PartialEq)]
pub struct Artifact {
    /// Server-made; a new task makes a new id for the same name.
    pub id: String,
    /// Inside one task the name identifies the artifact.
    pub name: Option<String>,
    /// For people.
    pub description: Option<String>,
    /// The content; a chunk of it in an update.
    pub parts: Vec<Part>,
    /// URIs of extensions used.
    pub extensions: Vec<String>,
    /// Free members.
    pub metadata: Metadata,
}
