//! Ends a turn from inside its skill. The skill cannot catch it: the call that found the
//! reason never returns, and the event loop drops the skill.

use crate::clock::lock;
use crate::store::StoreError;
use crate::task::{A2aError, Timestamp};
use a2a_lambda_skill::AgentError;
use std::sync::Mutex;
use tokio::sync::Notify;

/// Why a turn ends without the return value of its skill.
#[derive(Debug)]
pub(in crate::engine) enum TurnBreak {
    /// A store was unavailable. The turn runs again.
    Outage(StoreError),
    /// The task fails.
    Failed(AgentError),
    /// The skill asks for other steps than those that are stored.
    Changed(StepChangedError),
    /// A step is tried again then: another run of the turn does it.
    Waits(Timestamp),
    /// An operator has braked the turn: it runs again when the brake is lifted. The error of a new
    /// call.
    Braked(A2aError),
}

/// A turn that did not ask for what is stored.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the stored turn has {before}, the skill asks for {now}")]
pub(in crate::engine) struct StepChangedError {
    pub(in crate::engine) before: String,
    pub(in crate::engine) now: String,
}

/// Takes the reason from the skill to the event loop.
#[derive(Debug, Default)]
pub(in crate::engine) struct BreakSignal {
    reason: Mutex<Option<TurnBreak>>,
    notify: Notify,
}

impl BreakSignal {
    /// Ends the turn. The caller must not return to the skill.
    pub(in crate::engine) fn set(&self, reason: TurnBreak) {
        lock(&self.reason).get_or_insert(reason);
        self.notify.notify_one();
    }

    /// Ends the turn. It never returns.
    pub(in crate::engine) async fn end(&self, reason: TurnBreak) -> ! {
        self.set(reason);
        loop {
            std::future::pending::<()>().await;
        }
    }

    /// Waits until the turn ends. It may be dropped and called again.
    pub(in crate::engine) async fn wait(&self) -> TurnBreak {
        loop {
            if let Some(reason) = lock(&self.reason).take() {
                return reason;
            }
            self.notify.notified().await;
        }
    }
}
