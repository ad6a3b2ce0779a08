//! What a handler can do during a turn.
//!
//! - here: the context of a turn
//! - `artifact_chunks`: writes one artifact in chunks
//! - `scope`: steps and scopes, which a turn that runs again finds by their paths, and what the
//!   work of a step sends to other services

mod artifact_chunks;
mod scope;

pub use artifact_chunks::ArtifactChunks;
pub use scope::{Retry, StepRequests};

use super::documents::Collection;
use super::metered_model::{MeteredModel, TokenHold};
use super::model::Model;
use super::state::States;
use super::turn_host::{Emission, SessionUpdate, TurnHost};
use super::{
    AgentError, AgentResult, Artifact, Content, FilePart, FileSource, OpenFile, ReferencedTask,
    SkillOutcome,
};
use a2a_lambda_model::task::{
    Caller, ContextId, InputWriter, Metadata, SubjectKey, TaskId, TaskRecord, Timestamp, WriteId,
};
use a2a_lambda_model::thread::Thread;
use a2a_lambda_store::documents::DocumentOwner;
use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// What is known when a turn starts.
#[derive(Debug)]
pub struct TurnFacts {
    /// The task.
    pub task_id: TaskId,
    /// The context of the task.
    pub context_id: ContextId,
    /// Who sent the message.
    pub caller: Caller,
    /// The number of the turn: 1 for the first, and one more for each message of the
    /// client.
    pub turn: u32,
    /// The client's id of the message that started the turn.
    pub message_id: String,
    /// Media types the client accepts. Empty means any.
    pub accepted_output_modes: Vec<String>,
    /// The task ids in the message's `referenceTaskIds`, unchanged.
    pub references: Vec<String>,
    /// The model of the agent.
    pub model: Option<Arc<dyn Model>>,
    /// The agent's instructions for a model.
    pub instructions: Option<String>,
    /// What the skills of the agent share.
    pub states: States,
    /// The id of the write that created the task.
    pub incarnation: WriteId,
    /// How many questions of consent the task asked before this turn.
    pub consents: u32,
    /// The digest of the question of consent to which the message agrees.
    pub consent: Option<String>,
}

impl TurnFacts {
    /// The facts of a task's current turn that are known before its message is read.
    #[must_use]
    pub fn of(record: &TaskRecord, caller: &Caller) -> Self {
        Self {
            task_id: record.id.clone(),
            context_id: record.context_id.clone(),
            caller: caller.clone(),
            message_id: String::new(),
            turn: record.turn,
            accepted_output_modes: Vec::new(),
            references: Vec::new(),
            model: None,
            instructions: None,
            states: States::default(),
            incarnation: record.incarnation.clone(),
            consents: record.consents.count,
            consent: record.request.as_ref().and_then(|it| it.consent.clone()),
        }
    }
}

/// A handler's access to its turn. It borrows the turn, so a skill cannot emit anything
/// after the turn's end. It cannot set the task's state: only the return value of a handler
/// ends a task.
pub struct TaskContext<'a> {
    pub(crate) host: &'a dyn TurnHost,
    pub(crate) facts: &'a TurnFacts,
    model: Option<MeteredModel<'a>>,
    writer: InputWriter,
}

impl<'a> TaskContext<'a> {
    /// The longest file that [`TaskContext::read_file`] reads, in bytes. A function has 256
    /// MB of memory by default, and reading needs twice the length of the file.
    pub const READ_FILE_MAX: u64 = 32 * 1024 * 1024;

    /// The context of the turn that `host` runs.
    pub fn new(host: &'a dyn TurnHost, facts: &'a TurnFacts) -> Self {
        let model = facts.model.as_deref();
        Self {
            host,
            facts,
            model: model.map(|model| MeteredModel::new(host, model)),
            writer: InputWriter::Caller,
        }
    }

