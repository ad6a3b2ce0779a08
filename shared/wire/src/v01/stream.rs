//! Writes a stream of 0.1, and keeps the indexes of the artifacts it has shown.

use super::{artifact_members, completed_with, encode_status};
use crate::json_object::JsonObject;
use a2a_lambda_model::task::{Artifact, ArtifactUpdate, Event, Frame, Status, Task, TaskId};
use serde_json::Value;

/// Writes the frames of one stream. In 0.1 an index names an artifact: the position
/// in the order in which artifacts first appear.
#[derive(Debug, Clone)]
pub(crate) struct Stream {
    id: TaskId,
    /// The ids of the artifacts shown, in the order of their indexes.
    artifacts: Vec<String>,
}

impl Stream {
    /// The stream of task `id`, before its first frame.
    pub(crate) const fn new(id: TaskId) -> Self {
        Self {
            id,
            artifacts: Vec::new(),
        }
    }

    /// Writes one frame; `None` for a frame that is not an event of the task.
    ///
    /// A resumed stream does not show the artifacts before it. The task of
    /// [`Frame::Resumed`] has to carry them, so that the indexes continue.
    pub(crate) fn frame(&mut self, frame: &Frame) -> Option<Value> {
        match frame {
            // A2A 0.1 §7.2.1: a stream carries status and artifact updates, never a task.
            Frame::Task(task) | Frame::Resumed(task) => Some(self.first_event(task)),
            Frame::Message(message) => Some(self.status(completed_with(message), true).build()),
            Frame::Event { event, last, .. } => Some(match &event.event {
                Event::Status(update) => self
                    .status(encode_status(&update.status), *last)
                    .metadata(update.metadata.clone())
                    .build(),
                Event::Artifact(update) => self.artifact(update),
            }),
            Frame::Refused(_) | Frame::KeepAlive | Frame::ComeBack => None,
        }
    }

    /// The first event: 0.1 streams no whole task, so it is the status of the task. The
    /// artifacts that the task has take their indexes; later ones get those that follow.
    fn first_event(&mut self, task: &Task) -> Value {
        for artifact in task.artifacts.iter().flatten() {
            self.index_of(artifact);
        }
        let Status { state, .. } = task.status;
        self.status(encode_status(&task.status), state.is_terminal())
            .build()
    }

    fn status(&self, status: impl Into<Value>, last: bool) -> JsonObject {
        JsonObject::new()
            .with("id", self.id.as_str())
            .with("status", status)
            // A2A 0.1 §7.2.2: the stream closes after an update with `final: true`.
            .with("final", last)
    }

    fn artifact(&mut self, update: &ArtifactUpdate) -> Value {
        let index = self.index_of(&update.artifact);
        let artifact = artifact_members(&update.artifact, index)
            .with("append", update.append)
            .with("lastChunk", update.last_chunk);
        JsonObject::new()
            .with("id", self.id.as_str())
            .with("artifact", artifact)
            .metadata(update.metadata.clone())
            .build()
    }

    /// The index of an artifact in the task. A new artifact gets the next.
    fn index_of(&mut self, artifact: &Artifact) -> usize {
        let position = self.artifacts.iter().position(|id| *id == artifact.id);
        position.unwrap_or_else(|| {
            self.artifacts.push(artifact.id.clone());
            self.artifacts.len() - 1
        })
    }
}
