//! `SendMessage` and its ancestors, waiting for the turn.

use super::admit::Admission;
use super::run::Ended;
use super::sink::Sink;
use super::{Engine, EngineError};
use crate::auth::Caller;
use crate::task::{Refusal, SendCommand, Sent, TaskRecord, Timestamp};

impl Engine {
    /// Takes a message, runs the turn it asks for, and answers with the task at
    /// rest, or with the message of a skill that makes no task.
    ///
    /// `deadline` is the end of the invocation, if it has one.
    ///
    /// # Errors
    /// The refusals of A2A 1.0 §3.1.1; then nothing was created.
    pub async fn send(
        &self,
        caller: &Caller,
        command: SendCommand,
        deadline: Option<Timestamp>,
    ) -> Result<Sent, EngineError> {
        let history_length = command.history_length;
        let work = match self.admit(caller, command, deadline).await? {
            Admission::Work(work) => work,
            Admission::Replay(record) => return self.sent(&record, history_length).await,
        };
        match Box::pin(self.run(*work, &mut Sink::none())).await? {
            Ended::Rested(record) | Ended::Lost(Some(record)) => {
                self.sent(&record, history_length).await
            }
            Ended::Lost(None) => Err(Refusal::TaskNotFound.into()),
            Ended::Message(message) => Ok(Sent::Message(message)),
        }
    }

    async fn sent(&self, record: &TaskRecord, history_length: usize) -> Result<Sent, EngineError> {
        Ok(Sent::Task(Box::new(
            self.reader.answer(record, history_length).await?,
        )))
    }
}
