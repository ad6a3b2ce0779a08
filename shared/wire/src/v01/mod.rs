//! Reads and writes A2A 0.1: `tasks/send` and its relatives.
//!
//! In 0.1 the client makes the task id, messages have no id, an index names an
//! artifact, and a stream starts with a status instead of a task.

mod push;
mod stream;

use push::read_push;
pub(crate) use push::{decode_get_push, decode_set_push, encode_push};
pub(crate) use stream::Stream;

use super::compat::{self, V01};
use super::json_object::JsonObject;
use super::params::{self, FieldCase, Object};
use a2a_lambda_model::task::{
    A2aError, Artifact, CancelCommand, ContextId, EventId, Generation, GetQuery, Message, Part,
    Role, SendCommand, SendMode, Sent, Status, SubscribeCommand, Task, TaskId, TaskState,
};
use serde_json::Value;

#[cfg(test)]
mod tests;

/// The history in 0.1 unless the client names a number (A2A 0.1 §7.1.1, §7.3.1).
const NO_HISTORY: usize = 0;
/// The key in an artifact's metadata for its id, for which 0.1 has no member
/// (A2A 0.1 §6.7).
const ARTIFACT_ID: &str = "artifactId";

/// Reads `TaskSendParams` of `tasks/send` and `tasks/sendSubscribe`
/// (A2A 0.1 §7.1.1). The message id is empty: 0.1 has none, and the engine makes
/// one.
///
/// # Errors
/// [`A2aError::InvalidParams`] naming each faulty field.
pub(crate) fn decode_send(params: &Value) -> Result<SendCommand, A2aError> {
    params::read(params, FieldCase::Json, |params| {
        let id = params.required_task_id("id");
        let session = params.context_id("sessionId");
        let message = params.required_object("message");
        let message = message.and_then(|message| read_message(&message));
        let history_length = params.history_length("historyLength", NO_HISTORY);
        let push = params.object("pushNotification");
        let push = push.as_ref().and_then(read_push);
        let metadata = params.metadata("metadata");
        Some(SendCommand {
            client_task_id: Some(id?),
            message: Message {
                context_id: session,
                ..message?
            },
            mode: SendMode::Blocking,
            history_length,
            accepted_output_modes: Vec::new(),
            push,
            metadata,
            generation: Generation::V01,
            idempotency_key: None,
        })
    })
}

fn read_message(message: &Object<'_>) -> Option<Message> {
    // A2A 0.1 §6.4: the role is `user` or `agent`; a client sends as `user`.
    let role = message.required_choice("role", &[("user", ())]);
    let parts = message.parts("parts", |part| compat::read_part(part, V01));
    let metadata = message.metadata("metadata");
    role?;
    Some(Message {
        metadata,
        ..Message::from_user("", parts?)
    })
}

/// Reads the parameters of `tasks/get`.
///
/// # Errors
/// [`A2aError::InvalidParams`] naming each faulty field.
pub(crate) fn decode_get(params: &Value) -> Result<GetQuery, A2aError> {
    compat::read_get(params, NO_HISTORY)
}

/// Reads `GET /tasks/{id}/get`.
///
/// # Errors
/// [`A2aError::InvalidParams`] naming each faulty field.
pub(crate) fn decode_get_path(id: &str, query: &[(String, String)]) -> Result<GetQuery, A2aError> {
    let id = params::task_id(id)?;
    let history_length = params::read_query(query, |query| {
        Some(query.history_length("historyLength", NO_HISTORY))
    })?;
    Ok(GetQuery { id, history_length })
}

/// Reads the parameters of `tasks/cancel`.
///
/// # Errors
/// [`A2aError::InvalidParams`] naming each faulty field.
pub(crate) fn decode_cancel(params: &Value) -> Result<CancelCommand, A2aError> {
    compat::read_cancel(params)
}

/// Reads the parameters of `tasks/resubscribe`; `last_event` is the
/// `Last-Event-ID` that came with it.
///
/// # Errors
/// [`A2aError::InvalidParams`] naming each faulty field.
pub(crate) fn decode_subscribe(
    params: &Value,
    last_event: Option<EventId>,
) -> Result<SubscribeCommand, A2aError> {
    compat::read_subscribe(params, last_event)
}

/// Writes the result of a send, which is always a task (A2A 0.1 §7.1). `id` is the
/// task id that the client made.
pub(crate) fn encode_sent(response: &Sent, id: &TaskId) -> Value {
    match response {
        Sent::Task(task) => encode_task(task),
        Sent::Message(message) => encode_message_as_task(message, id, message.context_id.as_ref()),
    }
}

/// Writes a task (A2A 0.1 §6.1).
pub(crate) fn encode_task(task: &Task) -> Value {
    JsonObject::new()
        .with("id", task.id.as_str())
        .with("sessionId", task.context_id.as_str())
        .with("status", encode_status(&task.status))
        .list(
            "artifacts",
            task.artifacts
                .iter()
                .flatten()
                .enumerate()
                .map(|(index, artifact)| artifact_members(artifact, index)),
        )
        .list("history", task.history.iter().flatten().map(encode_message))
        .metadata(compat::task_metadata(task, state_name))
        .build()
}

/// Writes the reply of a skill that makes no task as a completed task with the reply
/// in its status, as 0.1 has no such response. The status has no time: this module
/// has no clock, and 0.1 does not require one (A2A 0.1 §6.2).
pub(crate) fn encode_message_as_task(
    message: &Message,
    id: &TaskId,
    context: Option<&ContextId>,
) -> Value {
    JsonObject::new()
        .with("id", id.as_str())
        .maybe("sessionId", context.map(ContextId::as_str))
        .with("status", completed_with(message))
        .build()
}

fn completed_with(message: &Message) -> JsonObject {
    JsonObject::new()
        .with("state", state_name(TaskState::Completed))
        .with("message", encode_message(message))
}

const fn state_name(state: TaskState) -> &'static str {
    compat::state_names(state).v01
}

fn encode_status(status: &Status) -> Value {
    let message = status.message.as_ref().map(encode_message);
    compat::write_status(status, state_name(status.state), message)
}

fn encode_message(message: &Message) -> Value {
    let role = match message.role {
        Role::User => "user",
        Role::Agent => "agent",
    };
    JsonObject::new()
        .with("role", role)
        .with("parts", encode_parts(&message.parts))
        .metadata(message.metadata.clone())
        .build()
}

fn encode_parts(parts: &[Part]) -> Vec<Value> {
    parts
        .iter()
        .map(|part| compat::write_part(part, V01))
        .collect()
}

fn artifact_members(artifact: &Artifact, index: usize) -> JsonObject {
    // A2A 0.1 §6.7: an artifact is known by its `index`.
    let mut metadata = artifact.metadata.clone();
    metadata.insert(ARTIFACT_ID.to_owned(), artifact.id.as_str().into());
    JsonObject::new()
        .maybe("name", artifact.name.as_deref())
        .maybe("description", artifact.description.as_deref())
        .with("parts", encode_parts(&artifact.parts))
        .with("index", index)
        .metadata(metadata)
}
