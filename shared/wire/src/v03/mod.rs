//! Reads A2A 0.3, and 0.2 with the same methods: `message/send` and its
//! relatives.
//!
//! Over JSON-RPC the format is that of `types.ts`. Over REST both official SDKs use the
//! `ProtoJSON` of the 0.3 proto, while the prose (A2A 0.3 §3.2.3) describes another
//! JSON. This module reads both.

use super::compat::{self, V03};
use super::params::{self, Object, ReadResult};
use super::{Binding, push};
use a2a_lambda_model::task::{Generation, SendCommand, SendMode};

#[cfg(test)]
pub(crate) mod tests;

/// Reads a send (A2A 0.3 §7.1.1).
pub(crate) fn read_send(params: &Object<'_>, binding: Binding) -> ReadResult<SendCommand> {
    let is_rest = binding == Binding::Rest;
    let message = if is_rest {
        let message = params.required_object(params.either("message", "request")?)?;
        let parts = message.either("content", "parts")?;
        let roles = ["ROLE_USER", "user"];
        params::read_message(&message, &roles, parts, compat::read_rest_part)?
    } else {
        let message = params.required_object("message")?;
        message.choice("kind", &[("message", ())])?;
        let read_part = |part: &Object<'_>| compat::read_part(part, V03);
        params::read_message(&message, &["user"], "parts", read_part)?
    };
    let read_options = |configuration: &Object<'_>, command: &mut SendCommand| {
        let push = match is_rest {
            true => configuration.either("pushNotification", "pushNotificationConfig")?,
            false => "pushNotificationConfig",
        };
        if let Some(push) = configuration.object(push)? {
            command.push = Some(push::read(&push, Generation::V03)?);
        }
        // ProtoJSON leaves out a member that is false, so an absent `blocking` is false.
        if !configuration.boolean("blocking")?.unwrap_or(!is_rest) {
            command.mode = SendMode::Immediate;
        }
        Ok(())
    };
    params::read_send(params, message, Generation::V03, read_options)
}
