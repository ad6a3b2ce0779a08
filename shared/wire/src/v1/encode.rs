//! Writes `task` values as the objects of 1.0.
//!
//! The objects have no `kind`, no `final`, no unknown member and, outside free
//! content, no null. REQUIRED members are present even when they are empty (A2A 1.0 §5.7).
//!
//! A view borrows a value and serialises it without a copy: most of the work of a short call
//! would be copies. A test compares what it writes with what the official types write.

use crate::Dialect;
use crate::words::state_name;
use a2a_lambda_model::task::{
    Artifact, ContextId, Event, Frame, Generation, Message, Metadata, Page, Part, PartContent,
    Role, SendResponse, Status, Task, TaskId, Timestamp,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Serialize, Serializer};
use serde_json::Value;

/// Both bindings have the same objects.
const DIALECT: Dialect = Dialect::rest(Generation::V10);

/// What clients see of a value. A member that is not listed here does not pass.
///
/// If it `FILLS`, no parts are one empty text, as in 1.0 a required array has an element (A2A 1.0
/// §5.7), and a message of the client has the ids of its place. The older generations have neither.
#[derive(Debug, Clone, Copy)]
pub(crate) enum View<'a, const FILLS: bool = true> {
    Sent(&'a SendResponse),
    Page(&'a Page),
    Frame(&'a Frame),
    Task(&'a Task),
    /// A task without artifacts and history.
    Resumed(&'a Task),
    Update(TaskIds<'a>, &'a Event),
    Status(&'a Status, Option<TaskIds<'a>>),
    /// A message, with the ids of its place where it has none of its own.
    Message(&'a Message, Option<TaskIds<'a>>),
    Artifact(&'a Artifact),
    Part(&'a Part),
    Tasks(&'a [Task]),
    Messages(&'a [Message], TaskIds<'a>),
    Artifacts(&'a [Artifact]),
    Parts(&'a [Part]),
    Texts(&'a [String]),
    Text(&'a str),
    /// The name of bytes by their SHA-256.
    Digest(&'a str),
    Bytes(&'a [u8]),
    Time(Timestamp),
    Flag(bool),
    Number(usize),
    Data(&'a Value),
    Metadata(&'a Metadata),
}

/// A task and its context.
type TaskIds<'a> = (&'a TaskId, &'a ContextId);

/// A member of an object. It is left out if it has no value.
type Member<'a, const FILLS: bool> = (&'static str, Option<View<'a, FILLS>>);

impl<const FILLS: bool> Serialize for View<'_, FILLS> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match *self {
            Self::Sent(response) => object(serializer, [Self::of_sent(response)]),
            Self::Page(page) => object(serializer, Self::of_page(page)),
            Self::Frame(frame) => object(serializer, Self::of_frame(frame)),
            Self::Task(task) => object(serializer, Self::of_task(task, true)),
            Self::Resumed(task) => object(serializer, Self::of_task(task, false)),
            Self::Update(ids, event) => object(serializer, Self::of_update(ids, event)),
            Self::Status(status, ids) => object(serializer, Self::of_status(status, ids)),
            Self::Message(message, ids) => object(serializer, Self::of_message(message, ids)),
            Self::Artifact(artifact) => object(serializer, Self::of_artifact(artifact)),
            Self::Part(part) => object(serializer, Self::of_part(part)),
            Self::Tasks(list) => serializer.collect_seq(list.iter().map(Self::Task)),
            Self::Messages(list, ids) => {
                serializer.collect_seq(list.iter().map(|it| Self::Message(it, Some(ids))))
            }
            Self::Artifacts(list) => serializer.collect_seq(list.iter().map(Self::Artifact)),
            Self::Parts([]) if FILLS => {
                [View::<FILLS>::Part(&Part::text(""))].serialize(serializer)
            }
            Self::Parts(list) => serializer.collect_seq(list.iter().map(Self::Part)),
            Self::Texts(list) => list.serialize(serializer),
            Self::Text(text) => serializer.serialize_str(text),
            Self::Digest(hex) => serializer.collect_str(&format_args!("urn:sha256:{hex}")),
            Self::Bytes(bytes) => serializer.serialize_str(&STANDARD.encode(bytes)),
            // A2A 1.0 §5.6.1: UTC with `Z` and milliseconds.
            Self::Time(at) => serializer.serialize_str(&at.to_rfc3339()),
            Self::Flag(flag) => serializer.serialize_bool(flag),
            Self::Number(number) => number.serialize(serializer),
            Self::Data(value) => value.serialize(serializer),
            Self::Metadata(metadata) => metadata.serialize(serializer),
        }
    }
}

fn object<'a, S: Serializer, const FILLS: bool>(
    serializer: S,
    members: impl IntoIterator<Item = Member<'a, FILLS>>,
) -> Result<S::Ok, S::Error> {
    let members = members.into_iter();
    serializer.collect_map(members.filter_map(|(name, value)| Some((name, value?))))
}

impl<'a, const FILLS: bool> View<'a, FILLS> {
    /// The payload of a stream element; `None` for an error and a keep-alive, which have none.
    pub(crate) fn of_element(frame: &'a Frame) -> Option<Self> {
        Self::of_frame(frame).map(|_| Self::Frame(frame))
    }

    /// The result of a send (A2A 1.0 §3.1.1): `{"task": …}` or `{"message": …}`.
    fn of_sent(response: &'a SendResponse) -> Member<'a, FILLS> {
        match response {
            SendResponse::Task(task) => ("task", Some(Self::Task(task))),
            SendResponse::Message(message) => ("message", Some(Self::Message(message, None))),
        }
    }

    /// The payload of a stream element (A2A 1.0 §3.2.3): exactly one of `task`, `message`,
    /// `statusUpdate` and `artifactUpdate`.
    fn of_frame(frame: &'a Frame) -> Option<Member<'a, FILLS>> {
        let (name, value) = match frame {
            Frame::Task(task) => ("task", Self::Task(task)),
            // Only the status: the client gets artifacts and history as events, and a
            // copy here would make it append chunks twice.
            Frame::Resumed(task) => ("task", Self::Resumed(task)),
            Frame::Message(message) => ("message", Self::Message(message, None)),
            Frame::Event {
                task_id,
                context_id,
                event,
                // A2A 1.0 §4.2.1: a status update has no member for the last event.
                last: _,
            } => {
                let name = match event.event {
                    Event::Status(_) => "statusUpdate",
                    Event::Artifact(_) => "artifactUpdate",
                };
                (name, Self::Update((task_id, context_id), &event.event))
            }
            Frame::Refused(_) | Frame::KeepAlive | Frame::Reconnect => return None,
        };
        Some((name, Some(value)))
    }

    fn of_page(page: &'a Page) -> [Member<'a, FILLS>; 4] {
        [
            // A2A 1.0 §3.1.4: `nextPageToken` is present even when it is empty.
            ("nextPageToken", Some(Self::Text(&page.next_page_token))),
            ("pageSize", Some(Self::Number(page.page_size))),
            ("tasks", Some(Self::Tasks(&page.tasks))),
            ("totalSize", Some(Self::Number(page.total_size))),
        ]
    }

    /// A task (A2A 1.0 §4.1.1).
    fn of_task(task: &'a Task, is_whole: bool) -> [Member<'a, FILLS>; 6] {
        let ids = (&task.id, &task.context_id);
        let artifacts = task.artifacts.as_deref().filter(|_| is_whole);
        let history = task.history.as_deref().filter(|_| is_whole);
        [
            ("artifacts", artifacts.map(Self::Artifacts)),
            ("contextId", Some(Self::Text(task.context_id.as_str()))),
            ("history", history.map(|it| Self::Messages(it, ids))),
            ("id", Some(Self::Text(task.id.as_str()))),
            ("metadata", Self::of_metadata(&task.metadata)),
            ("status", Some(Self::Status(&task.status, Some(ids)))),
        ]
    }

    fn of_update(ids: TaskIds<'a>, event: &'a Event) -> [Member<'a, FILLS>; 7] {
        let (status, chunk, metadata) = match event {
            Event::Status(update) => (Some(&update.status), None, &update.metadata),
            Event::Artifact(update) => (None, Some(update), &update.metadata),
        };
        [
            ("append", chunk.map(|it| Self::Flag(it.append))),
            ("artifact", chunk.map(|it| Self::Artifact(&it.artifact))),
            ("contextId", Some(Self::Text(ids.1.as_str()))),
            ("lastChunk", chunk.map(|it| Self::Flag(it.last_chunk))),
            ("metadata", Self::of_metadata(metadata)),
            ("status", status.map(|it| Self::Status(it, Some(ids)))),
            ("taskId", Some(Self::Text(ids.0.as_str()))),
        ]
    }

    fn of_status(status: &'a Status, ids: Option<TaskIds<'a>>) -> [Member<'a, FILLS>; 3] {
        let message = status.message.as_ref();
        let state = state_name(status.state, DIALECT);
        [
            ("message", message.map(|it| Self::Message(it, ids))),
            ("state", Some(Self::Text(state))),
            ("timestamp", Some(Self::Time(status.timestamp))),
        ]
    }

    fn of_message(message: &'a Message, ids: Option<TaskIds<'a>>) -> [Member<'a, FILLS>; 8] {
        let ids = ids.filter(|_| FILLS || message.role == Role::Agent);
        let context = message.context_id.as_ref().or(ids.map(|(_, id)| id));
        let task = message.task_id.as_ref().or(ids.map(|(id, _)| id));
        let references = &message.reference_task_ids;
        let role = match message.role {
            Role::User => "ROLE_USER",
            Role::Agent => "ROLE_AGENT",
        };
        [
            ("contextId", context.map(|id| Self::Text(id.as_str()))),
            ("extensions", Self::of_texts(&message.extensions)),
            ("messageId", Some(Self::Text(&message.id))),
            ("metadata", Self::of_metadata(&message.metadata)),
            ("parts", Some(Self::Parts(&message.parts))),
            ("referenceTaskIds", Self::of_texts(references)),
            ("role", Some(Self::Text(role))),
            ("taskId", task.map(|id| Self::Text(id.as_str()))),
        ]
    }

    fn of_artifact(artifact: &'a Artifact) -> [Member<'a, FILLS>; 6] {
        let description = artifact.description.as_deref();
        [
            ("artifactId", Some(Self::Text(&artifact.id))),
            ("description", description.map(Self::Text)),
            ("extensions", Self::of_texts(&artifact.extensions)),
            ("metadata", Self::of_metadata(&artifact.metadata)),
            ("name", artifact.name.as_deref().map(Self::Text)),
            ("parts", Some(Self::Parts(&artifact.parts))),
        ]
    }

    fn of_part(part: &'a Part) -> [Member<'a, FILLS>; 4] {
        let (name, content) = match &part.content {
            PartContent::Text(text) => ("text", Self::Text(text)),
            PartContent::Raw(bytes) => ("raw", Self::Bytes(bytes)),
            PartContent::Url(url) => ("url", Self::Text(url)),
            PartContent::Data(data) => ("data", Self::Data(data)),
            // INVARIANT: the engine resolves stored bytes before it responds. If it does
            // not, the key of the object still stays private.
            PartContent::Stored(blob) => ("url", Self::Digest(&blob.sha256)),
        };
        [
            (name, Some(content)),
            ("filename", part.filename.as_deref().map(Self::Text)),
            ("mediaType", part.media_type.as_deref().map(Self::Text)),
            ("metadata", Self::of_metadata(&part.metadata)),
        ]
    }

    fn of_texts(list: &'a [String]) -> Option<Self> {
        (!list.is_empty()).then_some(Self::Texts(list))
    }

    fn of_metadata(metadata: &'a Metadata) -> Option<Self> {
        (!metadata.is_empty()).then_some(Self::Metadata(metadata))
    }
}