    /// The same turn with a shorter lifetime.
    pub fn reborrow(&self) -> TaskContext<'_> {
        TaskContext { ..*self }
    }

    /// The same turn, for a skill whose input has this writer.
    pub(super) fn written_by(&self, writer: InputWriter) -> TaskContext<'_> {
        TaskContext { writer, ..*self }
    }

    /// Who wrote the input of this skill. What the skill calls has the same writer.
    #[must_use]
    pub const fn writer(&self) -> InputWriter {
        self.writer
    }

    /// Sends a `working` status update with a message. Returns when the update is in the
    /// write buffer, which may be before it is stored.
    ///
    /// # Errors
    /// When an earlier emission could not be stored, or the task was canceled.
    pub async fn send_intermediate_update(&self, message: impl Into<Content>) -> AgentResult<()> {
        self.tell(message, Metadata::new()).await
    }

    /// Sends a `working` status update whose message has `metadata`.
    pub(super) async fn tell(
        &self,
        message: impl Into<Content>,
        metadata: Metadata,
    ) -> AgentResult<()> {
        let update = Emission::Update(message.into(), metadata);
        self.host.emit(update).await
    }

    /// Sends an artifact before the turn ends. It replaces an earlier artifact of the same
    /// name.
    ///
    /// # Errors
    /// When an earlier emission could not be stored, or the task was canceled.
    pub async fn send_partial_artifact(&self, artifact: Artifact) -> AgentResult<()> {
        let artifact = self.host.store_file(artifact).await?;
        let emission = Emission::Artifact {
            artifact,
            append: false,
            last_chunk: false,
            writer: None,
        };
        self.host.emit(emission).await
    }

    /// Reads a whole file into memory, up to [`TaskContext::READ_FILE_MAX`] bytes. A small
    /// file is part of its message. A larger one, such as an upload, is read from the
    /// store. [`TaskContext::open_file`] reads a file of any length.
    ///
    /// # Errors
    /// `INVALID_INPUT` for a longer file and for a file that is only a URL: the skill must
    /// decide itself whether to trust a URL. Also when the store cannot read the bytes.
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

    /// Opens a file for reading in pieces, so that its length does not count against
    /// memory. The reader checks the bytes on the way and reaches the end only if they are
    /// the bytes that were sent. If the store fails during the read, the turn runs again.
    ///
    /// # Errors
    /// `INVALID_INPUT` for a file that is only a URL. Also when the file no longer exists.
    pub async fn open_file(&self, file: &FilePart) -> AgentResult<OpenFile> {
        match &file.source {
            FileSource::Bytes(bytes) => Ok(Box::pin(std::io::Cursor::new(bytes.clone()))),
            FileSource::Stored(blob) => self.host.open_file(blob.clone()).await,
            FileSource::Url(_) => Err(not_sent()),
        }
    }

    /// The outcome of a turn, after the files of its artifacts are stored.
    pub async fn deliver(&self, mut outcome: SkillOutcome) -> SkillOutcome {
        if let SkillOutcome::Completed { artifacts, .. } = &mut outcome {
            for artifact in std::mem::take(artifacts) {
                match self.host.store_file(artifact).await {
                    Ok(artifact) => artifacts.push(artifact),
                    Err(error) => return SkillOutcome::Failed { error },
                }
            }
        }
        outcome
    }

    /// Writes the artifact `name` in chunks. The skill may send updates and run steps between
    /// the chunks. A writer writes in one step, or outside of all: a turn that runs again skips
    /// the steps that have finished, with their chunks. A step that had not finished writes its
    /// text again, and the engine compares it with the stored one.
    pub fn artifact_chunks(&self, name: impl Into<String>) -> ArtifactChunks<'_> {
        ArtifactChunks::new(self.host, name.into())
    }

    /// The name of the artifact that holds the result of the turn: the id of its skill.
    #[must_use]
    pub fn result_name(&self) -> &str {
        self.host.result_name()
    }

    /// Writes the result of the skill in chunks.
    pub fn result_chunks(&self) -> ArtifactChunks<'_> {
        self.artifact_chunks(self.result_name())
    }

    /// Saves a value for the task until the task ends. Returns when the value is stored.
    /// Slot, data and step results of a task may have 1 MiB in total.
    ///
    /// # Errors
    /// `SERIALIZATION`, `STATE_TOO_LARGE`, or when the value cannot be stored.
    pub async fn save_data(&self, key: &str, value: &impl Serialize) -> AgentResult<()> {
        self.host.save(key.to_owned(), to_value(value)?).await
    }

    /// Loads a value that [`TaskContext::save_data`] saved. A turn that runs again and loads it in
    /// the scope that saved it continues behind that place: it does not get the results before.
    /// Until its next step ends, memory that it shares with the branches beside it may have an
    /// earlier value than it had there in the first run.
    ///
    /// # Errors
    /// `STATE_INCOMPATIBLE` when the value does not decode as `T`. `INTERNAL_ERROR` for a value of
    /// this turn while a step or scope is open beside the call.
    pub fn load_data<T: DeserializeOwned>(&self, key: &str) -> AgentResult<Option<T>> {
        self.host.load(key)?.map(from_value).transpose()
    }

    /// Saves a value for the context, shared by all of its tasks. The value is stored with
    /// the commit that ends the turn, or before the reply of a turn that makes no task. It
    /// expires after an hour without activity. The last writer wins: a task that changes a
    /// value which parallel tasks change too calls [`TaskContext::update_session`].
    ///
    /// # Errors
    /// `SERIALIZATION` or `STATE_TOO_LARGE`.
    pub fn save_session(&self, key: &str, value: &impl Serialize) -> AgentResult<()> {
        self.host.save_session(key.to_owned(), to_value(value)?)
    }

    /// Changes a value of the context: `update` gets the stored value and returns the new one.
    /// It runs when the change is stored, and again after another task was faster, so no update
    /// of a parallel task is lost. Inside a step that is the commit of the step, otherwise the
    /// commit that ends the turn. [`TaskContext::load_session`] shows the change before.
    ///
    /// ```
    /// use a2a_lambda::prelude::*;
    ///
    /// /// Counts the messages of a conversation.
    /// #[skill(id = "count", tags = ["example"])]
    /// async fn count(cx: &mut TaskContext<'_>, _: String) -> AgentResult<()> {
    ///     cx.update_session("messages", |count: Option<u32>| count.unwrap_or(0) + 1)?;
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    /// None at present. The task fails with `STATE_INCOMPATIBLE` when the stored value does not
    /// decode as `T`, and with `STATE_TOO_LARGE`.
    pub fn update_session<T: Serialize + DeserializeOwned>(
        &self,
        key: &str,
        update: impl Fn(Option<T>) -> T + Send + Sync + 'static,
    ) -> AgentResult<()> {
        let update = move |value: Option<Value>| {
            let value = value.map(from_value).transpose()?;
            to_value(&update(value))
        };
        self.host
            .update_session(key.to_owned(), SessionUpdate(Arc::new(update)))
    }

    /// Loads a value of the context: the value this turn has set, otherwise the value that
    /// was stored when this turn first read it.
    ///
    /// # Errors
    /// `STATE_INCOMPATIBLE` when the value does not decode as `T`. Also when it cannot be
    /// loaded.
    pub async fn load_session<T: DeserializeOwned>(&self, key: &str) -> AgentResult<Option<T>> {
        let value = self.host.load_session(key.to_owned()).await?;
        value.map(from_value).transpose()
    }

    /// Adds an event to the thread of the context. From then on [`TaskContext::thread`]
    /// returns it, in this task and in all other tasks of the context. Clients do not see
    /// it. It is stored like session values and expires like them after an hour without
    /// activity.
    ///
    /// # Errors
    /// None at present. A thread that grows past its limit fails the task with
    /// `STATE_TOO_LARGE`.
    pub fn add_event(&self, event: impl Into<Content>) -> AgentResult<()> {
        self.host.add_event(event.into())
    }

    /// The documents `name` that all callers of the tenant share. They outlive tasks and
    /// contexts, until the skill removes them or they expire. They stay when an operator erases a
    /// subject, but for those of [`Collection::written_by`].
    ///
    /// # Errors
    /// `INVALID_INPUT` for a name with `#`, with a control character, or above 512 bytes.
    pub fn documents(&self, name: &str) -> AgentResult<Collection<'_>> {
        let tenant = self.caller().owner.tenant.clone();
        Collection::of(self.host, DocumentOwner::Tenant(tenant), name)
    }

    /// The documents `name` of the caller's subject alone. They go when an operator erases
    /// the subject.
    ///
    /// # Errors
    /// As for [`TaskContext::documents`].
    pub fn own_documents(&self, name: &str) -> AgentResult<Collection<'_>> {
        let subject = SubjectKey::of(&self.caller().owner);
        Collection::of(self.host, DocumentOwner::Subject(subject), name)
    }

    /// The thread of the context: the messages of the 20 newest other tasks and of this
    /// task, at most the 100 newest messages. [`Thread::is_cut`] reports that there may be
    /// more. A text has no command (`/skill-id`) at its beginning that names the skill of its
    /// task; the stored message has it.
    ///
    /// # Errors
    /// When it cannot be loaded.
    pub async fn thread(&self) -> AgentResult<Thread> {
        self.host.thread().await
    }

    /// The caller of the task.
    #[must_use]
    pub const fn caller(&self) -> &Caller {
        &self.facts.caller
    }

    /// The earlier tasks that the message refers to and the caller may read, each once and
    /// in the order of the message. The first call of a turn loads them and keeps them as
    /// they are then; a turn that does not call this method loads nothing. Files have their
    /// bytes as far as one response could hold them; read the others with
    /// [`TaskContext::open_file`].
    ///
    /// # Errors
    /// When they cannot be loaded. A task that does not exist is not an error; see
    /// [`TaskContext::unresolved_references`].
    pub async fn references(&self) -> AgentResult<&'a [ReferencedTask]> {
        Ok(&self.host.references().await?.tasks)
    }

    /// The other task ids of the message: unknown, expired, owned by another caller, or
    /// beyond the limits. At most 16 tasks are loaded, with about 8 MiB of artifacts apart
    /// from files.
    ///
    /// # Errors
    /// As for [`TaskContext::references`].
    pub async fn unresolved_references(&self) -> AgentResult<&'a [String]> {
        Ok(&self.host.references().await?.unknown_ids)
    }

    /// The model of the agent. Its calls count for the budgets of the task and of the tenant. If
    /// an operator brakes the turn, a call is dropped at once and never returns: the turn runs
    /// again when the brake is lifted.
    ///
    /// # Errors
    /// `MODEL_UNAVAILABLE` when none is configured. A call fails with `BUDGET_EXCEEDED` when a
    /// budget is used up.
    pub fn model(&self) -> AgentResult<&dyn Model> {
        let model = self.model.as_ref().map(|model| model as &dyn Model);
        model.ok_or_else(AgentError::model_unavailable)
    }

    /// Another model, whose calls count as those of the agent's.
    pub fn meter<'m>(&'m self, model: &'m dyn Model) -> MeteredModel<'m> {
        MeteredModel::new(self.host, model)
    }

    /// The tokens of models that the task may still use; `None` without a limit. Outside of steps
    /// a turn that runs again gets what its first run got.
    pub fn tokens_left(&self) -> Option<u64> {
        self.host.tokens_left()
    }

    /// Keeps tokens of the task for the next call of one worker: no other branch, and no worker
    /// within, may use them until the hold is dropped.
    pub fn hold_tokens(&self, tokens: u64) -> TokenHold<'_> {
        TokenHold::new(self.host, tokens)
    }

    /// Notes that the result of the task is partial, because there was no room for more calls of
    /// models.
    pub fn note_partial(&self) {
        self.host.note_partial();
    }

    /// The instructions of the agent for a model: see
    /// [`AgentBuilder::instructions`](super::AgentBuilder::instructions).
    #[must_use]
    pub fn instructions(&self) -> Option<&str> {
        self.facts.instructions.as_deref()
    }

    /// The time until the invocation ends or the waiting client must get its response,
    /// whichever comes first. It is 15 minutes where neither has a limit, and zero when
    /// that time has passed.
    ///
    /// The engine hands a turn over before its invocation ends. It reserves a tenth of the
    /// time plus 2 seconds, at least 4 seconds in total. From then on, or when the client
    /// must get its response, no step starts, and the engine drops the handler 2 seconds
    /// later. The handler then starts again in another invocation; its finished steps do
    /// not run again.
    #[must_use]
    pub fn time_left(&self) -> Duration {
        self.host.time_left()
    }

    /// The time. Outside of steps it is the time of the last result that the skill got (a step,
    /// a wait or a saved value), and before the first one that of the start of the turn, so that
    /// a turn that runs again reads the same times.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.host.now()
    }

    /// The trace of the turn, as the value of a `traceparent` header (W3C Trace Context), for
    /// requests of the skill to other services. `Fetcher` adds it by itself. `None` in a
    /// task that the skill has spawned.
    #[must_use]
    pub fn trace_parent(&self) -> Option<String> {
        self.host.trace_parent()
    }

    /// The media types the client accepts. Empty means any.
    #[must_use]
    pub fn accepted_output_modes(&self) -> &[String] {
        &self.facts.accepted_output_modes
    }

    /// The task id. The task itself may not be stored yet.
    #[must_use]
    pub const fn task_id(&self) -> &TaskId {
        &self.facts.task_id
    }

    /// The id of the context the task belongs to.
    #[must_use]
    pub const fn context_id(&self) -> &ContextId {
        &self.facts.context_id
    }

    /// The number of this turn in the task, from 1. It stays the same when the turn runs
    /// again.
    #[must_use]
    pub const fn turn(&self) -> u32 {
        self.facts.turn
    }

    /// The id of the message that started this turn. The client chose it, so it may not be
    /// unique. A protocol version without message ids gets one from the server.
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

fn to_value(value: &impl Serialize) -> AgentResult<Value> {
    serde_json::to_value(value).map_err(AgentError::serialization)
}

fn from_value<T: DeserializeOwned>(value: Value) -> AgentResult<T> {
    serde_json::from_value(value).map_err(AgentError::state_incompatible)
}

fn not_sent() -> AgentError {
    // The runtime never fetches a caller's URL; the skill must decide whether to trust it.
    AgentError::invalid_input("the file has to be sent, not named by a URL")
}
