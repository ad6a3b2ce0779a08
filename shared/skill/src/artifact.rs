//! Artifacts and referenced tasks, as a skill author sees them.

use super::content::{file, first_data, texts};
use super::{AgentError, AgentResult, FileContent, FilePart, FileReader};
use a2a_lambda_model::task::{self, Metadata, Part, PartContent, Task, TaskId, TaskState};
use bytes::Bytes;
use serde::Serialize;
use serde_json::Value;

/// A result of a task, or a chunk of one.
///
/// The name identifies an artifact within its task: a partial, a chunked and a final
/// artifact of the same name are one artifact.
///
/// ```
/// use a2a_lambda::skill::Artifact;
///
/// let artifact = Artifact::from_json("sum.json", &serde_json::json!({"sum": 3}))?;
/// assert_eq!(artifact.name, "sum.json");
/// # Ok::<(), a2a_lambda::skill::AgentError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Artifact {
    /// The name, unique within the task.
    pub name: String,
    /// A description for people.
    pub description: Option<String>,
    /// The content.
    pub parts: Vec<Part>,
    /// The reader of the first part's bytes, until they are stored.
    source: Option<FileReader>,
}

impl Artifact {
    /// Creates an artifact with one data part.
    ///
    /// # Errors
    /// `SERIALIZATION` when `value` cannot be written as JSON.
    pub fn from_json(name: impl Into<String>, value: &impl Serialize) -> AgentResult<Self> {
        let value = serde_json::to_value(value).map_err(AgentError::serialization)?;
        Ok(Self::from_parts(name, vec![Part::data(value)]))
    }

    /// Creates an artifact with one text part.
    #[must_use]
    pub fn from_text(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self::from_parts(name, vec![Part::text(text)])
    }

    /// Creates an artifact with one file part; the file has the artifact's name. The
    /// content is bytes or a [`FileReader`]. A reader is read and stored when the artifact
    /// is delivered, whatever its length. The task refers to the file only after all of it
    /// is stored.
    #[must_use]
    pub fn from_file(
        name: impl Into<String>,
        media_type: impl Into<String>,
        content: impl Into<FileContent>,
    ) -> Self {
        let name = name.into();
        let (bytes, source) = match content.into() {
            FileContent::Bytes(bytes) => (bytes, None),
            FileContent::Reader(reader) => (Bytes::new(), Some(reader)),
        };
        let part = file(name.clone(), media_type, bytes);
        Self {
            source,
            ..Self::from_parts(name, vec![part])
        }
    }

    /// Creates an artifact from parts.
    #[must_use]
    pub fn from_parts(name: impl Into<String>, parts: Vec<Part>) -> Self {
        Self {
            name: name.into(),
            description: None,
            parts,
            source: None,
        }
    }

    /// The reader of the first part's bytes, if they are not stored yet.
    pub const fn source(&self) -> Option<&FileReader> {
        self.source.as_ref()
    }

    /// Replaces the first part's content after its reader was read.
    pub fn fill(&mut self, content: PartContent) {
        self.source = None;
        if let Some(part) = self.parts.first_mut() {
            part.content = content;
        }
    }

    /// Sets the description.
    #[must_use]
    pub fn described(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// The text parts, joined without a separator, since chunks of one text arrive as
    /// parts. `None` if there is no text part.
    #[must_use]
    pub fn text(&self) -> Option<String> {
        let texts: Vec<&str> = texts(&self.parts).collect();
        (!texts.is_empty()).then(|| texts.concat())
    }

    /// The first data part.
    #[must_use]
    pub fn data(&self) -> Option<&Value> {
        first_data(&self.parts)
    }

    /// The first file part. [`TaskContext::read_file`](super::TaskContext::read_file) gives its
    /// bytes, wherever they are stored.
    #[must_use]
    pub fn file(&self) -> Option<FilePart> {
        self.parts.iter().find_map(FilePart::of)
    }

    /// The artifact of the task, with the id that the server made for the name.
    pub fn into_task_artifact(self, id: impl Into<String>) -> task::Artifact {
        task::Artifact {
            id: id.into(),
            name: Some(self.name),
            description: self.description,
            parts: self.parts,
            extensions: Vec::new(),
            metadata: Metadata::new(),
            chunks_of: None,
        }
    }
}

impl From<task::Artifact> for Artifact {
    fn from(artifact: task::Artifact) -> Self {
        Self {
            // An artifact without a name is found by its id.
            name: artifact.name.unwrap_or(artifact.id),
            description: artifact.description,
            parts: artifact.parts,
            source: None,
        }
    }
}

/// An earlier task of the message's `referenceTaskIds` that the caller may read.
#[derive(Debug, Clone, PartialEq)]
pub struct ReferencedTask {
    /// The task id.
    pub id: TaskId,
    /// The state of the task when it was loaded.
    pub state: TaskState,
    /// The artifacts of the task.
    pub artifacts: Vec<Artifact>,
}

impl ReferencedTask {
    /// The artifact with this name.
    #[must_use]
    pub fn artifact(&self, name: &str) -> Option<&Artifact> {
        self.artifacts.iter().find(|artifact| artifact.name == name)
    }
}

impl From<&Task> for ReferencedTask {
    fn from(task: &Task) -> Self {
        let artifacts = task.artifacts.iter().flatten();
        Self {
            id: task.id.clone(),
            state: task.status.state,
            artifacts: artifacts.cloned().map(Artifact::from).collect(),
        }
    }
}
