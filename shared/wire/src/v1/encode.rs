//! Writes `task` values as the objects of 1.0.
//!
//! The objects have no `kind`, no `final`, no unknown member and, outside free
//! content, no null. `parts` is never empty. REQUIRED members are present even when
//! they are empty (A2A 1.0 §5.7).

use crate::json_object::JsonObject;
use a2a_lambda_model::task::{
    Artifact, ContextId, Event, Frame, LoggedEvent, Message, Metadata, Page, Part, PartContent,
    Role, Sent, Status, Task, TaskId, TaskState,
};
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::HashMap;

/// The result of a send (A2A 1.0 §3.1.1): `{"task": …}` or `{"message": …}`.
pub(crate) fn encode_sent(sent: &Sent) -> Value {
    match sent {
        Sent::Task(task) => JsonObject::new().with("task", encode_task(task)).build(),
        Sent::Message(message) => JsonObject::new()
            .with("message", to_value(&lf_message(message, None)))
            .build(),
    }
}

/// A task (A2A 1.0 §4.1.1).
pub(crate) fn encode_task(task: &Task) -> Value {
    let place = Some((&task.id, &task.context_id));
    let value = to_value(&a2a::Task {
        id: task.id.to_string(),
        context_id: task.context_id.to_string(),
        status: lf_status(&task.status, place),
        artifacts: task
            .artifacts
            .as_ref()
            .map(|artifacts| artifacts.iter().map(lf_artifact).collect()),
        history: task.history.as_ref().map(|history| {
            let message = |message| lf_message(message, place);
            history.iter().map(message).collect()
        }),
        metadata: lf_metadata(&task.metadata),
    });
    with_time(value, &task.status)
}

/// A page of tasks.
pub(crate) fn encode_page(page: &Page) -> Value {
    // A2A 1.0 §3.1.4: `nextPageToken` is present even when it is empty.
    let tasks: Vec<Value> = page.tasks.iter().map(encode_task).collect();
    // `json!` would copy what it is given.
    JsonObject::new()
        .with("tasks", tasks)
        .with("nextPageToken", page.next_page_token.clone())
        .with("pageSize", page.page_size)
        .with("totalSize", page.total_size)
        .build()
}

/// The payload of a stream element (A2A 1.0 §3.2.3): exactly one of `task`,
/// `message`, `statusUpdate` and `artifactUpdate`. An error and a keep-alive have
/// none.
pub(crate) fn encode_frame(frame: &Frame) -> Option<Value> {
    Some(match frame {
        Frame::Task(task) => JsonObject::new().with("task", encode_task(task)).build(),
        Frame::Resumed(task) => {
            // Only the status: the client gets artifacts and history as events, and a
            // copy here would make it append chunks twice.
            let status_only = Task {
                artifacts: None,
                history: None,
                ..(**task).clone()
            };
            JsonObject::new()
                .with("task", encode_task(&status_only))
                .build()
        }
        Frame::Message(message) => JsonObject::new()
            .with("message", to_value(&lf_message(message, None)))
            .build(),
        Frame::Event {
            task_id,
            context_id,
            event,
            // A2A 1.0 §4.2.1: a status update has no member for the last event.
            last: _,
        } => encode_event(task_id, context_id, event),
        Frame::Refused(_) | Frame::KeepAlive | Frame::ComeBack => return None,
    })
}

fn encode_event(task_id: &TaskId, context_id: &ContextId, event: &LoggedEvent) -> Value {
    match &event.event {
        Event::Status(update) => {
            let value = to_value(&a2a::TaskStatusUpdateEvent {
                task_id: task_id.to_string(),
                context_id: context_id.to_string(),
                status: lf_status(&update.status, Some((task_id, context_id))),
                metadata: lf_metadata(&update.metadata),
            });
            JsonObject::new()
                .with("statusUpdate", with_time(value, &update.status))
                .build()
        }
        Event::Artifact(update) => {
            let value = to_value(&a2a::TaskArtifactUpdateEvent {
                task_id: task_id.to_string(),
                context_id: context_id.to_string(),
                artifact: lf_artifact(&update.artifact),
                append: Some(update.append),
                last_chunk: Some(update.last_chunk),
                metadata: lf_metadata(&update.metadata),
            });
            JsonObject::new().with("artifactUpdate", value).build()
        }
    }
}

