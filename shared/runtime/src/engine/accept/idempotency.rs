//! Recognises repeated sends by their idempotency key. `repeat` recognises a message without
//! one.
//!
//! A keyed send looks up its key before everything else, and stores the key in one
//! transaction with the task. So the second of two sends finds the first one's task,
//! even if both arrive together, and the skill runs once.

use super::Acceptance;
use super::request_hash::request_hash;
use crate::auth::Caller;
use crate::engine::budget::CallBudget;
use crate::engine::commit::send_key::SendKey;
use crate::engine::turn::event_sink::EventSink;
use crate::engine::turn::spec::{TurnInput, TurnSpec};
use crate::engine::{Engine, EngineError, Reader};
use crate::task::{A2aError, IdempotencyKey, Message, SendCommand, TaskRecord, TaskState};

/// `Retry-After` in seconds while a reply is still being made.
const RETRY_AFTER: u64 = 1;

impl TurnSpec {
    /// Makes this the turn of a keyed send, which is never deferred. If the skill makes
    /// no task, a hidden task keeps its reply.
    pub(in crate::engine) fn keyed(&mut self, key: SendKey) {
        let makes_task = match &self.job {
            TurnInput::Skill(skill, _) => skill.makes_task(),
            TurnInput::Ask { .. } | TurnInput::Fail(_) => true,
        };
        // The skill makes no task, so clients must not see the one that stores the reply.
        if self.record.version() == 0 && !makes_task && !self.force {
            self.record.hide();
        }
        self.key = Some(key);
        self.force = true;
    }
}

impl Engine {
    /// The key of a send: the one its client gave, or the message id if the policy says
    /// so.
    pub(in crate::engine) fn send_key(
        &self,
        caller: &Caller,
        command: &SendCommand,
    ) -> Option<SendKey> {
        let given = command.idempotency_key.clone();
        let id = &command.message.id;
        let by_message = self.reader.policy.idempotent_message_id && !id.is_empty();
        let key = given.or_else(|| by_message.then(|| IdempotencyKey::of_message(id)))?;
        Some(SendKey::new(
            key.hash(&caller.owner),
            key.seal(&request_hash(command)),
        ))
    }

    /// Accepts a keyed send once, however often it is repeated.
    pub(in crate::engine) async fn accept_keyed(
        &self,
        caller: &Caller,
        command: SendCommand,
        budget: CallBudget,
        key: SendKey,
    ) -> Result<Acceptance, EngineError> {
        // Comes first, because the first send may have changed what the next check
        // reads.
        if let Some(record) = self.find_duplicate(caller, &key).await? {
            return Ok(Acceptance::Repeat(record));
        }
        match self.accept_unkeyed(caller, command, budget).await {
            Ok(Acceptance::Run(mut work)) => {
                work.keyed(key);
                Ok(Acceptance::Run(work))
            }
            // The first send may have stored its task after the lookup above, and this
            // send may have found that task or been refused because of it.
            found_or_refused => match self.find_duplicate(caller, &key).await? {
                Some(record) => Ok(Acceptance::Repeat(record)),
                None => found_or_refused,
            },
        }
    }

    /// The task that an earlier send under this key created or continued.
    ///
    /// # Errors
    /// [`A2aError::IdempotencyKeyReused`] if that send asked for something else.
    async fn find_duplicate(
        &self,
        caller: &Caller,
        key: &SendKey,
    ) -> Result<Option<TaskRecord>, EngineError> {
        let now = self.reader.clock.now();
        let found = self
            .tasks
            .load_key(&caller.owner, key.address(), now)
            .await?;
        Ok(found.map(|keyed| key.task_of(keyed)).transpose()?)
    }
}

impl Reader {
    /// The reply that a hidden task keeps.
    ///
    /// # Errors
    /// [`A2aError::Unavailable`] while the reply is being made: a repeated send gets it
    /// later. [`A2aError::TaskNotFound`] if the task ended without a reply.
    pub(in crate::engine) async fn reply(
        &self,
        record: &TaskRecord,
    ) -> Result<Message, EngineError> {
        if !record.state().is_at_rest() {
            let retry_after = RETRY_AFTER;
            return Err(A2aError::Unavailable { retry_after }.into());
        }
        let message = record.status().message.clone();
        let (TaskState::Completed, Some(mut message)) = (record.state(), message) else {
            return Err(A2aError::TaskNotFound.into());
        };
        self.fit_message(&mut message).await?;
        Ok(as_message(message))
    }

    /// Shows a task that another invocation runs, or the reply it keeps, in time before
    /// the limits of `budget`.
    pub(in crate::engine) async fn follow(
        &self,
        caller: &Caller,
        record: TaskRecord,
        budget: CallBudget,
        sink: &mut EventSink,
    ) -> Result<(), EngineError> {
        if !record.is_hidden() {
            return self.tail(caller, &record, budget, sink).await;
        }
        let until = self.reply_ends(&budget);
        let record = self.rested(caller, record, until).await?;
        if !record.is_hidden() {
            return self.tail(caller, &record, budget, sink).await;
        }
        sink.message(self.reply(&record).await?);
        Ok(())
    }
}

/// A message that is the whole response: it names no task.
pub(in crate::engine) fn as_message(mut message: Message) -> Message {
    message.task_id = None;
    message
}

#[cfg(test)]
mod tests;
