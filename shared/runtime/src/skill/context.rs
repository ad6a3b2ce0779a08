//! What a handler may do while it works.

use super::host::{Emission, TurnHost};
use super::model::Model;
use super::{
    AgentError, AgentResult, Artifact, Content, FilePart, FileSource, OpenFile, Outcome,
    ReferencedTask,
};
use crate::auth::Caller;
use crate::task::{ContextId, Part, TaskId};
use crate::thread::Thread;
use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

/// What is known when a turn starts.
pub(crate) struct TurnFacts {
    pub(crate) task_id: TaskId,
    pub(crate) context_id: ContextId,
    pub(crate) caller: Caller,
    /// From 1; +1 a message of the client.
    pub(crate) turn: u32,
    /// The client's id of the message that opened the turn.
    pub(crate) message_id: String,
    /// Empty = any.
    pub(crate) accepted_output_modes: Vec<String>,
    /// The ids of tasks the message refers to, as it names them.
    pub(crate) references: Vec<String>,
    pub(crate) model: Option<Arc<dyn Model>>,
}

/// A handler's view of its turn. It borrows the turn, so nothing can be
/// emitted after its end, and it has no state setter: only a handler's return
/// value ends a task.
pub struct TaskContext<'a> {
    host: &'a dyn TurnHost,
    facts: &'a TurnFacts,
}

impl<'a> TaskContext<'a> {
    /// The longest file that [`TaskContext::read_file`] reads, in bytes: a
    /// function has 256 MB as it comes, and a file lies there twice while it
    /// is read.
    pub const READ_FILE_MAX: u64 = 32 * 1024 * 1024;

    pub(crate) fn new(host: &'a dyn TurnHost, facts: &'a TurnFacts) -> Self {
        Self { host, facts }
    }

