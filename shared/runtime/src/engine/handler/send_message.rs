//! `SendMessage` and its older forms `message/send` and `tasks/send`: waits for the
//! turn.

use crate::auth::Caller;
use crate::engine::accept::Acceptance;
use crate::engine::budget::CallBudget;
use crate::engine::turn::event_sink::EventSink;
use crate::engine::turn::spec::{TurnEnd, TurnSpec};
use crate::engine::{Engine, EngineError};
use crate::task::metadata_keys::CONTEXT_RESET;
use crate::task::{A2aError, SendCommand, SendMode, Sent, TaskRecord, Timestamp};
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
    ) -> Result<Sent, EngineError> {
        let waits_until = self.reader.waits_until(&budget);
        let left = waits_until.since(self.reader.clock.now());
        if budget.is_in_batch() && left < WORTH_WAITING {
            command.mode = SendMode::Immediate;
        }
        let (history_length, mode) = (command.history_length, command.mode);
        let work = match self.accept(caller, command, budget).await? {
            Acceptance::Run(work) => work,
            Acceptance::Repeat(record) => {
                // Boxed, as what else is rare: a future is moved with room for all it awaits.
                let record = Box::pin(self.waited(caller, record, mode, waits_until)).await?;
                return self.sent(&record, history_length).await;
            }
        };
        let reset = work.is_reset();
        let worked = self.work_through(caller, *work, mode, history_length, waits_until);
        let sent = Box::pin(worked).await?;
        Ok(if reset { context_reset(sent) } else { sent })
    }

    async fn work_through(
        &self,
        caller: &Caller,
        work: TurnSpec,
        mode: SendMode,
        history_length: usize,
        waits_until: Timestamp,
    ) -> Result<Sent, EngineError> {
        if work.queued {
            return Box::pin(self.queued(caller, work, mode, history_length, waits_until)).await;
        }
        let work = TurnSpec {
            budget: work.budget.waiting_until(waits_until),
            ..work
        };
        match Box::pin(self.run(work, None, &mut EventSink::none())).await? {
            TurnEnd::Stopped(record)
            | TurnEnd::HandedOver(record)
            | TurnEnd::Superseded(Some(record)) => self.sent(&record, history_length).await,
            TurnEnd::Duplicate(record) => {
                let record = Box::pin(self.waited(caller, record, mode, waits_until)).await?;
                self.sent(&record, history_length).await
            }
            TurnEnd::Superseded(None) => Err(A2aError::TaskNotFound.into()),
            TurnEnd::Message(message) => Ok(Sent::Message(message)),
        }
    }

    /// Queues a turn for a worker. Depending on `mode`, it responds immediately, or
    /// when the task rests or the time to wait is over.
    async fn queued(
        &self,
        caller: &Caller,
        work: TurnSpec,
        mode: SendMode,
        history_length: usize,
        waits_until: Timestamp,
    ) -> Result<Sent, EngineError> {
        let record = Box::pin(self.enqueue(work, &mut EventSink::none())).await?;
        let record = self.waited(caller, record, mode, waits_until).await?;
        self.sent(&record, history_length).await
    }

    /// A task that another invocation runs, after its caller has waited for it.
    async fn waited(
        &self,
        caller: &Caller,
        record: TaskRecord,
        mode: SendMode,
        waits_until: Timestamp,
    ) -> Result<TaskRecord, EngineError> {
        // A2A 1.0 §3.2.2: a blocking send waits for a terminal or interrupted state.
        if mode == SendMode::Blocking {
            return self.reader.rested(caller, record, waits_until).await;
        }
        Ok(record)
    }

    async fn sent(&self, record: &TaskRecord, history_length: usize) -> Result<Sent, EngineError> {
        Ok(Sent::Task(Box::new(
            self.reader.answer(record, history_length).await?,
        )))
    }
}

/// Marks the response of a context that has lost its thread state (metadata
/// `a2a-lambda/contextReset`).
fn context_reset(mut sent: Sent) -> Sent {
    let metadata = match &mut sent {
        Sent::Task(task) => &mut task.metadata,
        Sent::Message(message) => &mut message.metadata,
    };
    metadata.insert(CONTEXT_RESET.to_owned(), true.into());
    sent
}
