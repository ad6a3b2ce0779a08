//! What a bench is answered with.

use crate::engine::EngineError;
use crate::skill::{Artifact, Content};
use crate::task::names;
use crate::task::{InvalidId, Message, Part, PartContent, Refusal, Task, TaskState};
use serde_json::Value;

/// What a message was answered with.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// A message, and no task.
    Message(Message),
    /// The task as it stands, with its history.
    Task(Box<Task>),
}

/// Why a bench has no reply.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BenchError {
    /// The agent refused the message, as it would refuse a client's.
    #[error("refused: {0}")]
    Refused(Refusal),
    /// The skill gave a type that is not among its output modes.
    #[error("skill `{skill}` gave `{given}` in `{place}`, which is not among its output modes")]
    OutputMode {
        /// The skill.
        skill: String,
        /// The artifact, or `the reply`.
        place: String,
        /// The media type.
        given: String,
    },
    /// There is no task yet.
    #[error("there is no task yet")]
    NoTask,
    /// A name has another form.
    #[error(transparent)]
    Id(#[from] InvalidId),
}

impl BenchError {
    /// The refusal, if it is one.
    #[must_use]
    pub const fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refused(refusal) => Some(refusal),
            _ => None,
        }
    }
}

impl From<EngineError> for BenchError {
    fn from(error: EngineError) -> Self {
        error.log();
        Self::Refused(error.refusal)
    }
}

impl Reply {
    /// The task, if there is one.
    #[must_use]
    pub fn task(&self) -> Option<&Task> {
        match self {
            Self::Message(_) => None,
            Self::Task(task) => Some(task),
        }
    }

    /// The state of the task, if there is one.
    #[must_use]
    pub fn state(&self) -> Option<TaskState> {
        self.task().map(|task| task.status.state)
    }

    /// What the agent said: the message, or the task's status message.
    #[must_use]
    pub fn message(&self) -> Option<&Message> {
        match self {
            Self::Message(message) => Some(message),
            Self::Task(task) => task.status.message.as_ref(),
        }
    }

    /// The first text of what the agent said; empty if it said nothing.
    #[must_use]
    pub fn text(&self) -> &str {
        let parts = self.message().map_or(&[][..], |message| &message.parts);
        parts.iter().find_map(text).unwrap_or_default()
    }

    /// The code of a failure: `a2a-lambda/errorCode`.
    #[must_use]
    pub fn error_code(&self) -> Option<&str> {
        let metadata = &self.message()?.metadata;
        metadata.get(names::ERROR_CODE).and_then(Value::as_str)
    }

    /// The artifact of this name.
    #[must_use]
    pub fn artifact(&self, name: &str) -> Option<Artifact> {
        let artifacts = self.task()?.artifacts.iter().flatten();
        let mut named = artifacts.filter(|artifact| artifact.name.as_deref() == Some(name));
        named.next().cloned().map(Artifact::from)
    }

    /// The text of the artifact of this name.
    #[must_use]
    pub fn artifact_text(&self, name: &str) -> Option<String> {
        self.artifact(name)?.text()
    }

    /// The data of the artifact of this name.
    #[must_use]
    pub fn artifact_data(&self, name: &str) -> Option<Value> {
        self.artifact(name)?.data().cloned()
    }

    /// Everything said in the task so far, as text: the history, then the
    /// status message.
    #[must_use]
    pub fn conversation(&self) -> Vec<String> {
        let history = self.task().and_then(|task| task.history.as_ref());
        let messages = history.into_iter().flatten().chain(self.message());
        messages
            .map(|message| Content::from_parts(message.parts.clone()))
            .map(|content| content.first_text().unwrap_or_default().to_owned())
            .collect()
    }
}

fn text(part: &Part) -> Option<&str> {
    match &part.content {
        PartContent::Text(text) => Some(text),
        _ => None,
    }
}
