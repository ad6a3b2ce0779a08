//! Accepts messages: decides, before anything is written, what becomes of each.

mod accept_message;
pub(super) mod idempotency;

pub use accept_message::RoutePreview;

use super::budget::CallBudget;
use super::error::EngineError;
use super::push_config::Pushes;
use super::reader::Reader;
use super::seal::Secrets;
use crate::auth::Caller;
use crate::engine::commit::Commits;
use crate::engine::commit::contention::Races;
use crate::engine::turn::spec::Acceptance;
use crate::task::{A2aError, SendCommand};
use a2a_lambda_skill::AgentDefinition;
use a2a_lambda_skill::route::RouterModel;
use std::sync::Arc;

/// Decides what becomes of a message.
#[derive(Clone)]
pub(crate) struct Accept {
    pub(in crate::engine) reader: Reader,
    pub(in crate::engine) commits: Arc<Commits>,
    pub(in crate::engine) secrets: Secrets,
    pub(in crate::engine) pushes: Pushes,
    pub(in crate::engine) agent: Arc<AgentDefinition>,
    /// The model that chooses a skill, if there is one.
    pub(in crate::engine) router: Option<Arc<RouterModel>>,
}

impl Accept {
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
