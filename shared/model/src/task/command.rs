//! The requests of a client, independent of any protocol generation.

use super::{
    ContextId, EventId, Generation, IdempotencyKey, LoggedEvent, Message, Metadata, PushOffer,
    Task, TaskId, TaskState, Timestamp,
};
use serde::Serialize;

/// Whether a send waits for the turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendMode {
    /// Respond when the task rests, or when the blocking budget is spent.
    Blocking,
    /// Respond as soon as the task is stored.
    Immediate,
}

/// A message to the agent.
#[derive(Debug, Clone, PartialEq)]
pub struct SendCommand {
    /// The message. `message.task_id` names the task it continues,
    /// `message.context_id` the context.
    pub message: Message,
    /// A2A 0.1 only: the task id that the client made. The task is created under it,
    /// or continued.
    pub client_task_id: Option<TaskId>,
    /// Whether to wait.
    pub mode: SendMode,
    /// How many messages of history to return, 0-100; default and maximum are already
    /// applied.
    pub history_length: usize,
    /// Media types the client can read; empty = any.
    pub accepted_output_modes: Vec<String>,
    /// A push config to register with the send.
    pub push: Option<PushOffer>,
    /// Metadata of the request (not of the message).
    pub metadata: Metadata,
    /// The generation the task will be created with.
    pub generation: Generation,
    /// The idempotency key of this send, if it has one.
    pub idempotency_key: Option<IdempotencyKey>,
}

/// A request for one task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GetQuery {
    /// The id of the task.
    pub id: TaskId,
    /// How many messages of history to return, 0-100.
    pub history_length: usize,
}

/// A request to cancel a task.
#[derive(Debug, Clone, PartialEq)]
pub struct CancelCommand {
    /// The id of the task.
    pub id: TaskId,
    /// Metadata of the request.
    pub metadata: Metadata,
}

/// A request to stream an existing task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubscribeCommand {
    /// The id of the task.
    pub id: TaskId,
    /// The last event the client has seen; the stream continues after it.
    pub last_event: Option<EventId>,
    /// The generation of the call.
    pub generation: Generation,
}

/// A request for a list of the caller's tasks (A2A 1.0 §3.1.4).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListQuery {
    /// Only tasks of this context.
    pub context_id: Option<ContextId>,
    /// Only tasks in this state.
    pub status: Option<TaskState>,
    /// Only tasks with a status time at or after this.
    pub status_after: Option<Timestamp>,
    /// Tasks per page, 1-100.
    pub page_size: usize,
    /// The token of the page.
    pub page_token: Option<String>,
    /// How many messages of history to return, 0-100.
    pub history_length: usize,
    /// Whether to return artifacts.
    pub include_artifacts: bool,
}

/// One page of a list, newest status first.
#[derive(Debug, Clone, PartialEq)]
pub struct Page {
    /// The tasks.
    pub tasks: Vec<Task>,
    /// Where the next page starts; empty at the end.
    pub next_page_token: String,
    /// The requested page size.
    pub page_size: usize,
    /// How many tasks match: exact up to a limit, a lower bound above it.
    pub total_size: usize,
}

/// A request for a list of the caller's contexts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextQuery {
    /// Contexts per page, 1-100.
    pub page_size: usize,
    /// The token of the page.
    pub page_token: Option<String>,
}

/// A context as a list shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Context {
    /// Its id.
    #[serde(rename = "contextId")]
    pub id: ContextId,
    /// When it began.
    #[serde(serialize_with = "Timestamp::show")]
    pub created_at: Timestamp,
    /// About when it was last active.
    #[serde(serialize_with = "Timestamp::show")]
    pub updated_at: Timestamp,
    /// When it expires without further activity.
    #[serde(serialize_with = "Timestamp::show")]
    pub expires_at: Timestamp,
    /// Its status: `active`.
    pub status: &'static str,
}

/// One page of contexts, newest activity first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ContextPage {
    /// The contexts.
    pub contexts: Vec<Context>,
    /// Where the next page starts; empty at the end.
    pub next_page_token: String,
    /// The requested page size.
    pub page_size: usize,
}

/// The response to a send: exactly one of the two.
#[derive(Debug, Clone, PartialEq)]
pub enum SendResponse {
    /// The task that was created or continued.
    Task(Box<Task>),
    /// The reply of a skill that makes no task.
    Message(Message),
}

/// One element of a stream.
#[derive(Debug, Clone, PartialEq)]
pub enum Frame {
    /// The current task: the first frame.
    Task(Box<Task>),
    /// The first frame of a resumed stream: the status at the last event that the
    /// client has seen, without an event id. Artifacts are included for A2A 0.1,
    /// which numbers them; they are not shown.
    Resumed(Box<Task>),
    /// The one message of a skill that makes no task.
    Message(Message),
    /// A stored event.
    Event {
        /// The task it belongs to.
        task_id: TaskId,
        /// Its context.
        context_id: ContextId,
        /// The event.
        event: LoggedEvent,
        /// Whether the stream ends with it (`final` in A2A 0.1 and 0.3).
        last: bool,
    },
    /// The stream ends with an error.
    Refused(super::A2aError),
    /// A comment that keeps an idle connection open.
    KeepAlive,
    /// The stream ends as planned before the task does; the client reconnects.
    Reconnect,
}

/// A request to upload a file to the object store before the message that names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UploadOrder {
    /// The file name; metadata only.
    pub filename: Option<String>,
    /// Its media type.
    pub media_type: Option<String>,
    /// Its exact length in bytes.
    pub size: u64,
    /// Its SHA-256 in lower-case hex.
    pub sha256: String,
}

/// The permission to upload one file.
#[derive(Clone, PartialEq, Eq)]
pub struct UploadGrant {
    /// Where to PUT it. A credential: never stored, never logged.
    pub url: String,
    /// The headers the upload must send.
    pub headers: Vec<(String, String)>,
    /// When the permission expires.
    pub expires_at: Timestamp,
    /// The URL that a part has in place of the bytes.
    pub reference: String,
    /// The file name of the request.
    pub filename: Option<String>,
    /// The media type of the request.
    pub media_type: Option<String>,
}

impl std::fmt::Debug for UploadGrant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UploadGrant")
            .field("reference", &self.reference)
            .finish_non_exhaustive()
    }
}
