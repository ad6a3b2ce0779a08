//! Reads and writes A2A 0.3, and 0.2 with the same methods: `message/send` and its
//! relatives.
//!
//! Over JSON-RPC the format is that of `types.ts`. Over REST both official SDKs use the
//! `ProtoJSON` of the 0.3 proto, while the prose (A2A 0.3 §3.2.3) describes another
//! JSON. This module reads both. It writes `ProtoJSON` without any member that the proto lacks,
//! as the Python SDK refuses unknown members.

use super::compat::{self, PROTO, V03};
use super::json_object::JsonObject;
use super::params::{self, Object, ReadResult};
use super::{Binding, Dialect, push};
use a2a_lambda_model::task::{
    Artifact, ContextId, Event, Frame, Generation, Message, Metadata, Page, Part, Role,
    SendCommand, SendMode, Sent, Status, StatusUpdate, Task, TaskId,
};
use serde_json::Value;

#[cfg(test)]
pub(crate) mod tests;

/// Reads a send (A2A 0.3 §7.1.1).
pub(crate) fn read_send(params: &Object<'_>, binding: Binding) -> ReadResult<SendCommand> {
    let is_rest = binding == Binding::Rest;
    let message = if is_rest {
        let message = params.required_object(params.either("message", "request")?)?;
        let parts = message.either("content", "parts")?;
        let roles = ["ROLE_USER", "user"];
        params::read_message(&message, &roles, parts, compat::read_rest_part)?
    } else {
        let message = params.required_object("message")?;
        message.choice("kind", &[("message", ())])?;
        let read_part = |part: &Object<'_>| compat::read_part(part, V03);
        params::read_message(&message, &["user"], "parts", read_part)?
    };
    let read_options = |configuration: &Object<'_>, command: &mut SendCommand| {
        let push = match is_rest {
            true => configuration.either("pushNotification", "pushNotificationConfig")?,
            false => "pushNotificationConfig",
        };
        if let Some(push) = configuration.object(push)? {
            command.push = Some(push::read(&push, Generation::V03)?);
        }
        // ProtoJSON leaves out a member that is false, so an absent `blocking` is false.
        if !configuration.boolean("blocking")?.unwrap_or(!is_rest) {
            command.mode = SendMode::Immediate;
        }
        Ok(())
    };
    params::read_send(params, message, Generation::V03, read_options)
}

/// Writes the objects of 0.3 in one binding.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Writer(pub(crate) Binding);

impl Writer {
    const fn dialect(self) -> Dialect {
        Dialect {
            generation: Generation::V03,
            binding: self.0,
        }
    }

    /// Begins an object. Over JSON-RPC it says what it is.
    fn object(self, kind: &str) -> JsonObject {
        match self.0 {
            Binding::JsonRpc => JsonObject::new().with("kind", kind),
            Binding::Rest => JsonObject::new(),
        }
    }

    /// A result of a send or an element of a stream. Over REST the member `name` holds it.
    fn element(self, name: &str, value: impl Into<Value>) -> Value {
        match self.0 {
            Binding::JsonRpc => value.into(),
            Binding::Rest => JsonObject::new().with(name, value).build(),
        }
    }

    /// Writes the result of a send (A2A 0.3 §7.1).
    pub(crate) fn sent(self, result: &Sent) -> Value {
        match result {
            Sent::Task(task) => self.element("task", self.task(task)),
            Sent::Message(message) => self.element("message", self.message(message, None)),
        }
    }

    /// Writes a task (A2A 0.3 §6.1).
    pub(crate) fn task(self, task: &Task) -> Value {
        let scope = Scope::of(task);
        let artifacts = task.artifacts.iter().flatten();
        let history = task.history.iter().flatten();
        self.task_members(task)
            .list("artifacts", artifacts.map(|it| self.artifact(it)))
            .list("history", history.map(|it| self.message(it, Some(scope))))
            .metadata(compat::task_metadata(task, self.dialect()))
            .build()
    }

    fn task_members(self, task: &Task) -> JsonObject {
        self.object("task")
            .with("id", task.id.as_str())
            .with("contextId", task.context_id.as_str())
            .with("status", self.status(&task.status, Scope::of(task)))
    }

    /// Writes a page of tasks.
    pub(crate) fn page(self, page: &Page) -> Value {
        let tasks: Vec<Value> = page.tasks.iter().map(|task| self.task(task)).collect();
        JsonObject::new()
            .with("tasks", tasks)
            .with("nextPageToken", page.next_page_token.as_str())
            .with("pageSize", page.page_size)
            .with("totalSize", page.total_size)
            .build()
    }

