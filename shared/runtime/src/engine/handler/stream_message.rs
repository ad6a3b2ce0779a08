//! `SendStreamingMessage` and its older forms: runs the same turn as a send, and shows
//! its committed events.

use super::admit::Admission;
use super::run::Ended;
use super::sink::{Sink, Until};
use super::{Engine, EngineError};
use crate::auth::Caller;
use crate::task::{Frame, Refusal, SendCommand, SendMode, Timestamp};
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
        deadline: Option<Timestamp>,
        frames: UnboundedSender<Frame>,
    ) -> Result<(), EngineError> {
        let mut sink = Sink::stream(frames, Until::Rest, command.history_length);
        // A stream always waits for its turn; `mode` is an option of unary calls.
        command.mode = SendMode::Blocking;
        let admission = self.admit(caller, command, deadline).await?;
        let done = Box::pin(self.show_turn(caller, admission, deadline, &mut sink)).await;
        sink.close(done)
    }

    async fn show_turn(
        &self,
        caller: &Caller,
        admission: Admission,
        deadline: Option<Timestamp>,
        sink: &mut Sink,
    ) -> Result<(), EngineError> {
        let work = match admission {
            Admission::Work(work) => work,
            Admission::Replay(record) | Admission::Repeat(record) => {
                return self.reader.follow(caller, *record, deadline, sink).await;
            }
        };
        if work.is_reset() {
            sink.says_reset();
        }
        if work.queued {
            let record = Box::pin(self.enqueue(*work, sink)).await?;
            return self.reader.follow(caller, record, deadline, sink).await;
        }
        match Box::pin(self.run(*work, None, sink)).await? {
            Ended::Rested(record) if record.hidden => {
                self.reader.follow(caller, record, deadline, sink).await
            }
            Ended::Rested(_) => Ok(()),
            Ended::Message(message) => {
                sink.message(message);
                Ok(())
            }
            // Another invocation continues the turn, or another writer was faster: show
            // what is stored.
            Ended::HandedOver(record) | Ended::Lost(Some(record)) | Ended::Repeated(record) => {
                self.reader.follow(caller, record, deadline, sink).await
            }
            Ended::Lost(None) => Err(Refusal::TaskNotFound.into()),
        }
    }
}
