//! Reads and writes A2A 0.3 over REST, as `ProtoJSON` of the 0.3 proto.
//!
//! Both official 0.3 SDKs use `ProtoJSON`, while the prose (A2A 0.3 §3.2.3) describes
//! another JSON. This module reads both. It writes `ProtoJSON` without any member
//! that the proto lacks, as the Python SDK refuses unknown members.

use super::{MessageForm, Options, Scope, TaskForm, artifact_members, read_command, read_message};
use crate::compat::{self, V03};
use crate::json_object::JsonObject;
use crate::params::{self, FieldCase, MAX_HISTORY, Object};
use a2a_lambda_model::task::{
    A2aError, Artifact, CancelCommand, Event, EventId, Frame, GetQuery, ListQuery, Message, Page,
    Part, PartContent, Role, SendCommand, SendMode, Sent, Status, SubscribeCommand, Task,
    TaskState,
};
use serde_json::Value;

mod push;

pub(crate) use push::{decode_create_push, decode_list_pushes, encode_push, encode_pushes};

#[cfg(test)]
mod tests;

/// The page size unless the client names one (A2A 1.0 §3.1.4).
const PAGE_SIZE: i64 = 50;

/// The state names that a filter accepts: those of the 0.3 proto, `CANCELED` with one
/// `L` as in 1.0, and those of 0.3 over JSON-RPC.
const STATES: [(&str, TaskState); 17] = [
    ("TASK_STATE_SUBMITTED", TaskState::Submitted),
    ("TASK_STATE_WORKING", TaskState::Working),
    ("TASK_STATE_INPUT_REQUIRED", TaskState::InputRequired),
    ("TASK_STATE_AUTH_REQUIRED", TaskState::AuthRequired),
    ("TASK_STATE_COMPLETED", TaskState::Completed),
    ("TASK_STATE_FAILED", TaskState::Failed),
    ("TASK_STATE_CANCELLED", TaskState::Canceled),
    ("TASK_STATE_CANCELED", TaskState::Canceled),
    ("TASK_STATE_REJECTED", TaskState::Rejected),
    ("submitted", TaskState::Submitted),
    ("working", TaskState::Working),
    ("input-required", TaskState::InputRequired),
    ("auth-required", TaskState::AuthRequired),
    ("completed", TaskState::Completed),
    ("failed", TaskState::Failed),
    ("canceled", TaskState::Canceled),
    ("rejected", TaskState::Rejected),
];

/// Reads the body of `message:send` and `message:stream`.
///
/// # Errors
/// [`A2aError::InvalidParams`] naming each faulty field.
pub(crate) fn decode_send(body: &Value) -> Result<SendCommand, A2aError> {
    params::read(body, FieldCase::ProtoJson, |body| {
        let configuration = body.object("configuration");
        let options = configuration.map_or_else(Options::unset, |configuration| {
            let push = configuration.either("pushNotification", "pushNotificationConfig");
            // ProtoJSON leaves out a member that is false, so an absent `blocking` is
            // false here.
            Options::read(&configuration, push, SendMode::Immediate)
        });
        let message = body.required_object(body.either("message", "request"));
        let message = message.and_then(|message| {
            let form = MessageForm {
                roles: &[("ROLE_USER", ()), ("user", ())],
                parts: message.either("content", "parts"),
                part: read_part,
            };
            read_message(&message, &form)
        });
        read_command(body, message, options)
    })
}

/// Reads `GET /v1/tasks/{id}`.
///
/// # Errors
/// [`A2aError::InvalidParams`] naming each faulty field.
pub(crate) fn decode_get(id: &str, query: &[(String, String)]) -> Result<GetQuery, A2aError> {
    let id = params::task_id(id)?;
    let history_length = params::read_query(query, |query| {
        Some(query.history_length("historyLength", MAX_HISTORY))
    })?;
    Ok(GetQuery { id, history_length })
}

