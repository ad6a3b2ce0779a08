//! Reads and writes A2A 0.1: `tasks/send` and its relatives.
//!
//! In 0.1 the client makes the task id, messages have no id, an index names an
//! artifact, and a stream starts with a status instead of a task.

mod stream;

pub(crate) use stream::Stream;

use super::compat::{self, V01};
use super::json_object::JsonObject;
use super::params::{self, Object, ReadResult};
use super::{Dialect, push};
use a2a_lambda_model::task::{
    Artifact, ContextId, Generation, Message, Part, SendCommand, Status, Task, TaskId, TaskState,
};
use serde_json::Value;

#[cfg(test)]
pub(crate) mod tests;

/// Which names the states of a task have.
const DIALECT: Dialect = Dialect::json_rpc(Generation::V01);
/// The key in an artifact's metadata for its id, for which 0.1 has no member
/// (A2A 0.1 §6.7).
const ARTIFACT_ID: &str = "artifactId";

/// Reads `TaskSendParams` of `tasks/send` and `tasks/sendSubscribe`
/// (A2A 0.1 §7.1.1). The message id is empty: 0.1 has none, and the engine makes
/// one.
pub(crate) fn read_send(params: &Object<'_>) -> ReadResult<SendCommand> {
    let id = params.required_id("id")?;
    let context_id = params.id("sessionId")?;
    let message = params.required_object("message")?;
    // A2A 0.1 §6.4: the role is `user` or `agent`; a client sends as `user`.
    message.role(&["user"])?;
    let parts = message.parts("parts", |part| compat::read_part(part, V01))?;
    let message = Message {
        context_id,
        metadata: message.metadata("metadata")?,
        ..Message::from_user("", parts)
    };
    // A2A 0.1 §7.1.1: no history unless the client names a number.
    let history_length = params.history_length(0)?;
    let push = params.object("pushNotification")?;
    Ok(SendCommand {
        client_task_id: Some(id),
        history_length,
        push: push
            .map(|it| push::read(&it, Generation::V01))
            .transpose()?,
        metadata: params.metadata("metadata")?,
        ..params::new_send(message, Generation::V01)
    })
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
        .metadata(compat::task_metadata(task, DIALECT))
        .build()
}

/// Writes the reply of a skill that makes no task as a completed task with the reply
/// in its status, as 0.1 has no such response. The status has no time: this module
/// has no clock, and 0.1 does not require one (A2A 0.1 §6.2).
pub(crate) fn encode_message_as_task(message: &Message, id: &TaskId) -> Value {
    let context = message.context_id.as_ref();
    JsonObject::new()
        .with("id", id.as_str())
        .maybe("sessionId", context.map(ContextId::as_str))
        .with("status", completed_with(message))
        .build()
}

fn completed_with(message: &Message) -> JsonObject {
    JsonObject::new()
        .with("state", TaskState::Completed.as_str())
        .with("message", encode_message(message))
}

fn encode_status(status: &Status) -> Value {
    let message = status.message.as_ref().map(encode_message);
    compat::write_status(status, DIALECT, message)
}

fn encode_message(message: &Message) -> Value {
    JsonObject::new()
        .with("role", compat::role_name(message.role))
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
