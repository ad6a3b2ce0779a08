//! Reads and writes A2A 0.3, and 0.2 with the same methods: `message/send` and its
//! relatives.
//!
//! This file holds the JSON-RPC format of `types.ts`. [`rest`] holds the other
//! dialect, `ProtoJSON` of the 0.3 proto.

mod push;
pub(crate) mod rest;

pub(crate) use push::{
    decode_delete_push, decode_get_push, decode_list_pushes, decode_set_push, encode_push,
    encode_pushes,
};

use super::compat::{self, V03};
use super::json_object::JsonObject;
use super::params::{self, FieldCase, MAX_HISTORY, Object};
use a2a_lambda_model::task::{
    A2aError, Artifact, ArtifactUpdate, CancelCommand, ContextId, Event, EventId, Frame,
    Generation, GetQuery, Message, Part, PushOffer, Role, SendCommand, SendMode, Sent, Status,
    StatusUpdate, SubscribeCommand, Task, TaskId, TaskState,
};
use serde_json::Value;

#[cfg(test)]
mod tests;

/// Reads `MessageSendParams` of `message/send` and `message/stream`
/// (A2A 0.3 §7.1.1).
///
/// # Errors
/// [`A2aError::InvalidParams`] naming each faulty field.
pub(crate) fn decode_send(params: &Value) -> Result<SendCommand, A2aError> {
    params::read(params, FieldCase::Json, |params| {
        let configuration = params.object("configuration");
        let options = configuration.map_or_else(Options::unset, |configuration| {
            Options::read(&configuration, "pushNotificationConfig", SendMode::Blocking)
        });
        let message = params.required_object("message");
        let message = message.and_then(|message| {
            message.choice("kind", &[("message", ())]);
            let form = MessageForm {
                roles: &[("user", ())],
                parts: "parts",
                part: |part| compat::read_part(part, V03),
            };
            read_message(&message, &form)
        });
        read_command(params, message, options)
    })
}

/// Reads the parameters of `tasks/get`.
///
/// # Errors
/// [`A2aError::InvalidParams`] naming each faulty field.
pub(crate) fn decode_get(params: &Value) -> Result<GetQuery, A2aError> {
    compat::read_get(params, MAX_HISTORY)
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

/// The differences of a message between the dialects.
struct MessageForm {
    /// The names of the role `user`, the only role of a client.
    roles: &'static [(&'static str, ())],
    /// The member that holds the parts.
    parts: &'static str,
    /// Reads one of them.
    part: fn(&Object<'_>) -> Option<Part>,
}

fn read_message(message: &Object<'_>, form: &MessageForm) -> Option<Message> {
    // A2A 0.3 §6.4: the members of a message.
    let id = message.required_text("messageId");
    let role = message.required_choice("role", form.roles);
    let parts = message.parts(form.parts, form.part);
    let context_id = message.context_id("contextId");
    let task_id = message.task_id("taskId");
    let reference_task_ids = message.strings("referenceTaskIds");
    let extensions = message.strings("extensions");
    let metadata = message.metadata("metadata");
    role?;
    Some(Message {
        context_id,
        task_id,
        reference_task_ids,
        extensions,
        metadata,
        ..Message::from_user(id?, parts?)
    })
}

fn read_command(
    params: &Object<'_>,
    message: Option<Message>,
    options: Options,
) -> Option<SendCommand> {
    let metadata = params.metadata("metadata");
    Some(SendCommand {
        message: message?,
        client_task_id: None,
        mode: options.mode,
        history_length: options.history_length,
        accepted_output_modes: options.accepted_output_modes,
        push: options.push,
        metadata,
        generation: Generation::V03,
        idempotency_key: None,
    })
}

/// The member `configuration` of a send.
struct Options {
    mode: SendMode,
    history_length: usize,
    accepted_output_modes: Vec<String>,
    push: Option<PushOffer>,
}

impl Options {
    const fn unset() -> Self {
        Self {
            // A2A 0.3 §7.1.1: the default of `blocking` is open. SDK clients send
            // `blocking: true`.
            mode: SendMode::Blocking,
            history_length: MAX_HISTORY,
            accepted_output_modes: Vec::new(),
            push: None,
        }
    }

    /// Reads the options of a send. `push` is the member that may hold a push config,
    /// `unsaid` the mode if `blocking` is absent.
    fn read(configuration: &Object<'_>, push: &str, unsaid: SendMode) -> Self {
        Self {
            mode: match configuration.boolean("blocking") {
                Some(false) => SendMode::Immediate,
                Some(true) => SendMode::Blocking,
                None => unsaid,
            },
            history_length: configuration.history_length("historyLength", MAX_HISTORY),
            accepted_output_modes: configuration.strings("acceptedOutputModes"),
            push: configuration
                .object(push)
                .and_then(|push| compat::read_push(&push, Generation::V03)),
        }
    }
}

/// Writes the result of a send: the task or the message itself (A2A 0.3 §7.1).
pub(crate) fn encode_sent(response: &Sent) -> Value {
    match response {
        Sent::Task(task) => encode_task(task),
        Sent::Message(message) => encode_message(message),
    }
}

/// Writes a task (A2A 0.3 §6.1).
pub(crate) fn encode_task(task: &Task) -> Value {
    let form = TaskForm {
        members: task_members,
        artifact: encode_artifact,
        message: message_members,
        state: state_name,
    };
    form.write(task)
}

