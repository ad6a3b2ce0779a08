//! Rewrites the objects of 1.0 as those of 0.3 and 0.1, which cannot express all of them:
//! [`words`](super::words) says what they get instead.
//!
//! Over REST, 0.3 has the `ProtoJSON` of its proto, without any member that the proto lacks, as
//! the Python SDK refuses unknown members.

use super::Dialect;
use super::payload::{Members, keep, put};
use super::v1::View;
use super::words::{KINDS, VALUE, WRAPPED, state_name, words_of_file};
use a2a_lambda_model::task::metadata_keys::STATE_TRANSITIONS;
use a2a_lambda_model::task::{
    Artifact, ContextId, Event, Frame, Generation, LoggedEvent, Message, Metadata, Page,
    SendResponse, StatusUpdate, Task, TaskId, TaskState,
};
use serde_json::{Value, json};

/// The key in an artifact's metadata for its id, for which 0.1 has no member
/// (A2A 0.1 §6.7).
const ARTIFACT_ID: &str = "artifactId";

/// Writes in a dialect of 0.3 or 0.1.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Legacy(pub(crate) Dialect);

impl Legacy {
    fn is_v01(self) -> bool {
        self.0.generation == Generation::V01
    }

    fn is_proto(self) -> bool {
        self.0 == Dialect::rest(Generation::V03)
    }

    /// Writes the result of a send (A2A 0.3 §7.1).
    pub(crate) fn send_response(self, result: &SendResponse) -> Value {
        match result {
            SendResponse::Task(task) => self.element("task", self.task(task)),
            SendResponse::Message(message) => self.element("message", self.message(message)),
        }
    }

    /// A result of a send or an element of a stream. Over REST the member `name` holds it.
    fn element(self, name: &str, value: Members) -> Value {
        match self.is_proto() {
            true => json!({ name: value }),
            false => value.into(),
        }
    }

    /// Says over JSON-RPC what an object of 0.3 is.
    fn tag(self, object: &mut Members, kind: &str) {
        if self.0 == Dialect::json_rpc(Generation::V03) {
            put(object, "kind", kind);
        }
    }

    /// Writes a page of tasks.
    pub(crate) fn page(self, page: &Page) -> Value {
        let tasks: Vec<Members> = page.tasks.iter().map(|task| self.task(task)).collect();
        json!({
            "tasks": tasks,
            "nextPageToken": page.next_page_token,
            "pageSize": page.page_size,
            "totalSize": page.total_size,
        })
    }

    /// Writes a task (A2A 0.3 §6.1; A2A 0.1 §6.1).
    pub(crate) fn task(self, task: &Task) -> Members {
        let mut object = object(View::Task(task));
        // A2A 0.3 §5.5.2: the card announces `stateTransitionHistory`, but the task has no
        // member for it.
        let changes = task.transitions.iter().map(|change| {
            let state = state_name(change.state, self.0);
            json!({"state": state, "timestamp": change.at.to_rfc3339()})
        });
        if !task.transitions.is_empty() {
            mark(&mut object, STATE_TRANSITIONS, changes.collect());
        }
        rewrite_member(&mut object, "artifacts", |it| self.rewrite_artifact(it));
        rewrite_member(&mut object, "history", |it| self.rewrite_message(it));
        rewrite_member(&mut object, "status", |it| self.rewrite_status(it));
        object.retain(|_, member| member.as_array().is_none_or(|list| !list.is_empty()));
        if self.is_v01() {
            rename(&mut object, "contextId", "sessionId");
            let mut index = 0_usize..;
            rewrite_member(&mut object, "artifacts", |it| {
                put(it, "index", index.next())
            });
        }
        self.tag(&mut object, "task");
        object
    }

    /// Writes a message of its own.
    pub(crate) fn message(self, message: &Message) -> Members {
        let mut object = object(View::Message(message, None));
        self.rewrite_message(&mut object);
        object
    }

