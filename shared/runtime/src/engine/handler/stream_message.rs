//! `SendStreamingMessage` and its older forms: runs the same turn as a send, and shows
//! its committed events.

use crate::auth::Caller;
use crate::engine::budget::CallBudget;
use crate::engine::commit::contention::Races;
use crate::engine::error::EngineError;
use crate::engine::parts::Engine;
use crate::engine::turn::event_sink::{EventSink, StreamEnd};
use crate::engine::turn::spec::{Acceptance, TurnEnd};
use crate::task::{A2aError, Frame, SendCommand, SendMode};
use tokio::sync::mpsc::UnboundedSender;

impl Engine {
    /// Accepts a message and shows its turn on `frames`: the task first, then each
    /// event after its commit. Returns when the stream is over. The turn does not stop
    /// when the client disconnects.
    ///
    /// # Errors
    /// Errors before the first frame. A later error is the last frame.
    pub async fn stream(
        &self,
        caller: &Caller,
        mut command: SendCommand,
        budget: CallBudget,
        frames: UnboundedSender<Frame>,
    ) -> Result<(), EngineError> {
        let mut sink = EventSink::stream(frames, StreamEnd::Rest, command.history_length);
        // A stream always waits for its turn; `mode` is an option of unary calls.
        command.mode = SendMode::Blocking;
        let mut acceptance = self.accept.accept(caller, command, budget).await?;
        let mut races = Races::default();
        loop {
            let retry = acceptance.take_retry();
            match self.show_turn(caller, acceptance, budget, &mut sink).await {
                Err(error) if retry.is_some() => {
                    let again = self
                        .accept
                        .accept_again(caller, retry, budget, error, &mut races);
                    acceptance = again.await?;
                }
                result => return sink.close(result),
            }
        }
    }

    async fn show_turn(
        &self,
        caller: &Caller,
        acceptance: Acceptance,
        budget: CallBudget,
        sink: &mut EventSink,
    ) -> Result<(), EngineError> {
        let turn = self.turns.run_accepted(caller, acceptance, None, sink);
        match turn.await? {
            TurnEnd::AtRest(_) => Ok(()),
            TurnEnd::Message(message) => {
                sink.message(message);
                Ok(())
            }
            // Another invocation runs the turn, or another writer was faster: show what is
            // stored.
            TurnEnd::HandedOver(record)
            | TurnEnd::Superseded(Some(record))
            | TurnEnd::Duplicate(record) => self.reader.tail(caller, &record, budget, sink).await,
            TurnEnd::Superseded(None) => Err(A2aError::TaskNotFound.into()),
        }
    }
}
