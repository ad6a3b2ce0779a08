//! What a caller can ask of tasks, in no generation's spelling.

use super::{
    ContextId, EventId, Generation, IdempotencyKey, LoggedEvent, Message, Metadata, PushOffer,
    Task, TaskId, TaskState, Timestamp,
};

/// Whether the answer waits for the turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendMode {
    /// Answer when the task rests, or when the blocking budget is spent.
    Blocking,
    /// Answer as soon as the task is stored.
    Immediate,
}

/// A message to the agent.
#[derive(Debug, Clone, PartialEq)]
pub struct SendCommand {
    /// What is said. `message.task_id` names the task it continues,
    /// `message.context_id` the conversation.
    pub message: Message,
    /// 0.1 only: the task id the client made; the task is created under it, or
    /// continued.
    pub client_task_id: Option<TaskId>,
    /// Whether to wait.
    pub mode: SendMode,
    /// Messages of history to answer with, 0-100; the default and the clamp
    /// are applied already.
    pub history_length: usize,
    /// Media types the client can read; empty = any.
    pub accepted_output_modes: Vec<String>,
    /// A webhook registered along with it.
    pub push: Option<PushOffer>,
    /// Metadata of the request (not of the message).
    pub metadata: Metadata,
    /// The generation the task will be created with.
    pub generation: Generation,
    /// The name of this send, if its client gave it one.
    pub idempotency_key: Option<IdempotencyKey>,
}

/// A question for one task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GetQuery {
    /// Which task.
    pub id: TaskId,
    /// Messages of history to answer with, 0-100.
    pub history_length: usize,
}

/// The end of a task, asked by its client.
#[derive(Debug, Clone, PartialEq)]
pub struct CancelCommand {
    /// Which task.
    pub id: TaskId,
    /// Metadata of the request.
    pub metadata: Metadata,
}

/// A stream of a task that exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubscribeCommand {
    /// Which task.
    pub id: TaskId,
    /// The last event the client has seen; the stream goes on after it.
    pub last_event: Option<EventId>,
}

/// A question for the caller's tasks (A2A 1.0 §3.1.4).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListQuery {
    /// Only tasks of this conversation.
    pub context_id: Option<ContextId>,
    /// Only tasks in this state.
    pub status: Option<TaskState>,
    /// Only tasks whose status is this old or newer.
    pub status_after: Option<Timestamp>,
    /// 1-100.
    pub page_size: usize,
    /// Where the last page ended.
    pub page_token: Option<String>,
    /// Messages of history to answer with, 0-100.
    pub history_length: usize,
    /// Whether to answer with artifacts.
    pub include_artifacts: bool,
}

/// One page of a list, newest status first.
#[derive(Debug, Clone, PartialEq)]
pub struct Page {
    /// The tasks.
    pub tasks: Vec<Task>,
    /// Where the next page starts; empty at the end.
    pub next_page_token: String,
    /// The size asked for.
    pub page_size: usize,
    /// How many tasks match: exact up to a limit, a floor above it.
    pub total_size: usize,
}

/// A question for the caller's conversations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextQuery {
    /// 1-100.
    pub page_size: usize,
    /// Where the last page ended.
    pub page_token: Option<String>,
}

/// What a list shows of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Context {
    /// Its id.
    pub id: ContextId,
    /// When it began.
    pub created_at: Timestamp,
    /// Its last activity, about.
    pub updated_at: Timestamp,
    /// When it is over, if nothing happens.
    pub expires_at: Timestamp,
    /// Whether it goes on: `active`.
    pub status: &'static str,
}

/// One page of conversations, newest activity first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextPage {
    /// The conversations.
    pub contexts: Vec<Context>,
    /// Where the next page starts; empty at the end.
    pub next_page_token: String,
    /// The size asked for.
    pub page_size: usize,
}

/// What a send is answered with: exactly one of the two.
#[derive(Debug, Clone, PartialEq)]
pub enum Sent {
    /// The task that was made or continued.
    Task(Box<Task>),
    /// The reply of a skill that makes no task.
    Message(Message),
}

/// One element of a stream.
#[derive(Debug, Clone, PartialEq)]
pub enum Frame {
    /// The task as it stands: the first frame.
    Task(Box<Task>),
    /// The first frame of a resumed stream: the status as of the last event
    /// the client has seen and no id. Its artifacts are there for a
    /// generation that numbers them (0.1) and are not shown.
    Resumed(Box<Task>),
    /// The one message of a skill that makes no task.
    Message(Message),
    /// A stored event.
    Event {
        /// The task it belongs to.
        task_id: TaskId,
        /// Its conversation.
        context_id: ContextId,
        /// The event.
        event: LoggedEvent,
        /// Whether the stream ends with it (0.1 and 0.3: `final`).
        last: bool,
    },
    /// The stream ends with an error.
    Refused(super::Refusal),
    /// Nothing happened for a while: a comment that keeps the connection open.
    KeepAlive,
    /// The stream ends as planned and the task goes on: its client comes back.
    ComeBack,
}

/// A file that a client is about to send by itself, before the message that
/// names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UploadOrder {
    /// What it is called; metadata only.
    pub filename: Option<String>,
    /// Its media type.
    pub media_type: Option<String>,
    /// Its exact length in bytes.
    pub size: u64,
    /// Its SHA-256 in lower-case hex.
    pub sha256: String,
}

/// The right to send one file.
#[derive(Clone, PartialEq, Eq)]
pub struct UploadGrant {
    /// Where to PUT it. A credential: never stored, never logged.
    pub url: String,
    /// The headers to send along.
    pub headers: Vec<(String, String)>,
    /// Until when.
    pub expires_at: Timestamp,
    /// What a part says instead of bytes: the value of its URL.
    pub reference: String,
    /// As ordered.
    pub filename: Option<String>,
    /// As ordered.
    pub media_type: Option<String>,
}

impl std::fmt::Debug for UploadGrant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UploadGrant")
            .field("reference", &self.reference)
            .finish_non_exhaustive()
    }
}
