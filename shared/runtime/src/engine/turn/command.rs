//! What a running skill asks of its event loop, and the artifacts of its task.

use super::thread::StepUpdates;
use crate::task::{ArtifactUpdate, Change, Metadata, SavePlace, SessionRead, StepResult, WriteId};
use a2a_lambda_skill::Artifact as SkillArtifact;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

/// A request of the skill to the event loop.
#[derive(Debug)]
pub(in crate::engine) enum SkillCommand {
    /// Show this as an event. The path is that of the scope that says it; `None` if its count
    /// has the output already. The skill waits with its next output until the loop has this one.
    Emit(Option<Arc<str>>, Box<Change>, OwnedSemaphorePermit),
    /// The time is up and a step wants to start: hand the turn over.
    Stop,
    /// Save a value; acknowledge it when it is stored.
    Save {
        key: String,
        value: Value,
        save_place: Box<SavePlace>,
        /// Outside of steps: the path of the save, and its number.
        order: Option<(String, u64)>,
        reads: Vec<SessionRead>,
        ack: oneshot::Sender<()>,
    },
    /// Keep the result of a step; acknowledge it when it is stored. One that nobody waits for is
    /// stored with the next write.
    Step {
        key: String,
        result: Box<StepResult>,
        /// What the commit of the step applies to the session.
        updates: StepUpdates,
        reads: Vec<SessionRead>,
        ack: Option<oneshot::Sender<()>>,
    },
    /// Acknowledge when all before this is stored.
    Flush(oneshot::Sender<()>),
}

/// The update of an artifact in the task with this incarnation. Its name identifies it: a repeat
/// replaces it, and a chunk appends to it.
pub(in crate::engine) fn artifact_update(
    incarnation: &WriteId,
    artifact: SkillArtifact,
    append: bool,
    last_chunk: bool,
) -> ArtifactUpdate {
    let id = artifact_id(incarnation, &artifact.name);
    ArtifactUpdate {
        artifact: artifact.into_task_artifact(id),
        append,
        last_chunk,
        metadata: Metadata::new(),
    }
}

/// The id of an artifact. It is the same for a name in every attempt of a task, so that
/// a repeated turn replaces what it made before. It differs from task to task.
fn artifact_id(incarnation: &WriteId, name: &str) -> String {
    let mut hash = Sha256::new();
    hash.update(incarnation.as_str());
    hash.update([0]);
    hash.update(name);
    let hex = hex::encode(hash.finalize());
    format!("artifact-{}", hex.get(..32).unwrap_or_default())
}
