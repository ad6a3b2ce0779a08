//! `SendMessage` and its older forms `message/send` and `tasks/send`: waits for the
//! turn.

use crate::auth::Caller;
use crate::engine::budget::CallBudget;
use crate::engine::commit::contention::Races;
use crate::engine::error::EngineError;
use crate::engine::parts::Engine;
use crate::engine::turn::event_sink::EventSink;
use crate::engine::turn::spec::{Acceptance, TurnEnd};
use crate::task::metadata_keys::CONTEXT_RESET;
use crate::task::{A2aError, SendCommand, SendMode, SendResponse};
use std::time::Duration;

/// An entry of a batch with less than this of its budget left goes to a worker instead.
const WORTH_WAITING: Duration = Duration::from_secs(3);

impl Engine {
    /// Accepts a message, runs its turn, and returns the task at rest, or the message
    /// of a skill that makes no task.
    ///
    /// All entries of a batch together wait for their turns. If too little of that time
    /// is left for this entry, it does not wait.
    ///
    /// # Errors
    /// The errors of A2A 1.0 §3.1.1; then nothing was created.
    pub async fn send(
        &self,
        caller: &Caller,
        mut command: SendCommand,
        budget: CallBudget,
    ) -> Result<SendResponse, EngineError> {
        let waits_until = self.reader.waits_until(&budget);
        let remaining = waits_until.since(self.reader.clock.now());
        if budget.is_in_batch && remaining < WORTH_WAITING {
            command.mode = SendMode::Immediate;
        }
        let (history_length, mode) = (command.history_length, command.mode);
        let mut acceptance = self.accept.accept(caller, command, budget).await?;
        let mut races = Races::default();
        let (end, reset) = loop {
            let retry = acceptance.take_retry();
            let reset = matches!(&acceptance, Acceptance::Run(spec) if spec.is_reset());
            let sink = &mut EventSink::default();
            let turn = self
                .turns
                .run_accepted(caller, acceptance, Some(waits_until), sink);
            match turn.await {
                Ok(end) => break (end, reset),
                Err(error) => {
                    let again = self
                        .accept
                        .accept_again(caller, retry, budget, error, &mut races);
                    acceptance = again.await?;
                }
            }
        };
        let record = match end {
            TurnEnd::AtRest(record)
            | TurnEnd::HandedOver(record)
            | TurnEnd::Superseded(Some(record)) => record,
            // A2A 1.0 §3.2.2: a blocking send waits for a terminal or interrupted state.
            TurnEnd::Duplicate(record) if mode == SendMode::Blocking => {
                Box::pin(self.reader.wait_for_rest(caller, record, waits_until)).await?
            }
            TurnEnd::Duplicate(record) => record,
            TurnEnd::Superseded(None) => return Err(A2aError::TaskNotFound.into()),
            TurnEnd::Message(message) => {
                return Ok(context_reset(SendResponse::Message(message), reset));
            }
        };
        let task = self.reader.answer(&record, history_length).await?;
        Ok(context_reset(SendResponse::Task(Box::new(task)), reset))
    }
}

/// Marks the response if its context has lost its thread state (metadata
/// `a2a-lambda/contextReset`).
fn context_reset(mut response: SendResponse, reset: bool) -> SendResponse {
    if !reset {
        return response;
    }
    let metadata = match &mut response {
        SendResponse::Task(task) => &mut task.metadata,
        SendResponse::Message(message) => &mut message.metadata,
    };
    metadata.insert(CONTEXT_RESET.to_owned(), true.into());
    response
}
