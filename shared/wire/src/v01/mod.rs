//! Reads A2A 0.1: `tasks/send` and its relatives.
//!
//! In 0.1 the client makes the task id, messages have no id, an index names an
//! artifact, and a stream starts with a status instead of a task.

use super::compat::{self, V01};
use super::params::{self, Object, ReadResult};
use super::push;
use a2a_lambda_model::task::{Generation, Message, SendCommand};

#[cfg(test)]
pub(crate) mod tests;

/// Reads `TaskSendParams` of `tasks/send` and `tasks/sendSubscribe`
/// (A2A 0.1 §7.1.1). The message id is empty: 0.1 has none, and the engine makes
/// one.
pub(crate) fn read_send(params: &Object<'_>) -> ReadResult<SendCommand> {
    let id = params.required_id("id")?;
    let context_id = params.id("sessionId")?;
    let message = params.required_object("message")?;
    // A2A 0.1 §6.4: the role is `user` or `agent`; a client sends as `user`.
    message.role(&["user"])?;
    let parts = message.parts("parts", |part| compat::read_part(part, V01))?;
    let message = Message {
        context_id,
        metadata: message.metadata("metadata")?,
        ..Message::from_user("", parts)
    };
    // A2A 0.1 §7.1.1: no history unless the client names a number.
    let history_length = params.history_length(0)?;
    let push = params.object("pushNotification")?;
    Ok(SendCommand {
        client_task_id: Some(id),
        history_length,
        push: push
            .map(|it| push::read(&it, Generation::V01))
            .transpose()?,
        metadata: params.metadata("metadata")?,
        ..params::new_send(message, Generation::V01)
    })
}
