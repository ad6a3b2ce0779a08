//! Reads a send of 1.0.

use crate::params::{MAX_HISTORY, MessageForm, Object, SendOptions};
use crate::push;
use a2a_lambda_model::task::{Generation, Part, PartContent, SendCommand, SendMode};
use serde_json::Value;

/// Reads `SendMessage` and `SendStreamingMessage`.
pub(crate) fn read_send(params: &Object<'_>) -> Option<SendCommand> {
    let message = params.required_object("message");
    let message = message.and_then(|message| MESSAGE.read(&message));
    let configuration = params.object("configuration");
    let options = configuration.map_or_else(SendOptions::unset, |it| read_options(&it));
    options.command(params, message, Generation::V10)
}

const MESSAGE: MessageForm = MessageForm {
    role: read_role,
    parts: "parts",
    part: read_part,
};

fn read_role(message: &Object<'_>) -> Option<()> {
    // A2A 1.0 §4.1.5: `ROLE_USER` is the role of the client.
    let is_user = |role: &Value| (role == "ROLE_USER").then_some(());
    let role = message.parsed("role", "must be `ROLE_USER`", is_user);
    message.required_member("role", role)
}

fn read_part(part: &Object<'_>) -> Option<Part> {
    let text = part.string("text");
    let raw = part.base64("raw");
    let url = part.text("url");
    let filename = part.text("filename").map(str::to_owned);
    let media_type = part.text("mediaType").map(str::to_owned);
    let metadata = part.metadata("metadata");
    // A2A 1.0 §4.1.6: a part has exactly one content. `data` is any JSON value, so its null
    // is a value.
    let content = part.exactly_one_by(&["text", "raw", "url", "data"], |name| match name {
        "data" => part.raw(name).is_some(),
        "url" => part.member(name).is_some_and(|url| url != ""),
        _ => part.member(name).is_some(),
    })?;
    Some(Part {
        content: match content {
            "text" => PartContent::Text(text?.to_owned()),
            "raw" => PartContent::Raw(raw?),
            "url" => PartContent::Url(url?.to_owned()),
            _ => PartContent::Data(part.raw("data")?.clone()),
        },
        filename,
        media_type,
        metadata,
    })
}

fn read_options(configuration: &Object<'_>) -> SendOptions {
    const PUSH: &str = "taskPushNotificationConfig";
    SendOptions {
        accepted_output_modes: configuration.strings("acceptedOutputModes"),
        push: {
            // Clients use this name, too.
            let alias = configuration.either(PUSH, "pushNotificationConfig");
            let push = configuration.aliased(PUSH, alias);
            push.and_then(|push| {
                push.task_id("taskId");
                push.string("tenant");
                push::read(&push, Generation::V10)
            })
        },
        history_length: configuration.history_length("historyLength", MAX_HISTORY),
        mode: match configuration.boolean("returnImmediately") {
            Some(true) => SendMode::Immediate,
            Some(false) | None => SendMode::Blocking,
        },
    }
}
