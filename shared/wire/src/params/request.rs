//! Reads the requests that the generations have in common: a send and a list.

use super::{MAX_HISTORY, Object, ReadResult};
use crate::state_name::state_filter;
use a2a_lambda_model::task::{
    Generation, ListQuery, Message, Metadata, Part, SendCommand, SendMode, Timestamp,
};

/// Reads a message of 0.3 or 1.0. The member `parts_name` holds its parts, each read by `part`.
pub(crate) fn read_message(
    message: &Object<'_>,
    roles: &[&str],
    parts_name: &str,
    part: impl Fn(&Object<'_>) -> ReadResult<Part>,
) -> ReadResult<Message> {
    // A2A 1.0 §4.1.4; A2A 0.3 §6.4: the members of a message.
    let id = message.required_text("messageId")?;
    let context_id = message.id("contextId")?;
    let task_id = message.id("taskId")?;
    message.role(roles)?;
    let parts = message.parts(parts_name, part)?;
    Ok(Message {
        context_id,
        task_id,
        metadata: message.metadata("metadata")?,
        extensions: message.strings("extensions")?,
        reference_task_ids: message.strings("referenceTaskIds")?,
        ..Message::from_user(id, parts)
    })
}

/// Reads a send of 0.3 or 1.0 whose message is read. `options` reads those members of its
/// configuration that the two have not in common.
pub(crate) fn read_send(
    params: &Object<'_>,
    message: Message,
    generation: Generation,
    options: impl FnOnce(&Object<'_>, &mut SendCommand) -> ReadResult<()>,
) -> ReadResult<SendCommand> {
    let mut command = new_send(message, generation);
    if let Some(configuration) = params.object("configuration")? {
        command.history_length = configuration.history_length(MAX_HISTORY)?;
        command.accepted_output_modes = configuration.strings("acceptedOutputModes")?;
        options(&configuration, &mut command)?;
    }
    command.metadata = params.metadata("metadata")?;
    Ok(command)
}

/// The send of a message without options.
pub(crate) fn new_send(message: Message, generation: Generation) -> SendCommand {
    SendCommand {
        message,
        client_task_id: None,
        // A2A 1.0 §3.2.2: a send is blocking unless it asks to return immediately.
        // A2A 0.3 §7.1.1: the default of `blocking` is open. SDK clients send `blocking: true`.
        mode: SendMode::Blocking,
        history_length: MAX_HISTORY,
        accepted_output_modes: Vec::new(),
        push: None,
        metadata: Metadata::new(),
        generation,
        idempotency_key: None,
    }
}

/// Reads a list.
pub(crate) fn read_list(params: &Object<'_>, generation: Generation) -> ReadResult<ListQuery> {
    // A2A 1.0 §3.1.4: the members and their defaults.
    Ok(ListQuery {
        context_id: params.id("contextId")?,
        status: params.choice("status", &state_filter(generation))?,
        page_size: params.page_size()?,
        page_token: params.text("pageToken")?.map(str::to_owned),
        history_length: params.history_length(MAX_HISTORY)?,
        status_after: params.text_as(
            "statusTimestampAfter",
            "must be an RFC 3339 time",
            Timestamp::parse_rfc3339,
        )?,
        include_artifacts: params.boolean("includeArtifacts")?.unwrap_or(false),
    })
}
