//! Reads A2A 0.1: `tasks/send` and its relatives.
//!
//! In 0.1 the client makes the task id, messages have no id, an index names an
//! artifact, and a stream starts with a status instead of a task.

use super::compat::{self, V01};
use super::params::Object;
use super::push;
use a2a_lambda_model::task::{Generation, Message, SendCommand, SendMode};

#[cfg(test)]
pub(crate) mod tests;

/// Reads `TaskSendParams` of `tasks/send` and `tasks/sendSubscribe`
/// (A2A 0.1 §7.1.1). The message id is empty: 0.1 has none, and the engine makes
/// one.
pub(crate) fn read_send(params: &Object<'_>) -> Option<SendCommand> {
    let id = params.required_task_id("id");
    let session = params.context_id("sessionId");
    let message = params.required_object("message");
    let message = message.and_then(|message| read_message(&message));
    // A2A 0.1 §7.1.1: no history unless the client names a number.
    let history_length = params.history_length("historyLength", 0);
    let push = params.object("pushNotification");
    let push = push.and_then(|push| push::read(&push, Generation::V01));
    let metadata = params.metadata("metadata");
    Some(SendCommand {
        client_task_id: Some(id?),
        message: Message {
            context_id: session,
            ..message?
        },
        mode: SendMode::Blocking,
        history_length,
        accepted_output_modes: Vec::new(),
        push,
        metadata,
        generation: Generation::V01,
        idempotency_key: None,
    })
}

fn read_message(message: &Object<'_>) -> Option<Message> {
    // A2A 0.1 §6.4: the role is `user` or `agent`; a client sends as `user`.
    let role = message.required_choice("role", &[("user", ())]);
    let parts = message.parts("parts", |part| compat::read_part(part, V01));
    let metadata = message.metadata("metadata");
    role?;
    Some(Message {
        metadata,
        ..Message::from_user("", parts?)
    })
}