/// The differences of a task between the dialects.
struct TaskForm {
    /// Writes its members without artifacts, history and metadata.
    members: fn(&Task) -> JsonObject,
    /// Writes an artifact.
    artifact: fn(&Artifact) -> Value,
    /// Writes a message of its history.
    message: fn(&Message, Option<Scope<'_>>) -> JsonObject,
    /// The name of a state.
    state: fn(TaskState) -> &'static str,
}

impl TaskForm {
    fn write(&self, task: &Task) -> Value {
        let scope = Scope::of(task);
        let history = task.history.iter().flatten();
        (self.members)(task)
            .list(
                "artifacts",
                task.artifacts.iter().flatten().map(self.artifact),
            )
            .list(
                "history",
                history.map(|message| (self.message)(message, Some(scope))),
            )
            .metadata(compat::task_metadata(task, self.state))
            .build()
    }
}

/// Writes a message that is not part of a task.
pub(crate) fn encode_message(message: &Message) -> Value {
    message_members(message, None).build()
}

/// Writes one element of a stream (A2A 0.3 §7.2.1); `None` for a frame that is not
/// an event of the task.
pub(crate) fn encode_frame(frame: &Frame) -> Option<Value> {
    match frame {
        Frame::Task(task) => Some(encode_task(task)),
        Frame::Resumed(task) => Some(task_members(task).build()),
        Frame::Message(message) => Some(encode_message(message)),
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
            Some(match &event.event {
                Event::Status(update) => encode_status_update(update, scope, *last),
                Event::Artifact(update) => encode_artifact_update(update, scope),
            })
        }
        Frame::Refused(_) | Frame::KeepAlive | Frame::ComeBack => None,
    }
}

/// The task and context that a message or an update belongs to.
#[derive(Debug, Clone, Copy)]
struct Scope<'a> {
    task_id: &'a TaskId,
    context_id: &'a ContextId,
}

impl<'a> Scope<'a> {
    const fn of(task: &'a Task) -> Self {
        Self {
            task_id: &task.id,
            context_id: &task.context_id,
        }
    }

    /// The task id and context id of a message. A message of the agent gets those of
    /// its task if it has none.
    fn ids_of(scope: Option<Self>, message: &'a Message) -> (Option<&'a str>, Option<&'a str>) {
        let scope = scope.filter(|_| message.role == Role::Agent);
        let task = message.task_id.as_ref().or(scope.map(|it| it.task_id));
        let context = message
            .context_id
            .as_ref()
            .or(scope.map(|it| it.context_id));
        (task.map(TaskId::as_str), context.map(ContextId::as_str))
    }

    fn members(self) -> JsonObject {
        JsonObject::new()
            .with("taskId", self.task_id.as_str())
            .with("contextId", self.context_id.as_str())
    }
}

const fn state_name(state: TaskState) -> &'static str {
    compat::state_names(state).v03
}

fn task_members(task: &Task) -> JsonObject {
    JsonObject::new()
        .with("kind", "task")
        .with("id", task.id.as_str())
        .with("contextId", task.context_id.as_str())
        .with("status", task_status(&task.status, Scope::of(task)))
}

fn task_status(status: &Status, scope: Scope<'_>) -> Value {
    let message = status.message.as_ref();
    let message = message.map(|message| message_members(message, Some(scope)).build());
    compat::write_status(status, state_name(status.state), message)
}

fn message_members(message: &Message, scope: Option<Scope<'_>>) -> JsonObject {
    let role = match message.role {
        Role::User => "user",
        Role::Agent => "agent",
    };
    let (task_id, context_id) = Scope::ids_of(scope, message);
    JsonObject::new()
        .with("kind", "message")
        .with("messageId", message.id.as_str())
        .with("role", role)
        .with("parts", encode_parts(&message.parts))
        .maybe("taskId", task_id)
        .maybe("contextId", context_id)
        .list(
            "referenceTaskIds",
            message.reference_task_ids.iter().map(String::as_str),
        )
        .list("extensions", message.extensions.iter().map(String::as_str))
        .metadata(message.metadata.clone())
}

fn encode_parts(parts: &[Part]) -> Vec<Value> {
    parts
        .iter()
        .map(|part| compat::write_part(part, V03))
        .collect()
}

fn encode_artifact(artifact: &Artifact) -> Value {
    artifact_members(artifact, encode_parts(&artifact.parts))
}

fn artifact_members(artifact: &Artifact, parts: Vec<Value>) -> Value {
    JsonObject::new()
        .with("artifactId", artifact.id.as_str())
        .maybe("name", artifact.name.as_deref())
        .maybe("description", artifact.description.as_deref())
        .with("parts", parts)
        .list("extensions", artifact.extensions.iter().map(String::as_str))
        .metadata(artifact.metadata.clone())
        .build()
}

fn encode_status_update(update: &StatusUpdate, scope: Scope<'_>, last: bool) -> Value {
    scope
        .members()
        // A2A 0.3 §7.2.2: `final` marks the last event of the stream.
        .with("kind", "status-update")
        .with("status", task_status(&update.status, scope))
        .with("final", last)
        .metadata(update.metadata.clone())
        .build()
}

fn encode_artifact_update(update: &ArtifactUpdate, scope: Scope<'_>) -> Value {
    scope
        .members()
        // A2A 0.3 §7.2.3: an artifact update has no `final`.
        .with("kind", "artifact-update")
        .with("artifact", encode_artifact(&update.artifact))
        .with("append", update.append)
        .with("lastChunk", update.last_chunk)
        .metadata(update.metadata.clone())
        .build()
}