/// Reads `GET /v1/tasks`. A2A 0.3 §3.5.6 names this route without parameters; it has
/// those of 1.0.
///
/// # Errors
/// [`A2aError::InvalidParams`] naming each faulty field.
pub(crate) fn decode_list(query: &[(String, String)]) -> Result<ListQuery, A2aError> {
    params::read_query(query, |query| {
        let page_size = query.integer("pageSize", 1..=100).unwrap_or(PAGE_SIZE);
        Some(ListQuery {
            context_id: query.context_id("contextId"),
            status: query.choice("status", &STATES),
            status_after: query.timestamp("statusTimestampAfter"),
            page_size: usize::try_from(page_size).ok()?,
            page_token: query.text("pageToken").map(str::to_owned),
            history_length: query.history_length("historyLength", MAX_HISTORY),
            include_artifacts: query.boolean("includeArtifacts").unwrap_or(false),
        })
    })
}

/// Reads `POST /v1/tasks/{id}:cancel`; the body may be `null` for none.
///
/// # Errors
/// [`A2aError::InvalidParams`] naming each faulty field.
pub(crate) fn decode_cancel(id: &str, body: &Value) -> Result<CancelCommand, A2aError> {
    let id = params::task_id(id)?;
    if body.is_null() {
        let metadata = a2a_lambda_model::task::Metadata::new();
        return Ok(CancelCommand { id, metadata });
    }
    let metadata = params::read(body, FieldCase::ProtoJson, |body| {
        Some(body.metadata("metadata"))
    })?;
    Ok(CancelCommand { id, metadata })
}

/// Reads `/v1/tasks/{id}:subscribe`.
///
/// # Errors
/// [`A2aError::InvalidParams`] when the id is malformed.
pub(crate) fn decode_subscribe(
    id: &str,
    last_event: Option<EventId>,
) -> Result<SubscribeCommand, A2aError> {
    let id = params::task_id(id)?;
    Ok(SubscribeCommand { id, last_event })
}

fn read_part(part: &Object<'_>) -> Option<Part> {
    // A part with `kind` follows the prose (A2A 0.3 §6.5), any other the proto.
    if part.member(V03.tag).is_some() {
        return compat::read_part(part, V03);
    }
    let metadata = part.metadata("metadata");
    match part.exactly_one(&["text", "file", "data"], None)? {
        "text" => Some(Part {
            metadata,
            ..Part::text(part.required_string("text")?)
        }),
        "file" => {
            let file = part.required_object("file")?;
            let bytes = file.either("fileWithBytes", "bytes");
            let uri = file.either("fileWithUri", "uri");
            Some(Part {
                metadata,
                ..compat::read_file(&file, [bytes, uri])?
            })
        }
        _ => {
            part.required_object("data")?;
            Some(compat::unwrap_data(
                proto_data(part.member("data")?),
                metadata,
            ))
        }
    }
}

/// The data of a `DataPart`, which the proto puts in a member `data`. A client that
/// follows the prose leaves that level out.
fn proto_data(data: &Value) -> &Value {
    match data.as_object() {
        Some(object) if object.len() == 1 => object
            .get("data")
            .filter(|it| it.is_object())
            .unwrap_or(data),
        _ => data,
    }
}

/// The path from `data` to the data that it wraps, in a part as the client wrote it.
pub(crate) fn wrapping(part: &Value, data: &Value) -> String {
    let inner = match part.get(V03.tag) {
        None => proto_data(data),
        Some(_) => data,
    };
    let level = if std::ptr::eq(inner, data) {
        ""
    } else {
        ".data"
    };
    format!("{level}{}", compat::wrapping(part, inner))
}

/// Writes the result of a send (A2A 0.3 §7.1): `{"task": ..}` or `{"message": ..}`.
pub(crate) fn encode_sent(response: &Sent) -> Value {
    match response {
        Sent::Task(task) => one("task", encode_task(task)),
        Sent::Message(message) => one("message", encode_message(message)),
    }
}

/// Writes a task.
pub(crate) fn encode_task(task: &Task) -> Value {
    let form = TaskForm {
        members: task_members,
        artifact: encode_artifact,
        message: message_members,
        state: state_name,
    };
    form.write(task)
}

/// Writes a message that is not part of a task.
pub(crate) fn encode_message(message: &Message) -> Value {
    message_members(message, None).build()
}