    /// Writes the reply of a skill that makes no task as a completed task with the reply
    /// in its status, as 0.1 has no such response. The status has no time: this module
    /// has no clock, and 0.1 does not require one (A2A 0.1 §6.2).
    pub(crate) fn message_as_task(self, message: &Message, id: &TaskId) -> Members {
        let mut object = Members::new();
        let state = state_name(TaskState::Completed, self.0);
        let status = json!({"state": state, "message": self.message(message)});
        put(&mut object, "id", id.as_str());
        put(&mut object, "status", status);
        if let Some(context) = &message.context_id {
            put(&mut object, "sessionId", context.as_str());
        }
        object
    }

    /// Writes one element of a stream (A2A 0.3 §7.2; A2A 0.1 §7.2); `None` for a frame that is no
    /// event of the task. In 0.1, `id` is the task of the client, and `artifacts` are the ids of
    /// those that the stream has shown: an index names one, its position in the order in which
    /// they first appear.
    pub(crate) fn frame(
        self,
        frame: &Frame,
        id: Option<TaskId>,
        artifacts: &mut Vec<String>,
    ) -> Option<Value> {
        let mut index_of = |artifact: &Artifact| {
            let position = artifacts.iter().position(|id| *id == artifact.id);
            position.unwrap_or_else(|| {
                artifacts.push(artifact.id.clone());
                artifacts.len() - 1
            })
        };
        Some(match frame {
            // A2A 0.1 §7.2.1: a stream carries status and artifact updates, never a task. The
            // artifacts that the task has take their indexes, also those that a resumed stream
            // does not show; later ones get those that follow.
            Frame::Task(task) | Frame::Resumed(task) if self.is_v01() => {
                for artifact in task.artifacts.iter().flatten() {
                    index_of(artifact);
                }
                self.status_of(task).into()
            }
            Frame::Message(message) if self.is_v01() => {
                let mut event = self.message_as_task(message, &id?);
                keep(&mut event, "id status");
                put(&mut event, "final", true);
                event.into()
            }
            Frame::Task(task) => self.element("task", self.task(task)),
            Frame::Resumed(task) => {
                let mut object = self.task(task);
                keep(&mut object, "contextId id kind status");
                self.element("task", object)
            }
            Frame::Message(message) => self.element("message", self.message(message)),
            Frame::Event {
                task_id,
                context_id,
                event: LoggedEvent { event, .. },
                last,
            } => {
                let mut update = self.update((task_id, context_id), event, *last);
                if let (true, Event::Artifact(chunk)) = (self.is_v01(), event) {
                    let index = index_of(&chunk.artifact);
                    rewrite_member(&mut update, "artifact", |it| put(it, "index", index));
                }
                let name = match event {
                    Event::Status(_) => "statusUpdate",
                    Event::Artifact(_) => "artifactUpdate",
                };
                self.element(name, update)
            }
            Frame::Refused(_) | Frame::KeepAlive | Frame::Reconnect => return None,
        })
    }

    /// The last status of an ended task, which closes its stream (A2A 0.3 §7.2.2).
    pub(crate) fn end(self, task: &Task) -> Option<Value> {
        let is_ended = task.status.state.is_terminal();
        is_ended.then(|| self.element("statusUpdate", self.status_of(task)))
    }

    /// The status of a task as an event.
    fn status_of(self, task: &Task) -> Members {
        let (status, metadata) = (task.status.clone(), Metadata::new());
        let last = status.state.is_terminal();
        let event = Event::Status(StatusUpdate { status, metadata });
        self.update((&task.id, &task.context_id), &event, last)
    }

