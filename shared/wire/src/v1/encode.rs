//! Writes `task` values as the objects of 1.0.
//!
//! The objects have no `kind`, no `final`, no unknown member and, outside free
//! content, no null. `parts` is never empty. REQUIRED members are present even when
//! they are empty (A2A 1.0 §5.7).
//!
//! The writers borrow a value and serialise it without a copy: most of the work of a
//! short call would be copies. Members are in the order of their names. A test compares
//! what they write with what the official types write.

use crate::Dialect;
use crate::state_name::state_name;
use a2a_lambda_model::task::{
    Artifact, ContextId, Event, Frame, Generation, LoggedEvent, Message, Metadata, Page, Part,
    PartContent, Role, Sent, Status, Task, TaskId,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::ser::{SerializeMap, SerializeSeq as _};
use serde::{Serialize, Serializer};

/// Both bindings have the same objects.
const DIALECT: Dialect = Dialect::rest(Generation::V10);

/// Writes the result of a send (A2A 1.0 §3.1.1): `{"task": …}` or `{"message": …}`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SentWriter<'a>(pub(crate) &'a Sent);

impl Serialize for SentWriter<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Sent::Task(task) => one(serializer, "task", &TaskWriter::of(task)),
            Sent::Message(message) => one(serializer, "message", &MessageWriter(message, None)),
        }
    }
}

/// An object with one member.
fn one<S: Serializer, T: Serialize>(
    serializer: S,
    name: &'static str,
    value: &T,
) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(1))?;
    map.serialize_entry(name, value)?;
    map.end()
}

/// A member, if it has a value.
fn put<M: SerializeMap, T: Serialize + ?Sized>(
    map: &mut M,
    name: &'static str,
    value: Option<&T>,
) -> Result<(), M::Error> {
    value.map_or(Ok(()), |value| map.serialize_entry(name, value))
}

fn put_list<M: SerializeMap>(
    map: &mut M,
    name: &'static str,
    list: &[String],
) -> Result<(), M::Error> {
    put(map, name, (!list.is_empty()).then_some(list))
}

fn put_metadata<M: SerializeMap>(map: &mut M, metadata: &Metadata) -> Result<(), M::Error> {
    put(map, "metadata", (!metadata.is_empty()).then_some(metadata))
}

/// Writes a task (A2A 1.0 §4.1.1).
#[derive(Debug, Clone, Copy)]
pub(crate) struct TaskWriter<'a> {
    task: &'a Task,
    /// Whether artifacts and history are written.
    is_whole: bool,
}

impl<'a> TaskWriter<'a> {
    /// Writes the whole view.
    pub(crate) const fn of(task: &'a Task) -> Self {
        Self {
            task,
            is_whole: true,
        }
    }

    const fn without_content(task: &'a Task) -> Self {
        Self {
            task,
            is_whole: false,
        }
    }
}

impl Serialize for TaskWriter<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { task, is_whole } = *self;
        let ids = Some((&task.id, &task.context_id));
        let mut map = serializer.serialize_map(None)?;
        if let Some(artifacts) = task.artifacts.as_deref().filter(|_| is_whole) {
            map.serialize_entry("artifacts", &List(artifacts, ArtifactWriter))?;
        }
        map.serialize_entry("contextId", task.context_id.as_str())?;
        if let Some(history) = task.history.as_deref().filter(|_| is_whole) {
            let message = |message| MessageWriter(message, ids);
            map.serialize_entry("history", &List(history, message))?;
        }
        map.serialize_entry("id", task.id.as_str())?;
        put_metadata(&mut map, &task.metadata)?;
        map.serialize_entry("status", &StatusWriter(&task.status, ids))?;
        map.end()
    }
}

/// Writes a list, each item with the writer that the function makes.
struct List<'a, T, F>(&'a [T], F);

impl<'a, T, W: Serialize, F: Fn(&'a T) -> W> Serialize for List<'a, T, F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.0.len()))?;
        for item in self.0 {
            list.serialize_element(&(self.1)(item))?;
        }
        list.end()
    }
}

/// Writes a page of tasks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PageWriter<'a>(pub(crate) &'a Page);

impl Serialize for PageWriter<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let page = self.0;
        let mut map = serializer.serialize_map(Some(4))?;
        // A2A 1.0 §3.1.4: `nextPageToken` is present even when it is empty.
        map.serialize_entry("nextPageToken", &page.next_page_token)?;
        map.serialize_entry("pageSize", &page.page_size)?;
        map.serialize_entry("tasks", &List(&page.tasks, TaskWriter::of))?;
        map.serialize_entry("totalSize", &page.total_size)?;
        map.end()
    }
}

/// Writes the payload of a stream element (A2A 1.0 §3.2.3): exactly one of `task`,
/// `message`, `statusUpdate` and `artifactUpdate`.
#[derive(Debug, Clone, Copy)]
pub(crate) enum FrameWriter<'a> {
    Task(TaskWriter<'a>),
    Message(&'a Message),
    Event(TaskIds<'a>, &'a Event),
}

impl<'a> FrameWriter<'a> {
    /// `None` for an error and a keep-alive, which have no payload.
    pub(crate) const fn of(frame: &'a Frame) -> Option<Self> {
        Some(match frame {
            Frame::Task(task) => Self::Task(TaskWriter::of(task)),
            // Only the status: the client gets artifacts and history as events, and a
            // copy here would make it append chunks twice.
            Frame::Resumed(task) => Self::Task(TaskWriter::without_content(task)),
            Frame::Message(message) => Self::Message(message),
            Frame::Event {
                task_id,
                context_id,
                event: LoggedEvent { event, .. },
                // A2A 1.0 §4.2.1: a status update has no member for the last event.
                last: _,
            } => Self::Event((task_id, context_id), event),
            Frame::Refused(_) | Frame::KeepAlive | Frame::ComeBack => return None,
        })
    }
}

impl Serialize for FrameWriter<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match *self {
            Self::Task(task) => one(serializer, "task", &task),
            Self::Message(message) => one(serializer, "message", &MessageWriter(message, None)),
            Self::Event(ids, event @ Event::Status(_)) => {
                one(serializer, "statusUpdate", &EventWriter(ids, event))
            }
            Self::Event(ids, event @ Event::Artifact(_)) => {
                one(serializer, "artifactUpdate", &EventWriter(ids, event))
            }
        }
    }
}

