//! The engine's side of a turn.
//!
//! The engine implements [`TurnHost`] for a running turn, and `TaskContext` gives it to the
//! skill author. The host is borrowed for the turn, so a skill cannot emit anything after
//! the turn's end.

use super::metered_model::MeterCalls;
use super::trace::TraceRow;
use super::{AgentError, AgentResult, Artifact, Content, OpenFile, ReferencedTask, Thread};
use a2a_lambda_model::store::StoreError;
use a2a_lambda_model::task::{Blob, Metadata, Timestamp, WriteId};
use a2a_lambda_store::documents::Documents;
use bytes::Bytes;
use futures::future::BoxFuture;
use serde_json::Value;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Output of a skill during its turn.
#[derive(Debug, Clone)]
pub enum Emission {
    /// A message with its metadata, as a `working` status update.
    Update(Content, Metadata),
    /// An artifact or a chunk of one. Its name identifies it within the task.
    Artifact {
        /// The artifact with the parts of this chunk.
        artifact: Artifact,
        /// Whether the parts are appended to the artifact of this name.
        append: bool,
        /// Whether the artifact is complete now.
        last_chunk: bool,
        /// What writes it in chunks.
        writer: Option<ChunkWriter>,
    },
}

/// The identity of a writer of chunks: it equals its clones alone.
#[derive(Debug, Clone, Default)]
pub struct ChunkWriter {
    id: Arc<()>,
    /// Whether it writes the text of a model, which need not be finished.
    pub is_of_model: bool,
}

impl PartialEq for ChunkWriter {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.id, &other.id)
    }
}

/// A step or scope of a turn, as its host knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ScopeId(pub usize);

/// What a step is asked. A turn that runs again must ask the same.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StepInput {
    /// A hash of what is compared when the turn runs again.
    pub hash: Option<String>,
    /// A hash of what else the result depends on. A difference is logged.
    pub circumstances: Option<String>,
    /// The kind and the content for its row in a trace, if somebody records one.
    pub row: Option<Box<TraceRow>>,
}

/// A step of a turn that has begun. It may have ended in an earlier run.
#[derive(Debug, Clone)]
pub struct Step {
    /// The scope in which its work runs.
    pub scope: ScopeId,
    /// Its path: the steps and scopes around it, its name and its number there.
    pub key: String,
    /// Its position among the steps of its scope, from 1.
    pub ordinal: u32,
    /// What it is asked.
    pub input: StepInput,
}

/// How often a step is tried if its errors are transient.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TryPolicy {
    /// The most tries, from 1.
    pub tries: u32,
    /// The longest wait between two tries.
    pub longest_wait: Duration,
}

impl TryPolicy {
    /// One try.
    pub const ONCE: Self = Self {
        tries: 1,
        longest_wait: Duration::from_secs(60),
    };
    /// A call of a model: five tries.
    pub const MODEL: Self = Self {
        tries: 5,
        ..Self::ONCE
    };

    /// How long to wait after so many tries, of which the last one failed with `error`; `None` if
    /// there is no further try. The first wait is half a second, and each is twice as long as the
    /// one before, or as long as the other service asks (`retryAfter`).
    #[must_use]
    pub fn wait_after(&self, tries: u32, error: &AgentError) -> Option<Duration> {
        if !error.is_transient() || tries >= self.tries {
            return None;
        }
        let factor = 2_u32.saturating_pow(tries.saturating_sub(1));
        let wait = Duration::from_millis(500).saturating_mul(factor);
        let retry_after = error.details().get("retryAfter").and_then(Value::as_u64);
        let retry_after = Duration::from_secs(retry_after.unwrap_or(0));
        Some(wait.max(retry_after).min(self.longest_wait))
    }
}

/// How the work of a step or a scope ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScopeEnd {
    /// It has its result.
    Finished,
    /// The skill dropped it.
    Dropped,
}

/// Computes a session value from the stored one.
#[derive(Clone)]
pub struct SessionUpdate(pub Arc<UpdateFn>);

type UpdateFn = dyn Fn(Option<Value>) -> AgentResult<Value> + Send + Sync;

impl fmt::Debug for SessionUpdate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SessionUpdate").finish()
    }
}

/// The tasks that a message refers to.
#[derive(Debug, Default)]
pub struct References {
    /// The tasks that the caller may read.
    pub tasks: Vec<ReferencedTask>,
    /// The other ids.
    pub unknown_ids: Vec<String>,
}

/// Where documents are read and written.
pub trait DocumentHost: Send + Sync {
    /// The store of documents.
    fn documents(&self) -> AgentResult<Documents>;

    /// The time and the id of a write of a document.
    fn write_stamp(&self) -> (Timestamp, WriteId);

    /// The error that a skill gets for a failed call of the store. In a turn it never returns
    /// if the store was unavailable: the turn ends, and runs again.
    fn store_failed(&self, error: StoreError) -> BoxFuture<'_, AgentError>;
}