/// Serialises through a `Value`, so that the members are sorted.
fn to_value(object: &impl Serialize) -> Value {
    // This cannot fail: the official types have string keys and no fallible serialiser.
    serde_json::to_value(object).unwrap_or_default()
}

/// Adds the time of a status, as `a2a-lf` leaves `.000` out.
fn with_time(mut value: Value, status: &Status) -> Value {
    // A2A 1.0 §5.6.1: UTC with `Z` and milliseconds.
    if let Some(Value::Object(members)) = value.get_mut("status") {
        members.insert("timestamp".to_owned(), status.timestamp.to_rfc3339().into());
    }
    value
}

/// The task and context of a message.
type TaskIds<'a> = Option<(&'a TaskId, &'a ContextId)>;

fn lf_status(status: &Status, place: TaskIds<'_>) -> a2a::TaskStatus {
    a2a::TaskStatus {
        state: lf_state(status.state),
        message: status
            .message
            .as_ref()
            .map(|message| lf_message(message, place)),
        timestamp: None,
    }
}

const fn lf_state(state: TaskState) -> a2a::TaskState {
    match state {
        TaskState::Submitted => a2a::TaskState::Submitted,
        TaskState::Working => a2a::TaskState::Working,
        TaskState::InputRequired => a2a::TaskState::InputRequired,
        TaskState::AuthRequired => a2a::TaskState::AuthRequired,
        TaskState::Completed => a2a::TaskState::Completed,
        TaskState::Failed => a2a::TaskState::Failed,
        TaskState::Canceled => a2a::TaskState::Canceled,
        TaskState::Rejected => a2a::TaskState::Rejected,
    }
}

fn lf_message(message: &Message, place: TaskIds<'_>) -> a2a::Message {
    let task_id = message.task_id.as_ref().or(place.map(|(task, _)| task));
    let context_id = message.context_id.as_ref();
    let context_id = context_id.or(place.map(|(_, context)| context));
    a2a::Message {
        message_id: message.id.clone(),
        context_id: context_id.map(ToString::to_string),
        task_id: task_id.map(ToString::to_string),
        role: match message.role {
            Role::User => a2a::Role::User,
            Role::Agent => a2a::Role::Agent,
        },
        parts: lf_parts(&message.parts),
        metadata: lf_metadata(&message.metadata),
        extensions: filled(&message.extensions),
        reference_task_ids: filled(&message.reference_task_ids),
    }
}

fn lf_artifact(artifact: &Artifact) -> a2a::Artifact {
    a2a::Artifact {
        artifact_id: artifact.id.clone(),
        name: artifact.name.clone(),
        description: artifact.description.clone(),
        parts: lf_parts(&artifact.parts),
        metadata: lf_metadata(&artifact.metadata),
        extensions: filled(&artifact.extensions),
    }
}

fn lf_parts(parts: &[Part]) -> Vec<a2a::Part> {
    if parts.is_empty() {
        // A2A 1.0 §5.7: a required array has an element, so no parts are one empty text.
        return vec![a2a::Part::text("")];
    }
    parts.iter().map(lf_part).collect()
}

fn lf_part(part: &Part) -> a2a::Part {
    a2a::Part {
        content: match &part.content {
            PartContent::Text(text) => a2a::PartContent::Text(text.clone()),
            PartContent::Raw(bytes) => a2a::PartContent::Raw(bytes.to_vec()),
            PartContent::Url(url) => a2a::PartContent::Url(url.clone()),
            PartContent::Data(value) => a2a::PartContent::Data(value.clone()),
            // INVARIANT: the engine resolves stored bytes before it responds. If it does
            // not, the key of the object still stays private.
            PartContent::Stored(blob) => {
                a2a::PartContent::Url(format!("urn:sha256:{}", blob.sha256))
            }
        },
        filename: part.filename.clone(),
        media_type: part.media_type.clone(),
        metadata: lf_metadata(&part.metadata),
    }
}

fn lf_metadata(metadata: &Metadata) -> Option<HashMap<String, Value>> {
    let members: &Map<String, Value> = metadata;
    (!members.is_empty()).then(|| members.clone().into_iter().collect())
}

fn filled(items: &[String]) -> Option<Vec<String>> {
    (!items.is_empty()).then(|| items.to_vec())
}