    fn update(self, ids: (&TaskId, &ContextId), event: &Event, last: bool) -> Members {
        let mut update = object(View::Update(ids, event));
        rewrite_member(&mut update, "artifact", |it| self.rewrite_artifact(it));
        rewrite_member(&mut update, "status", |it| self.rewrite_status(it));
        // A2A 0.3 §7.2.2, A2A 0.1 §7.2.2: the stream closes after an update with `final: true`.
        // A2A 0.3 §7.2.3: an artifact update has no `final`.
        if let Event::Status(_) = event {
            put(&mut update, "final", last);
            self.tag(&mut update, "status-update");
        } else {
            self.tag(&mut update, "artifact-update");
        }
        if self.is_v01() {
            update.remove("contextId");
            rename(&mut update, "taskId", "id");
            for name in ["append", "lastChunk"] {
                if let Some(flag) = update.remove(name) {
                    rewrite_member(&mut update, "artifact", |it| put(it, name, flag.clone()));
                }
            }
        }
        update
    }

    fn rewrite_status(self, status: &mut Members) {
        rewrite_member(status, "message", |it| self.rewrite_message(it));
        let v10 = Dialect::rest(Generation::V10);
        let name = status.get("state").and_then(Value::as_str);
        let mut states = TaskState::ALL.into_iter();
        if let Some(state) = states.find(|it| Some(state_name(*it, v10)) == name) {
            put(status, "state", state_name(state, self.0));
        }
    }

    fn rewrite_message(self, message: &mut Members) {
        rewrite_member(message, "parts", |it| self.rewrite_part(it));
        if self.is_proto() {
            rename(message, "parts", "content");
            // The proto has no member for other tasks.
            let names = "content contextId extensions messageId metadata role taskId";
            return keep(message, names);
        }
        let is_user = message.get("role").is_some_and(|role| role == "ROLE_USER");
        let role = if is_user { "user" } else { "agent" };
        put(message, "role", role);
        if self.is_v01() {
            keep(message, "metadata parts role");
        }
        self.tag(message, "message");
    }

    fn rewrite_artifact(self, artifact: &mut Members) {
        rewrite_member(artifact, "parts", |it| self.rewrite_part(it));
        if self.is_v01() {
            let id = artifact.remove("artifactId");
            mark(artifact, ARTIFACT_ID, id.unwrap_or_default());
            keep(artifact, "description metadata name parts");
        }
    }

    fn rewrite_part(self, part: &mut Members) {
        let mut file = Members::new();
        for (from, words) in words_of_file(self.0) {
            if let (Some(value), Some(to)) = (part.remove(*from), words.first()) {
                put(&mut file, to, value);
            }
        }
        if let Some(mut data) = part.remove("data") {
            if !(data.is_object() || self.is_v01() && data.is_array()) {
                mark(part, WRAPPED, true.into());
                data = json!({ VALUE: data });
            }
            if self.is_proto() {
                data = json!({ "data": data });
            }
            put(part, "data", data);
        } else if !part.contains_key("text") {
            put(part, "file", file);
        }
        let kind = KINDS.iter().find(|(kind, _)| part.contains_key(*kind));
        if let Some((kind, _)) = kind {
            self.tag(part, kind);
        }
        if let (Some((kind, _)), true) = (kind, self.is_v01()) {
            put(part, "type", *kind);
        }
    }
}

/// The object of 1.0, but that no parts are none.
fn object(view: View<'_, false>) -> Members {
    match serde_json::to_value(view) {
        Ok(Value::Object(object)) => object,
        // Unreachable: what is viewed here is an object, and its keys are texts.
        Ok(_) | Err(_) => Members::new(),
    }
}

fn rename(object: &mut Members, from: &str, to: &str) {
    if let Some(value) = object.remove(from) {
        put(object, to, value);
    }
}

/// Adds a member to the metadata.
fn mark(object: &mut Members, name: &str, value: Value) {
    let metadata = object.entry("metadata").or_insert_with(|| json!({}));
    if let Value::Object(metadata) = metadata {
        put(metadata, name, value);
    }
}

/// Rewrites the object in a member, or each object of the list in it.
fn rewrite_member(object: &mut Members, name: &str, mut rewrite: impl FnMut(&mut Members)) {
    match object.get_mut(name) {
        Some(Value::Object(inner)) => rewrite(inner),
        Some(Value::Array(list)) => {
            let objects = list.iter_mut().filter_map(Value::as_object_mut);
            objects.for_each(rewrite);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests;