impl fmt::Debug for dyn DocumentHost + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DocumentHost")
    }
}

/// What the engine does for a running turn.
pub trait TurnHost: DocumentHost + MeterCalls {
    /// Emits an update or an artifact. Returns when it is in the write buffer; waits while
    /// the buffer is full. Fails when an earlier flush failed or the task was canceled.
    fn emit(&self, emission: Emission) -> BoxFuture<'_, AgentResult<()>>;

    /// The name of the artifact that holds the result of the turn.
    fn result_name(&self) -> &str;

    /// Reads the artifact's file to its end and stores it. Returns the artifact that names
    /// the stored file.
    fn store_file(&self, artifact: Artifact) -> BoxFuture<'_, AgentResult<Artifact>>;

    /// All stored bytes of a file.
    fn read_file(&self, blob: Blob) -> BoxFuture<'_, AgentResult<Bytes>>;

    /// A reader of the stored bytes of a file.
    fn open_file(&self, blob: Blob) -> BoxFuture<'_, AgentResult<OpenFile>>;

    /// Saves a value for the task; returns when it is stored.
    fn save(&self, key: String, value: Value) -> BoxFuture<'_, AgentResult<()>>;

    /// A value saved for the task, including changes of this turn. A run that loads it in the
    /// scope that saved it continues behind that place.
    fn load(&self, key: &str) -> AgentResult<Option<Value>>;

    /// Begins the next occurrence of step `name` in the current scope.
    fn begin_step(&self, name: &str, input: StepInput) -> AgentResult<Step>;

    /// The result of a step, if an earlier run has stored it. It never returns if the stored
    /// results do not fit the step (the turn ends), or if the skill abandoned the step.
    fn stored_result<'a>(&'a self, step: &'a Step) -> BoxFuture<'a, Option<AgentResult<Value>>>;

    /// Returns when a try of the step may begin. It never returns when the time of this
    /// invocation is used up; another invocation then runs the turn again.
    fn begin_try<'a>(&'a self, step: &'a Step) -> BoxFuture<'a, ()>;

    /// Whether a step that failed is tried again. If so it returns when the wait is over; it
    /// never returns if another invocation tries.
    fn try_again<'a>(
        &'a self,
        step: &'a Step,
        policy: TryPolicy,
        error: &'a AgentError,
    ) -> BoxFuture<'a, bool>;

    /// Why an operator lets no call of this skill begin in the current step.
    fn refusal(&self, _skill: &str) -> Option<AgentError> {
        None
    }

    /// Waits for `duration` as a result of the turn, under the next number of `name`.
    fn sleep(&self, name: &str, duration: Duration) -> BoxFuture<'_, AgentResult<()>>;

    /// Starts the scope `name` in the current scope.
    fn begin_scope(&self, name: &str) -> AgentResult<ScopeId>;

    /// Makes a scope the current one; returns the one before it.
    fn enter(&self, scope: ScopeId) -> ScopeId;

    /// Returns when a scope whose work is done may end: not before the saved value behind which
    /// it continued has had its turn among the results.
    fn end_scope(&self, scope: ScopeId) -> BoxFuture<'_, ()>;

    /// Ends a step or scope.
    fn leave(&self, scope: ScopeId, end: ScopeEnd);

    /// Keeps the result of a step. Returns the result that the skill gets, in the order of
    /// results: a value when it is stored, or the error of a result that cannot be stored.
    fn end_step<'a>(
        &'a self,
        step: &'a Step,
        result: AgentResult<Value>,
    ) -> BoxFuture<'a, AgentResult<()>>;

    /// The time: outside of steps that of the last result that the skill got.
    fn now(&self) -> Timestamp;

    /// A key that is the same in each run of the innermost step, and different in all others.
    fn step_key(&self) -> String;

    /// The thread of the context. The first call loads it.
    fn thread(&self) -> BoxFuture<'_, AgentResult<Thread>>;

    /// The tasks that the turn's message refers to. The first call loads them.
    fn references(&self) -> BoxFuture<'_, AgentResult<&References>>;

    /// A session value of the context, including changes of this turn. The first call loads
    /// the values.
    fn load_session(&self, key: String) -> BoxFuture<'_, AgentResult<Option<Value>>>;

    /// Sets a session value of the context; the turn's final commit stores it.
    fn save_session(&self, key: String, value: Value) -> AgentResult<()>;

    /// Changes a session value of the context; the commit that ends the step stores it, or the
    /// turn's final commit.
    fn update_session(&self, key: String, update: SessionUpdate) -> AgentResult<()>;

    /// Adds an event to the thread; the turn's final commit stores it.
    fn add_event(&self, content: Content) -> AgentResult<()>;

    /// The time until the turn must be finished or handed over.
    fn time_left(&self) -> Duration;

    /// The trace of the running turn (W3C Trace Context `traceparent`).
    fn trace_parent(&self) -> Option<String>;
}