    /// The same turn, for a shorter time.
    pub(super) fn reborrow(&mut self) -> TaskContext<'_> {
        TaskContext::new(self.host, self.facts)
    }

    /// Says something while working: a `working` status update. Returns when
    /// it is buffered.
    ///
    /// # Errors
    /// When an earlier emission could not be stored, or the task was canceled.
    pub async fn send_intermediate_update(
        &mut self,
        message: impl Into<Content>,
    ) -> AgentResult<()> {
        self.host.emit(Emission::Update(message.into())).await
    }

    /// Shows an artifact before the end. One of the same name replaces it.
    ///
    /// # Errors
    /// When an earlier emission could not be stored, or the task was canceled.
    pub async fn send_partial_artifact(&mut self, artifact: Artifact) -> AgentResult<()> {
        let artifact = self.kept(artifact).await?;
        let emission = Emission::Artifact {
            artifact,
            append: false,
            last_chunk: false,
        };
        self.host.emit(emission).await
    }

    /// The bytes of a file, all of them in memory. One that is small comes with
    /// its message; a larger one, such as an upload, is read here, up to
    /// [`TaskContext::READ_FILE_MAX`]. [`TaskContext::open_file`] reads a file
    /// of any length.
    ///
    /// # Errors
    /// `INVALID_INPUT` for a file that is longer, and for one that is only a
    /// URL: it is for the skill to decide whether to trust it. When the bytes
    /// cannot be read.
    pub async fn read_file(&self, file: &FilePart) -> AgentResult<Bytes> {
        match &file.source {
            FileSource::Bytes(bytes) => Ok(bytes.clone()),
            FileSource::Stored(blob) if blob.size > Self::READ_FILE_MAX => {
                let (size, most) = (blob.size, Self::READ_FILE_MAX);
                Err(AgentError::invalid_input(format!(
                    "the file has {size} bytes; at most {most} are taken here"
                )))
            }
            FileSource::Stored(blob) => self.host.read_file(blob.clone()).await,
            FileSource::Url(_) => Err(not_sent()),
        }
    }

    /// A file, read as it is needed, so that its length does not count against
    /// memory. Its bytes are checked on their way: the end is only reached if
    /// they are those that were sent. A turn that fails because the store went
    /// away meanwhile runs again.
    ///
    /// # Errors
    /// `INVALID_INPUT` for a file that is only a URL. When it is gone.
    pub async fn open_file(&self, file: &FilePart) -> AgentResult<OpenFile> {
        match &file.source {
            FileSource::Bytes(bytes) => {
                let bytes = std::io::Cursor::new(bytes.clone());
                Ok(OpenFile(Box::pin(bytes)))
            }
            FileSource::Stored(blob) => Ok(OpenFile(self.host.open_file(blob.clone()).await?)),
            FileSource::Url(_) => Err(not_sent()),
        }
    }

    /// An artifact whose file is stored.
    async fn kept(&self, artifact: Artifact) -> AgentResult<Artifact> {
        if artifact.source().is_none() {
            return Ok(artifact);
        }
        self.host.store_file(artifact).await
    }

    /// What a turn ends with, with its files stored.
    pub(crate) async fn deliver(&self, outcome: Outcome) -> Outcome {
        let Outcome::Completed { message, artifacts } = outcome else {
            return outcome;
        };
        let mut stored = Vec::with_capacity(artifacts.len());
        for artifact in artifacts {
            match self.kept(artifact).await {
                Ok(artifact) => stored.push(artifact),
                Err(error) => return Outcome::Failed(error),
            }
        }
        Outcome::Completed {
            message,
            artifacts: stored,
        }
    }

    /// Writes the artifact `name` chunk by chunk. The writer borrows the
    /// context until it is finished.
    pub fn artifact_chunks(&mut self, name: impl Into<String>) -> ArtifactChunks<'_> {
        ArtifactChunks {
            host: self.host,
            name: name.into(),
            begun: false,
        }
    }

    /// Keeps a value for the task, until it ends; returns when it is stored.
    /// Slot, data and steps of a task may be 1 MiB together.
    ///
    /// # Errors
    /// `SERIALIZATION`, `STATE_TOO_LARGE`, or when it cannot be stored.
    pub async fn save_data(&mut self, key: &str, value: &impl Serialize) -> AgentResult<()> {
        self.host.save(key.to_owned(), to_value(value)?).await
    }

    /// A value kept for the task.
    ///
    /// # Errors
    /// `STATE_INCOMPATIBLE` when it has another form than `T`.
    pub fn load_data<T: DeserializeOwned>(&self, key: &str) -> AgentResult<Option<T>> {
        self.host.load(key).map(from_value).transpose()
    }

    /// Keeps a value for the conversation, for all of its tasks. It is stored
    /// with the commit that ends the turn, or before the reply of a turn that
    /// makes no task, and goes after an hour without activity.
    ///
    /// # Errors
    /// `SERIALIZATION` or `STATE_TOO_LARGE`.
    pub fn save_session(&mut self, key: &str, value: &impl Serialize) -> AgentResult<()> {
        self.host.save_session(key.to_owned(), to_value(value)?)
    }

    /// A value kept for the conversation: what this turn has set, else what
    /// stood there when the turn first asked for one.
    ///
    /// # Errors
    /// `STATE_INCOMPATIBLE` when it has another form than `T`, or when it
    /// cannot be loaded.
    pub async fn load_session<T: DeserializeOwned>(&self, key: &str) -> AgentResult<Option<T>> {
        let value = self.host.load_session(key.to_owned()).await?;
        value.map(from_value).transpose()
    }

    /// Adds an event to the conversation, which [`TaskContext::thread`] shows
    /// from then on, in this task and in all others of the context. The client
    /// is not shown it. It is stored as session values are, and goes after an
    /// hour without activity as they do.
    ///
    /// # Errors
    /// None so far. A conversation that grows past its limit fails the task,
    /// with `STATE_TOO_LARGE`.
    pub fn add_event(&mut self, event: impl Into<Content>) -> AgentResult<()> {
        self.host.add_event(event.into())
    }

    /// Does `work` once: its result is stored, and a turn that runs again gets
    /// it back instead of doing the work again. The key is `name` with its
    /// occurrence in the turn, so steps must come in the same order each time.
    ///
    /// # Errors
    /// The error of `work`, which is not stored; `SERIALIZATION`,
    /// `STATE_TOO_LARGE`; `STATE_INCOMPATIBLE` when the stored result has
    /// another form than `T`; or when it cannot be stored.
    pub async fn step<T: Serialize + DeserializeOwned>(
        &self,
        name: &str,
        work: impl Future<Output = AgentResult<T>>,
    ) -> AgentResult<T> {
        let step = self.host.begin_step(name);
        if let Some(done) = step.done {
            return from_value(done);
        }
        self.host.may_start().await;
        let result = work.await?;
        self.host.end_step(step.key, to_value(&result)?).await?;
        Ok(result)
    }

    /// The conversation so far, of all tasks of the context.
    ///
    /// # Errors
    /// When it cannot be loaded.
    pub async fn thread(&self) -> AgentResult<Thread> {
        self.host.thread().await
    }

    /// Who asks.
    #[must_use]
    pub const fn caller(&self) -> &Caller {
        &self.facts.caller
    }

    /// The earlier tasks which the message refers to and the caller may read,
    /// each once and in the order of the message, with what they had delivered
    /// when they were loaded: at the first look of the turn, which remembers
    /// them. A turn that does not look loads nothing. The bytes of files are
    /// there as far as one answer could hold them; the others can be read.
    ///
    /// # Errors
    /// When they cannot be loaded. A task that is not there is no error.
    pub async fn references(&self) -> AgentResult<&'a [ReferencedTask]> {
        Ok(&self.host.references().await?.found)
    }

    /// The other ids it refers to: unknown, expired, another's, or more than
    /// are loaded (16, and about 8 MiB of what they have delivered beside files).
    ///
    /// # Errors
    /// When it cannot be told, as for [`TaskContext::references`].
    pub async fn unresolved_references(&self) -> AgentResult<&'a [String]> {
        Ok(&self.host.references().await?.unresolved)
    }

    /// The agent's model.
    ///
    /// # Errors
    /// `MODEL_UNAVAILABLE` when none is configured.
    pub fn model(&self) -> AgentResult<&dyn Model> {
        self.facts
            .model
            .as_deref()
            .ok_or_else(AgentError::model_unavailable)
    }

    /// The time until the invocation ends or the waiting caller is answered,
    /// whichever comes first; 15 minutes where neither has an end. It is zero when
    /// that time has passed.
    ///
    /// The engine gives a turn away before its invocation ends: it keeps a tenth of
    /// the time and 2 seconds, at least 4 seconds in all. From then on, or once the
    /// caller is due, no step begins, and what runs is dropped 2 seconds later. The
    /// skill then starts again elsewhere; its finished steps do not.
    #[must_use]
    pub fn time_left(&self) -> Duration {
        self.host.time_left()
    }

    /// Whether the task was canceled, as far as is known without asking.
    #[must_use]
    pub fn cancelled(&self) -> bool {
        self.host.cancelled()
    }

    /// The media types the client can read; empty = any.
    #[must_use]
    pub fn accepted_output_modes(&self) -> &[String] {
        &self.facts.accepted_output_modes
    }

    /// The task, which may not be stored yet.
    #[must_use]
    pub const fn task_id(&self) -> &TaskId {
        &self.facts.task_id
    }

    /// Its conversation.
    #[must_use]
    pub const fn context_id(&self) -> &ContextId {
        &self.facts.context_id
    }

    /// The number of this turn in the task, from 1. A turn that runs again has
    /// the same number.
    #[must_use]
    pub const fn turn(&self) -> u32 {
        self.facts.turn
    }

    /// The id of the message that opened this turn. The client made it, so it
    /// may repeat; a generation without message ids has one of the server.
    #[must_use]
    pub fn message_id(&self) -> &str {
        &self.facts.message_id
    }
}

