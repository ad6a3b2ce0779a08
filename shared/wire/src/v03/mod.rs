//! Reads A2A 0.3, and 0.2 with the same methods: `message/send` and its
//! relatives.
//!
//! Over JSON-RPC the format is that of `types.ts`. Over REST both official SDKs use the
//! `ProtoJSON` of the 0.3 proto, while the prose (A2A 0.3 §3.2.3) describes another
//! JSON. This module reads both.

use super::compat::{self, V03};
use super::params::{MAX_HISTORY, MessageForm, Object, SendOptions};
use super::{Binding, push};
use a2a_lambda_model::task::{Generation, SendCommand, SendMode};

#[cfg(test)]
pub(crate) mod tests;

/// Reads a send (A2A 0.3 §7.1.1).
pub(crate) fn read_send(params: &Object<'_>, binding: Binding) -> Option<SendCommand> {
    let is_rest = binding == Binding::Rest;
    let configuration = params.object("configuration");
    let options = configuration.map_or_else(SendOptions::unset, |it| read_options(&it, is_rest));
    let name = match is_rest {
        true => params.either("message", "request"),
        false => "message",
    };
    let message = params.required_object(name);
    let message = message.and_then(|message| {
        let form = if is_rest {
            MessageForm {
                role: |message| message.required_choice("role", &[("ROLE_USER", ()), ("user", ())]),
                parts: message.either("content", "parts"),
                part: compat::read_rest_part,
            }
        } else {
            message.choice("kind", &[("message", ())]);
            MessageForm {
                role: |message| message.required_choice("role", &[("user", ())]),
                parts: "parts",
                part: |part| compat::read_part(part, V03),
            }
        };
        form.read(&message)
    });
    options.command(params, message, Generation::V03)
}

fn read_options(configuration: &Object<'_>, is_rest: bool) -> SendOptions {
    let (push, default) = match is_rest {
        // ProtoJSON leaves out a member that is false, so an absent `blocking` is false.
        true => (
            configuration.either("pushNotification", "pushNotificationConfig"),
            SendMode::Immediate,
        ),
        false => ("pushNotificationConfig", SendMode::Blocking),
    };
    SendOptions {
        mode: match configuration.boolean("blocking") {
            Some(false) => SendMode::Immediate,
            Some(true) => SendMode::Blocking,
            None => default,
        },
        history_length: configuration.history_length("historyLength", MAX_HISTORY),
        accepted_output_modes: configuration.strings("acceptedOutputModes"),
        push: configuration
            .object(push)
            .and_then(|push| push::read(&push, Generation::V03)),
    }
}
