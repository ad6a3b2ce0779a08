//! The replies and errors that [`SkillTest::send`](super::SkillTest::send) returns.

use super::cassette::CassetteError;
use super::scripted_model::ScriptError;
use crate::engine::{EngineError, OutputFault};
use crate::task::metadata_keys;
use crate::task::{A2aError, IdError, Message, Part, PartContent, Task, TaskState};
use a2a_lambda_skill::{Artifact, Content};
use serde_json::Value;

/// The reply to a message.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// The skill replied with a message and made no task.
    Message(Message),
    /// The stored task after the turn, with its history of at most 100 messages.
    Task(Box<Task>),
}

/// Why there is no reply.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SkillTestError {
    /// The agent refused the request, with the error that a client would get.
    #[error("refused: {0}")]
    Refused(A2aError),
    /// The output of the skill breaks a rule.
    #[error(transparent)]
    Output(#[from] OutputFault),
    /// No message has made a task yet.
    #[error("there is no task yet")]
    NoTask,
    /// The turn ended before the process could die.
    #[error("the turn stored fewer than {things} things, so no process died")]
    NoCrash {
        /// The number given to [`SkillTest::crash_after`](super::SkillTest::crash_after).
        things: u64,
    },
    /// The turn did not end.
    #[error("{workers} workers did not bring the turn to its end")]
    NeverRests {
        /// The number of workers.
        workers: u32,
    },
    /// An id, a tenant or a subject is not valid.
    #[error(transparent)]
    Id(#[from] IdError),
    /// A [`Cassette`](super::Cassette) cannot be used, or had no recording of a request.
    #[error(transparent)]
    Cassette(#[from] CassetteError),
    /// The script of a [`ScriptedModel`](super::ScriptedModel) was not followed.
    #[error(transparent)]
    Script(#[from] ScriptError),
}

impl SkillTestError {
    /// The agent's error, if it is [`SkillTestError::Refused`].
    #[must_use]
    pub const fn refusal(&self) -> Option<&A2aError> {
        match self {
            Self::Refused(refusal) => Some(refusal),
            _ => None,
        }
    }
}

impl From<EngineError> for SkillTestError {
    fn from(error: EngineError) -> Self {
        error.log();
        Self::Refused(error.a2a_error)
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

    /// The agent's newest message: the reply itself, or the task's status message.
    #[must_use]
    pub fn message(&self) -> Option<&Message> {
        match self {
            Self::Message(message) => Some(message),
            Self::Task(task) => task.status.message.as_ref(),
        }
    }

    /// The first text part of [`Reply::message`]; empty if there is none.
    #[must_use]
    pub fn text(&self) -> &str {
        let parts = self.message().map_or(&[][..], |message| &message.parts);
        parts.iter().find_map(text).unwrap_or_default()
    }

    /// The error code of a failed task: the member `a2a-lambda/errorCode` in the
    /// metadata of [`Reply::message`].
    #[must_use]
    pub fn error_code(&self) -> Option<&str> {
        let metadata = &self.message()?.metadata;
        metadata
            .get(metadata_keys::ERROR_CODE)
            .and_then(Value::as_str)
    }

    /// The task's first artifact with this name.
    #[must_use]
    pub fn artifact(&self, name: &str) -> Option<Artifact> {
        let artifacts = self.task()?.artifacts.iter().flatten();
        let mut artifacts = artifacts.filter(|artifact| artifact.name.as_deref() == Some(name));
        artifacts.next().cloned().map(Artifact::from)
    }

    /// The text of the artifact with this name; `None` if it has no text.
    #[must_use]
    pub fn artifact_text(&self, name: &str) -> Option<String> {
        self.artifact(name)?.text()
    }

    /// The JSON data of the artifact with this name; `None` if it has no data.
    #[must_use]
    pub fn artifact_data(&self, name: &str) -> Option<Value> {
        self.artifact(name)?.data().cloned()
    }

    /// The first text of each message of the task: the history, oldest first, then
    /// the status message unless it stands there. A message without text is an empty string.
    #[must_use]
    pub fn conversation(&self) -> Vec<String> {
        let history = self.task().and_then(|task| task.history.as_ref());
        let history: Vec<&Message> = history.into_iter().flatten().collect();
        let last = self.message().filter(|it| history.last() != Some(it));
        let messages = history.iter().copied().chain(last);
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
