//! Reads a send of 1.0.

use crate::params::{self, Object, ReadResult};
use crate::push;
use a2a_lambda_model::task::{Generation, Part, PartContent, SendCommand, SendMode, TaskId};

/// Reads `SendMessage` and `SendStreamingMessage`.
pub(crate) fn read_send(params: &Object<'_>) -> ReadResult<SendCommand> {
    let message = params.required_object("message")?;
    // A2A 1.0 §4.1.5: `ROLE_USER` is the role of the client.
    let message = params::read_message(&message, &["ROLE_USER"], "parts", read_part)?;
    params::read_send(params, message, Generation::V10, read_options)
}

fn read_options(configuration: &Object<'_>, command: &mut SendCommand) -> ReadResult<()> {
    // Clients use the second name, too.
    let push = configuration.either("taskPushNotificationConfig", "pushNotificationConfig")?;
    if let Some(push) = configuration.object(push)? {
        push.id::<TaskId>("taskId")?;
        push.string("tenant")?;
        command.push = Some(push::read(&push, Generation::V10)?);
    }
    if configuration.boolean("returnImmediately")? == Some(true) {
        command.mode = SendMode::Immediate;
    }
    Ok(())
}

fn read_part(part: &Object<'_>) -> ReadResult<Part> {
    // A2A 1.0 §4.1.6: a part has exactly one content. `data` is any JSON value, so its null
    // is a value.
    let (text, raw) = (part.string("text")?, part.base64("raw")?);
    let (_, content) = part.only([
        ("text", text.map(|it| PartContent::Text(it.to_owned()))),
        ("raw", raw.map(PartContent::Raw)),
        (
            "url",
            part.text("url")?.map(|it| PartContent::Url(it.to_owned())),
        ),
        ("data", part.raw("data")?.cloned().map(PartContent::Data)),
    ])?;
    Ok(Part {
        content,
        filename: part.text("filename")?.map(str::to_owned),
        media_type: part.text("mediaType")?.map(str::to_owned),
        metadata: part.metadata("metadata")?,
    })
}
