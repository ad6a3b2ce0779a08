//! What a running skill asks of its event loop.

use super::thread::StepUpdates;
use crate::task::StepResult;
use a2a_lambda_skill::turn_host::Emission;
use serde_json::Value;
use std::sync::Arc;
use tokio::sync::oneshot;

/// A request of the skill to the event loop.
#[derive(Debug)]
pub(in crate::engine) enum SkillCommand {
    /// Show this as an event. The path is that of the scope that says it; `None` if its count
    /// has the output already.
    Emit(Option<Arc<str>>, Emission),
    /// The time is up and a step wants to start: hand the turn over.
    Stop,
    /// Save a value; acknowledge it when it is stored.
    Save {
        key: String,
        value: Value,
        ack: oneshot::Sender<()>,
    },
    /// Save a step's result; acknowledge it when it is stored.
    Step {
        key: String,
        result: Box<StepResult>,
        /// What the commit of the step applies to the session.
        updates: StepUpdates,
        ack: oneshot::Sender<()>,
    },
}
