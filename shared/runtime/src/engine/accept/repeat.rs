//! Recognises a message that its client sends again without an idempotency key.
//!
//! A client whose response was lost sends its answer once more. The task may have asked its
//! next question meanwhile, and must not take the same message as the answer to that.

use super::request_hash::parts_hash;
use crate::engine::{Engine, EngineError};
use crate::task::{Message, Role, SendCommand, TaskRecord};

/// What recognises a message to a task when it is sent again.
#[derive(Debug, Clone)]
pub(in crate::engine) struct MessagePrint {
    /// The message id; empty for A2A 0.1, which has none.
    id: String,
    /// The hash of the parts.
    parts: Vec<u8>,
    /// Whether the client gave an idempotency key. Then only the key makes a repeat.
    is_keyed: bool,
}

impl MessagePrint {
    /// The print of a message as its client sent it; `None` if it names no task.
    pub(super) fn of(command: &SendCommand) -> Option<Self> {
        let message = &command.message;
        let names_a_task = message.task_id.is_some() || command.client_task_id.is_some();
        names_a_task.then(|| Self::of_send(command))
    }

    /// The print of a message whose task is known.
    pub(super) fn of_send(command: &SendCommand) -> Self {
        Self {
            is_keyed: command.idempotency_key.is_some(),
            ..Self::of_message(&command.message)
        }
    }

    /// The print of a message without an idempotency key.
    pub(in crate::engine) fn of_message(message: &Message) -> Self {
        Self {
            id: message.id.clone(),
            parts: parts_hash(&message.parts),
            is_keyed: false,
        }
    }

    /// The print as bytes, for a fingerprint.
    pub(in crate::engine) fn bytes(&self) -> Vec<u8> {
        [&self.parts, self.id.as_bytes()].concat()
    }
}

impl Engine {
    /// Whether the client sends its last message of the task again: the same id with the
    /// same content. A record without a fingerprint has that message in its history.
    pub(in crate::engine) async fn is_repeat(
        &self,
        record: &TaskRecord,
        print: &MessagePrint,
    ) -> Result<bool, EngineError> {
        // A2A 0.1 has no message ids, and the same words may answer two questions.
        let is_answer = print.id.is_empty() && record.state().is_interrupted();
        if print.is_keyed || is_answer {
            return Ok(false);
        }
        if let Some(fingerprint) = record.fingerprint.as_deref() {
            let print = print.bytes();
            return Ok(self.has_fingerprint(record, fingerprint, &print).await?);
        }
        Ok(last_message(record).is_some_and(|last| {
            (print.id.is_empty() || print.id == last.id) && print.parts == parts_hash(&last.parts)
        }))
    }
}

/// The client's last message in a task: it opened the current turn.
pub(in crate::engine) fn last_message(record: &TaskRecord) -> Option<&Message> {
    let mut messages = record.history.iter().rev();
    messages.find(|message| message.role == Role::User)
}
