//! What a turn's context stands on.
//!
//! The engine's run of a turn implements [`TurnHost`]; `TaskContext` is the
//! author's view of it. The host is borrowed for the length of the turn, so
//! nothing can be emitted after its end.

use super::file::Reading;
use super::{AgentResult, Artifact, Content, ReferencedTask, Thread};
use crate::task::Blob;
use bytes::Bytes;
use futures::future::BoxFuture;
use serde_json::Value;
use std::time::Duration;

/// Something a skill shows while it works.
#[derive(Debug, Clone)]
pub(crate) enum Emission {
    /// Words, as a `working` status update.
    Update(Content),
    /// An artifact or a chunk of one. The name identifies it inside the task.
    Artifact {
        /// The artifact with the parts of this chunk.
        artifact: Artifact,
        /// Whether the parts are added to the artifact of this name.
        append: bool,
        /// Whether it is complete now.
        last_chunk: bool,
    },
}

/// A step of a turn that may have completed in an earlier attempt.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    /// Name and occurrence in the turn: `fetch#1`.
    pub(crate) key: String,
    /// The stored result, if it has completed.
    pub(crate) done: Option<Value>,
}

/// The tasks that a message refers to.
#[derive(Debug, Default)]
pub(crate) struct References {
    /// Those the caller may read.
    pub(crate) found: Vec<ReferencedTask>,
    /// The other ids.
    pub(crate) unresolved: Vec<String>,
}

/// The services of a running turn.
pub(crate) trait TurnHost: Send + Sync {
    /// Shows something. Returns when it is buffered; waits when the buffer is
    /// full; fails when an earlier flush failed or the task was canceled.
    fn emit(&self, emission: Emission) -> BoxFuture<'_, AgentResult<()>>;

    /// Reads what the artifact is made of to its end and stores it; gives the
    /// artifact that is shown.
    fn store_file(&self, artifact: Artifact) -> BoxFuture<'_, AgentResult<Artifact>>;

    /// The stored bytes of a file.
    fn read_file(&self, blob: Blob) -> BoxFuture<'_, AgentResult<Bytes>>;

    /// The stored bytes of a file, read as they are needed.
    fn open_file(&self, blob: Blob) -> BoxFuture<'_, AgentResult<Reading>>;

    /// Keeps a value for the task; returns when it is stored.
    fn save(&self, key: String, value: Value) -> BoxFuture<'_, AgentResult<()>>;

    /// A value kept for the task, this turn's included.
    fn load(&self, key: &str) -> Option<Value>;

    /// The next occurrence of step `name`.
    fn begin_step(&self, name: &str) -> Step;

    /// Returns when a step may start; never, when the time of this invocation
    /// is up: the turn then goes on in another.
    fn may_start(&self) -> BoxFuture<'_, ()>;

    /// Keeps a step's result; returns when it is stored.
    fn end_step(&self, key: String, result: Value) -> BoxFuture<'_, AgentResult<()>>;

    /// The conversation of the context, loaded at first use.
    fn thread(&self) -> BoxFuture<'_, AgentResult<Thread>>;

    /// The tasks that the turn's message refers to, loaded at first use.
    fn references(&self) -> BoxFuture<'_, AgentResult<&References>>;

    /// A session value of the context, loaded at first use; this turn's own
    /// changes included.
    fn load_session(&self, key: String) -> BoxFuture<'_, AgentResult<Option<Value>>>;

    /// Sets a session value of the context, in the turn's final commit.
    fn save_session(&self, key: String, value: Value) -> AgentResult<()>;

    /// Adds an event to the conversation, in the turn's final commit.
    fn add_event(&self, content: Content) -> AgentResult<()>;

    /// The time until the turn has to be over or goes on elsewhere.
    fn time_left(&self) -> Duration;

    /// Whether the task was canceled, as far as is known without asking.
    fn cancelled(&self) -> bool;
}