struct EventWriter<'a>(TaskIds<'a>, &'a Event);

impl Serialize for EventWriter<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self((task_id, context_id), event) = self;
        let mut map = serializer.serialize_map(None)?;
        if let Event::Artifact(update) = event {
            map.serialize_entry("append", &update.append)?;
            map.serialize_entry("artifact", &ArtifactWriter(&update.artifact))?;
        }
        map.serialize_entry("contextId", context_id.as_str())?;
        let metadata = match event {
            Event::Status(update) => &update.metadata,
            Event::Artifact(update) => {
                map.serialize_entry("lastChunk", &update.last_chunk)?;
                &update.metadata
            }
        };
        put_metadata(&mut map, metadata)?;
        if let Event::Status(update) = event {
            let status = StatusWriter(&update.status, Some((task_id, context_id)));
            map.serialize_entry("status", &status)?;
        }
        map.serialize_entry("taskId", task_id.as_str())?;
        map.end()
    }
}

/// A task and its context.
type TaskIds<'a> = (&'a TaskId, &'a ContextId);

struct StatusWriter<'a>(&'a Status, Option<TaskIds<'a>>);

impl Serialize for StatusWriter<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(status, ids) = self;
        let mut map = serializer.serialize_map(None)?;
        let message = status.message.as_ref();
        let message = message.map(|message| MessageWriter(message, *ids));
        put(&mut map, "message", message.as_ref())?;
        map.serialize_entry("state", state_name(status.state, DIALECT))?;
        // A2A 1.0 §5.6.1: UTC with `Z` and milliseconds.
        map.serialize_entry("timestamp", &status.timestamp.to_rfc3339())?;
        map.end()
    }
}

/// Writes a message, with the ids of its place where it has none of its own.
struct MessageWriter<'a>(&'a Message, Option<TaskIds<'a>>);

impl Serialize for MessageWriter<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(message, ids) = self;
        let context = message.context_id.as_ref();
        let task = message.task_id.as_ref();
        let mut map = serializer.serialize_map(None)?;
        let context = context.or(ids.map(|(_, context)| context));
        put(&mut map, "contextId", context.map(ContextId::as_str))?;
        put_list(&mut map, "extensions", &message.extensions)?;
        map.serialize_entry("messageId", &message.id)?;
        put_metadata(&mut map, &message.metadata)?;
        map.serialize_entry("parts", &PartsWriter(&message.parts))?;
        put_list(&mut map, "referenceTaskIds", &message.reference_task_ids)?;
        let role = match message.role {
            Role::User => "ROLE_USER",
            Role::Agent => "ROLE_AGENT",
        };
        map.serialize_entry("role", role)?;
        let task = task.or(ids.map(|(task, _)| task));
        put(&mut map, "taskId", task.map(TaskId::as_str))?;
        map.end()
    }
}

struct ArtifactWriter<'a>(&'a Artifact);

impl Serialize for ArtifactWriter<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let artifact = self.0;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("artifactId", &artifact.id)?;
        put(&mut map, "description", artifact.description.as_ref())?;
        put_list(&mut map, "extensions", &artifact.extensions)?;
        put_metadata(&mut map, &artifact.metadata)?;
        put(&mut map, "name", artifact.name.as_ref())?;
        map.serialize_entry("parts", &PartsWriter(&artifact.parts))?;
        map.end()
    }
}

struct PartsWriter<'a>(&'a [Part]);

impl Serialize for PartsWriter<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.is_empty() {
            // A2A 1.0 §5.7: a required array has an element, so no parts are one empty text.
            let empty = Part::new(PartContent::Text(String::new()));
            return [PartWriter(&empty)].serialize(serializer);
        }
        List(self.0, PartWriter).serialize(serializer)
    }
}

struct PartWriter<'a>(&'a Part);

impl Serialize for PartWriter<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let part = self.0;
        let mut map = serializer.serialize_map(None)?;
        if let PartContent::Data(data) = &part.content {
            map.serialize_entry("data", data)?;
        }
        put(&mut map, "filename", part.filename.as_ref())?;
        put(&mut map, "mediaType", part.media_type.as_ref())?;
        put_metadata(&mut map, &part.metadata)?;
        match &part.content {
            PartContent::Data(_) => {}
            PartContent::Raw(bytes) => map.serialize_entry("raw", &STANDARD.encode(bytes))?,
            PartContent::Text(text) => map.serialize_entry("text", text)?,
            PartContent::Url(url) => map.serialize_entry("url", url)?,
            // INVARIANT: the engine resolves stored bytes before it responds. If it does
            // not, the key of the object still stays private.
            PartContent::Stored(blob) => {
                map.serialize_entry("url", &format_args!("urn:sha256:{}", blob.sha256))?;
            }
        }
        map.end()
    }
}
