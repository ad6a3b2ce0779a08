//! The engine's side of a turn.
//!
//! The engine implements [`TurnHost`] for a running turn, and `TaskContext` gives it to the
//! skill author. The host is borrowed for the turn, so a skill cannot emit anything after
//! the turn's end.

use super::file::Reading;
use super::{AgentError, AgentResult, Artifact, Content, ReferencedTask, Thread};
use crate::store::StoreError;
use crate::store::documents::Documents;
use crate::task::{Blob, Metadata, Timestamp, WriteId};
use bytes::Bytes;
use futures::future::BoxFuture;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// Output of a skill during its turn.
#[derive(Debug, Clone)]
pub(crate) enum Emission {
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
    },
}

/// A step of a turn. It may have finished in an earlier attempt.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    /// The name and its number of occurrence in the turn: `fetch#1`.
    pub(crate) key: String,
    /// The stored result, if the step has finished.
    pub(crate) done: Option<Value>,
}

/// The tasks that a message refers to.
#[derive(Debug, Default)]
pub(crate) struct References {
    /// The tasks that the caller may read.
    pub(crate) found: Vec<ReferencedTask>,
    /// The other ids.
    pub(crate) unresolved: Vec<String>,
}

/// Where documents are read and written.
pub(crate) trait DocumentHost: Send + Sync {
    /// The store of documents.
    fn documents(&self) -> AgentResult<Arc<dyn Documents>>;

    /// The time and the id of a write of a document.
    fn write_stamp(&self) -> (Timestamp, WriteId);

    /// The error that a skill gets for a failed call of the store. A turn runs again if the
    /// store was unavailable.
    fn unread(&self, error: StoreError) -> AgentError;
}

/// What the engine does for a running turn.
pub(crate) trait TurnHost: DocumentHost {
    /// Emits an update or an artifact. Returns when it is in the write buffer; waits while
    /// the buffer is full. Fails when an earlier flush failed or the task was canceled.
    fn emit(&self, emission: Emission) -> BoxFuture<'_, AgentResult<()>>;

    /// Reads the artifact's file to its end and stores it. Returns the artifact that names
    /// the stored file.
    fn store_file(&self, artifact: Artifact) -> BoxFuture<'_, AgentResult<Artifact>>;

    /// All stored bytes of a file.
    fn read_file(&self, blob: Blob) -> BoxFuture<'_, AgentResult<Bytes>>;

    /// A reader of the stored bytes of a file.
    fn open_file(&self, blob: Blob) -> BoxFuture<'_, AgentResult<Reading>>;

    /// Saves a value for the task; returns when it is stored.
    fn save(&self, key: String, value: Value) -> BoxFuture<'_, AgentResult<()>>;

    /// A value saved for the task, including changes of this turn.
    fn load(&self, key: &str) -> Option<Value>;

    /// Starts the next occurrence of step `name`.
    fn begin_step(&self, name: &str) -> Step;

    /// Returns when a step may start. It never returns when the time of this invocation is
    /// used up; another invocation then runs the turn again.
    fn may_start(&self) -> BoxFuture<'_, ()>;

    /// Saves the result of a step; returns when it is stored.
    fn end_step(&self, key: String, result: Value) -> BoxFuture<'_, AgentResult<()>>;

    /// The thread of the context. The first call loads it.
    fn thread(&self) -> BoxFuture<'_, AgentResult<Thread>>;

    /// The tasks that the turn's message refers to. The first call loads them.
    fn references(&self) -> BoxFuture<'_, AgentResult<&References>>;

    /// A session value of the context, including changes of this turn. The first call loads
    /// the values.
    fn load_session(&self, key: String) -> BoxFuture<'_, AgentResult<Option<Value>>>;

    /// Sets a session value of the context; the turn's final commit stores it.
    fn save_session(&self, key: String, value: Value) -> AgentResult<()>;

    /// Adds an event to the thread; the turn's final commit stores it.
    fn add_event(&self, content: Content) -> AgentResult<()>;

    /// The time until the turn must be finished or handed over.
    fn time_left(&self) -> Duration;

    /// Whether the task was canceled, as far as the engine knows without a read.
    fn cancelled(&self) -> bool;
}
