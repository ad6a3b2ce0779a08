//! What a skill delivers, as an author sees it.

use super::content::file;
use super::{AgentError, AgentResult, FileContent, FileReader};
use crate::task::{self, Metadata, Part, PartContent, Task, TaskId, TaskState};
use bytes::Bytes;
use serde::Serialize;
use serde_json::Value;

/// A deliverable, or a chunk of one.
///
/// Inside one task the name identifies it: a partial, a chunked and a final
/// artifact of one name are the same artifact.
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
    /// Its name.
    pub name: String,
    /// For people.
    pub description: Option<String>,
    /// Its content.
    pub parts: Vec<Part>,
    /// Where its first part comes from, until it is stored.
    source: Option<FileReader>,
}

impl Artifact {
    /// An artifact of one data part.
    ///
    /// # Errors
    /// `SERIALIZATION` when `value` cannot be written as JSON.
    pub fn from_json(name: impl Into<String>, value: &impl Serialize) -> AgentResult<Self> {
        let value = serde_json::to_value(value).map_err(AgentError::serialization)?;
        Ok(Self::from_parts(name, vec![Part::data(value)]))
    }

    /// An artifact of one text part.
    #[must_use]
    pub fn from_text(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self::from_parts(name, vec![Part::text(text)])
    }

    /// An artifact of one file part; the file has the artifact's name. It is
    /// made of bytes, or of what a [`FileReader`] gives: the file is then read
    /// and stored when the artifact is delivered, whatever its length, and the
    /// task names it when all of it is stored.
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

    /// An artifact of these parts.
    #[must_use]
    pub fn from_parts(name: impl Into<String>, parts: Vec<Part>) -> Self {
        Self {
            name: name.into(),
            description: None,
            parts,
            source: None,
        }
    }

    /// Where its first part comes from, if that is not stored yet.
    pub(crate) const fn source(&self) -> Option<&FileReader> {
        self.source.as_ref()
    }

    /// Its first part has come from its source and is `content` now.
    pub(crate) fn fill(&mut self, content: PartContent) {
        self.source = None;
        if let Some(part) = self.parts.first_mut() {
            part.content = content;
        }
    }

    /// The same artifact, described for people.
    #[must_use]
    pub fn described(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// All its text: the text parts joined as they are, since chunks of one
    /// text arrive as parts. None if it has no text part.
    #[must_use]
    pub fn text(&self) -> Option<String> {
        let mut texts = self.parts.iter().filter_map(|part| match &part.content {
            PartContent::Text(text) => Some(text.as_str()),
            _ => None,
        });
        texts.next().map(|first| {
            let mut all = first.to_owned();
            all.extend(texts);
            all
        })
    }

    /// Its first data part.
    #[must_use]
    pub fn data(&self) -> Option<&Value> {
        self.parts.iter().find_map(|part| match &part.content {
            PartContent::Data(value) => Some(value),
            _ => None,
        })
    }

    /// The artifact a task holds, under the id the server made for the name.
    pub(crate) fn into_task_artifact(self, id: impl Into<String>) -> task::Artifact {
        task::Artifact {
            id: id.into(),
            name: Some(self.name),
            description: self.description,
            parts: self.parts,
            extensions: Vec::new(),
            metadata: Metadata::new(),
        }
    }
}

impl From<task::Artifact> for Artifact {
    fn from(artifact: task::Artifact) -> Self {
        Self {
            name: artifact.name.unwrap_or(artifact.id),
            description: artifact.description,
            parts: artifact.parts,
            source: None,
        }
    }
}

/// An earlier task which the caller's message refers to (`referenceTaskIds`)
/// and which the caller may read.
#[derive(Debug, Clone, PartialEq)]
pub struct ReferencedTask {
    /// Its id.
    pub id: TaskId,
    /// Where it stands.
    pub state: TaskState,
    /// What it has delivered.
    pub artifacts: Vec<Artifact>,
}

impl ReferencedTask {
    /// Its artifact of this name.
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
