//! Accepts messages: decides, before anything is written, what becomes of each.

mod accept_message;
pub(super) mod context_status;
pub(super) mod idempotency;
pub(super) mod repeat;

pub use accept_message::RoutePreview;

use super::budget::CallBudget;
use super::{Engine, EngineError};
use crate::auth::Caller;
use crate::engine::commit::SendKey;
use crate::engine::commit::contention::Races;
use crate::engine::turn::spec::TurnSpec;
use crate::task::{A2aError, SendCommand, TaskRecord};

/// What the engine does with a message.
pub(in crate::engine) enum Acceptance {
    /// It runs a turn.
    Run(Box<TurnSpec>),
    /// The message was accepted before: its idempotency key has a task, or it is the
    /// client's last message in its task. The task is returned, and no turn runs.
    Repeat(TaskRecord),
    /// The message is a word that cancels this task, under the key of its send.
    Cancel(Box<TaskRecord>, Option<SendKey>),
}

impl Acceptance {
    /// The message, if it may be accepted again when its turn cannot begin.
    pub(in crate::engine) fn take_retry(&mut self) -> Option<SendCommand> {
        match self {
            Self::Run(spec) => spec.retry.take(),
            Self::Repeat(_) | Self::Cancel(..) => None,
        }
    }
}

impl Engine {
    /// Accepts a message again whose turn could not begin because of `error`: another writer had
    /// answered the task that the message continued by its context. `races` counts how often.
    pub(in crate::engine) async fn accept_again(
        &self,
        caller: &Caller,
        retry: Option<SendCommand>,
        budget: CallBudget,
        error: EngineError,
        races: &mut Races,
    ) -> Result<Acceptance, EngineError> {
        match retry.filter(|_| matches!(error.a2a_error, A2aError::TaskBusy)) {
            Some(command) => {
                races.note_loss()?;
                self.accept(caller, command, budget).await
            }
            None => Err(error),
        }
    }
}