    /// Writes one element of a stream (A2A 0.3 §7.2); `None` for a frame that is not an
    /// event of the task.
    pub(crate) fn frame(self, frame: &Frame) -> Option<Value> {
        Some(match frame {
            Frame::Task(task) => self.element("task", self.task(task)),
            Frame::Resumed(task) => self.element("task", self.task_members(task)),
            Frame::Message(message) => self.element("message", self.message(message, None)),
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
                self.event(&event.event, scope, *last)
            }
            Frame::Refused(_) | Frame::KeepAlive | Frame::ComeBack => return None,
        })
    }

    /// The last status of an ended task, which closes its stream (A2A 0.3 §7.2.2).
    pub(crate) fn end(self, task: &Task) -> Option<Value> {
        let status = task
            .status
            .state
            .is_terminal()
            .then(|| task.status.clone())?;
        let metadata = Metadata::new();
        let event = Event::Status(StatusUpdate { status, metadata });
        Some(self.event(&event, Scope::of(task), true))
    }

    fn event(self, event: &Event, scope: Scope<'_>, last: bool) -> Value {
        let object = |kind| {
            self.object(kind)
                .with("taskId", scope.task_id.as_str())
                .with("contextId", scope.context_id.as_str())
        };
        match event {
            Event::Status(update) => {
                let update = object("status-update")
                    .with("status", self.status(&update.status, scope))
                    // A2A 0.3 §7.2.2: `final` marks the last event of the stream.
                    .with("final", last)
                    .metadata(update.metadata.clone());
                self.element("statusUpdate", update)
            }
            // A2A 0.3 §7.2.3: an artifact update has no `final`.
            Event::Artifact(update) => {
                let update = object("artifact-update")
                    .with("artifact", self.artifact(&update.artifact))
                    .with("append", update.append)
                    .with("lastChunk", update.last_chunk)
                    .metadata(update.metadata.clone());
                self.element("artifactUpdate", update)
            }
        }
    }

    fn status(self, status: &Status, scope: Scope<'_>) -> Value {
        let message = status.message.as_ref();
        let message = message.map(|message| self.message(message, Some(scope)));
        compat::write_status(status, self.dialect(), message)
    }

    /// Writes a message. One of the agent gets the ids of its task if it has none.
    pub(crate) fn message(self, message: &Message, scope: Option<Scope<'_>>) -> Value {
        let scope = scope.filter(|_| message.role == Role::Agent);
        let task = message.task_id.as_ref().or(scope.map(|it| it.task_id));
        let context = message.context_id.as_ref();
        let context = context.or(scope.map(|it| it.context_id));
        let (role, parts) = match (self.0, message.role) {
            (Binding::JsonRpc, role) => (compat::role_name(role), "parts"),
            (Binding::Rest, Role::User) => ("ROLE_USER", "content"),
            (Binding::Rest, Role::Agent) => ("ROLE_AGENT", "content"),
        };
        let references = message.reference_task_ids.iter().map(String::as_str);
        // The proto has no member for them.
        let references = references.filter(|_| self.0 == Binding::JsonRpc);
        self.object("message")
            .with("messageId", message.id.as_str())
            .with("role", role)
            .with(parts, self.parts(&message.parts))
            .maybe("taskId", task.map(TaskId::as_str))
            .maybe("contextId", context.map(ContextId::as_str))
            .list("referenceTaskIds", references)
            .list("extensions", message.extensions.iter().map(String::as_str))
            .metadata(message.metadata.clone())
            .build()
    }

    fn artifact(self, artifact: &Artifact) -> Value {
        JsonObject::new()
            .with("artifactId", artifact.id.as_str())
            .maybe("name", artifact.name.as_deref())
            .maybe("description", artifact.description.as_deref())
            .with("parts", self.parts(&artifact.parts))
            .list("extensions", artifact.extensions.iter().map(String::as_str))
            .metadata(artifact.metadata.clone())
            .build()
    }

    fn parts(self, parts: &[Part]) -> Vec<Value> {
        let form = match self.0 {
            Binding::JsonRpc => V03,
            Binding::Rest => PROTO,
        };
        let write = |part| compat::write_part(part, form);
        parts.iter().map(write).collect()
    }
}

/// The task and context that a message or an update belongs to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scope<'a> {
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
}