impl fmt::Debug for TaskContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskContext")
            .field("task_id", &self.facts.task_id)
            .field("context_id", &self.facts.context_id)
            .field("turn", &self.facts.turn)
            .finish_non_exhaustive()
    }
}

/// Writes one artifact chunk by chunk. Each chunk is shown at once.
#[must_use = "an artifact is complete when it was finished"]
pub struct ArtifactChunks<'a> {
    host: &'a dyn TurnHost,
    name: String,
    begun: bool,
}

impl ArtifactChunks<'_> {
    /// Adds a chunk of text. The first one replaces an artifact of the name.
    ///
    /// # Errors
    /// When an earlier emission could not be stored, or the task was canceled.
    pub async fn push(&mut self, text: impl Into<String>) -> AgentResult<()> {
        self.emit(Part::text(text), false).await
    }

    /// Adds a chunk of any kind. The first one replaces an artifact of the
    /// name.
    ///
    /// # Errors
    /// When an earlier emission could not be stored, or the task was canceled.
    pub async fn push_part(&mut self, part: Part) -> AgentResult<()> {
        self.emit(part, false).await
    }

    /// Ends the artifact. A chunk needs a part, so an empty text marks the end;
    /// [`ArtifactChunks::finish_with`] does without.
    ///
    /// # Errors
    /// When an earlier emission could not be stored, or the task was canceled.
    pub async fn finish(mut self) -> AgentResult<()> {
        self.emit(Part::text(""), true).await
    }

    /// Ends the artifact with a last chunk of text.
    ///
    /// # Errors
    /// When an earlier emission could not be stored, or the task was canceled.
    pub async fn finish_with(mut self, text: impl Into<String>) -> AgentResult<()> {
        self.emit(Part::text(text), true).await
    }

    async fn emit(&mut self, part: Part, last_chunk: bool) -> AgentResult<()> {
        let emission = Emission::Artifact {
            artifact: Artifact::from_parts(self.name.clone(), vec![part]),
            append: std::mem::replace(&mut self.begun, true),
            last_chunk,
        };
        self.host.emit(emission).await
    }
}

impl fmt::Debug for ArtifactChunks<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArtifactChunks")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

fn to_value(value: &impl Serialize) -> AgentResult<Value> {
    serde_json::to_value(value).map_err(AgentError::serialization)
}

fn from_value<T: DeserializeOwned>(value: Value) -> AgentResult<T> {
    serde_json::from_value(value).map_err(AgentError::state_incompatible)
}

fn not_sent() -> AgentError {
    AgentError::invalid_input("the file has to be sent, not named by a URL")
}