/// Writes a page of tasks.
pub(crate) fn encode_page(page: &Page) -> Value {
    let tasks: Vec<Value> = page.tasks.iter().map(encode_task).collect();
    JsonObject::new()
        .with("tasks", tasks)
        .with("nextPageToken", page.next_page_token.as_str())
        .with("pageSize", page.page_size)
        .with("totalSize", page.total_size)
        .build()
}

/// Writes one element of a stream (A2A 0.3 §7.2); `None` for a frame that is not an
/// event of the task.
pub(crate) fn encode_frame(frame: &Frame) -> Option<Value> {
    match frame {
        Frame::Task(task) => Some(one("task", encode_task(task))),
        Frame::Resumed(task) => Some(one("task", task_members(task).build())),
        Frame::Message(message) => Some(one("message", encode_message(message))),
        Frame::Event {
            task_id,
            context_id,
            event,
            last,
        } => {
            let scope = Scope {
                task_id,
                context_id,
            };
            Some(encode_event(&event.event, scope, *last))
        }
        Frame::Refused(_) | Frame::KeepAlive | Frame::ComeBack => None,
    }
}

fn encode_event(event: &Event, scope: Scope<'_>, last: bool) -> Value {
    match event {
        Event::Status(update) => one(
            "statusUpdate",
            scope
                .members()
                .with("status", encode_status(&update.status, scope))
                .with("final", last)
                .metadata(update.metadata.clone()),
        ),
        Event::Artifact(update) => one(
            "artifactUpdate",
            scope
                .members()
                .with("artifact", encode_artifact(&update.artifact))
                .with("append", update.append)
                .with("lastChunk", update.last_chunk)
                .metadata(update.metadata.clone()),
        ),
    }
}

fn one(name: &str, value: impl Into<Value>) -> Value {
    JsonObject::new().with(name, value).build()
}

const fn state_name(state: TaskState) -> &'static str {
    compat::state_names(state).rest
}

fn task_members(task: &Task) -> JsonObject {
    JsonObject::new()
        .with("id", task.id.as_str())
        .with("contextId", task.context_id.as_str())
        .with("status", encode_status(&task.status, Scope::of(task)))
}

fn encode_status(status: &Status, scope: Scope<'_>) -> Value {
    let message = status.message.as_ref();
    let message = message.map(|message| message_members(message, Some(scope)).build());
    compat::write_status(status, state_name(status.state), message)
}

/// The members of a message. The proto has none for `referenceTaskIds`.
fn message_members(message: &Message, scope: Option<Scope<'_>>) -> JsonObject {
    let role = match message.role {
        Role::User => "ROLE_USER",
        Role::Agent => "ROLE_AGENT",
    };
    let (task_id, context_id) = Scope::ids_of(scope, message);
    JsonObject::new()
        .with("messageId", message.id.as_str())
        .with("role", role)
        .with("content", encode_parts(&message.parts))
        .maybe("taskId", task_id)
        .maybe("contextId", context_id)
        .list("extensions", message.extensions.iter().map(String::as_str))
        .metadata(message.metadata.clone())
}

fn encode_artifact(artifact: &Artifact) -> Value {
    artifact_members(artifact, encode_parts(&artifact.parts))
}

fn encode_parts(parts: &[Part]) -> Vec<Value> {
    parts.iter().map(encode_part).collect()
}

fn encode_part(part: &Part) -> Value {
    let members = match &part.content {
        PartContent::Text(text) => JsonObject::new().with("text", text.as_str()),
        PartContent::Data(data) => {
            let (data, metadata) = compat::wrap_data(data, V03.arrays, &part.metadata);
            return JsonObject::new()
                .with("data", one("data", data))
                .metadata(metadata)
                .build();
        }
        PartContent::Raw(_) | PartContent::Url(_) | PartContent::Stored(_) => JsonObject::new()
            .with(
                "file",
                compat::write_file(part, ["fileWithBytes", "fileWithUri"]),
            ),
    };
    members.metadata(part.metadata.clone()).build()
}
