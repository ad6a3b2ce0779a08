//! What a running skill asks of its event loop.

use super::thread::StepUpdates;
use crate::task::{Change, SavePlace, SessionRead, StepResult};
use serde_json::Value;
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
