//! Reads a send of every dialect, under the names of 1.0, and its idempotency key.
//! [`words`](super::words) has the names that its client uses.

use super::params::{Object, ReadResult, default_history};
use super::words::{KINDS, VALUE, WRAPPED, words_of_file};
use super::{Binding, Dialect, push};
use a2a_lambda_model::task::{
    A2aError, Generation, IdempotencyKey, Message, Metadata, Part, PartContent, SendCommand,
    SendMode, TaskId,
};
use serde_json::Value;

/// The header with the idempotency key of a send.
pub(super) const KEY_HEADER: &str = "Idempotency-Key";

/// Reads a send (A2A 1.0 §3.1.1; A2A 0.3 §7.1.1; A2A 0.1 §7.1.1).
pub(crate) fn read(params: &Object<'_>, dialect: Dialect) -> ReadResult<SendCommand> {
    let generation = dialect.generation;
    let is_v01 = generation == Generation::V01;
    let client_task_id = match is_v01 {
        true => Some(params.required_id("id")?),
        false => None,
    };
    let message = read_message(params, dialect)?;
    let configuration = params.object("configuration")?;
    // A2A 0.1 §7.1.1: the options are members of the request itself.
    let options = if is_v01 {
        Some(params)
    } else {
        configuration.as_ref()
    };
    let mut command = SendCommand {
        message,
        client_task_id,
        // A2A 1.0 §3.2.2: a send is blocking unless it asks to return immediately.
        // A2A 0.3 §7.1.1: the default of `blocking` is open. SDK clients send `blocking: true`.
        mode: SendMode::Blocking,
        history_length: default_history(generation),
        accepted_output_modes: Vec::new(),
        push: None,
        metadata: params.metadata("metadata")?,
        generation,
        idempotency_key: None,
    };
    if let Some(options) = options {
        command.history_length = options.history_length(command.history_length)?;
        command.accepted_output_modes = options.strings("acceptedOutputModes")?;
        if let Some(push) = options.object("taskPushNotificationConfig")? {
            if generation == Generation::V10 {
                push.id::<TaskId>("taskId")?;
                push.string("tenant")?;
            }
            command.push = Some(push::read(&push, generation)?);
        }
        if !waits(options, dialect)? {
            command.mode = SendMode::Immediate;
        }
    }
    Ok(command)
}

fn waits(options: &Object<'_>, dialect: Dialect) -> ReadResult<bool> {
    Ok(match dialect.generation {
        Generation::V10 => options.boolean("returnImmediately")? != Some(true),
        Generation::V03 => {
            // ProtoJSON leaves out a member that is false, so an absent `blocking` is false.
            let default = dialect.binding == Binding::JsonRpc;
            options.boolean("blocking")?.unwrap_or(default)
        }
        Generation::V01 => true,
    })
}

/// Reads the message of a send (A2A 1.0 §4.1.4; A2A 0.3 §6.4; A2A 0.1 §6.4).
fn read_message(params: &Object<'_>, dialect: Dialect) -> ReadResult<Message> {
    let is_v01 = dialect.generation == Generation::V01;
    let message = params.required_object("message")?;
    if dialect == Dialect::json_rpc(Generation::V03) {
        message.choice("kind", &[("message", ())])?;
    }
    // 0.1 has no message ids, and the engine makes one. The context is that of the request.
    let (id, holder) = match is_v01 {
        true => ("", params),
        false => (message.required_text("messageId")?, &message),
    };
    let context_id = holder.id("contextId")?;
    let task_id = message.id("taskId")?;
    message.role()?;
    let parts = message.parts(|part| read_part(part, dialect))?;
    Ok(Message {
        context_id,
        task_id,
        metadata: message.metadata("metadata")?,
        extensions: message.strings("extensions")?,
        reference_task_ids: message.strings("referenceTaskIds")?,
        ..Message::from_user(id, parts)
    })
}

/// Reads a part (A2A 1.0 §4.1.6; A2A 0.3 §6.5; A2A 0.1 §6.5), which has exactly one content.
fn read_part(part: &Object<'_>, dialect: Dialect) -> ReadResult<Part> {
    let mut metadata = part.metadata("metadata")?;
    let text = ("text", part.string("text")?.map(Part::text));
    let (path, data) = data_of(part, dialect)?;
    let data = ("data", data.cloned().map(Part::data));
    if dialect.generation == Generation::V10 {
        let [raw, url] = contents_of_file(part)?;
        let (_, content) = part.only([text, raw, url, data])?;
        return describe_file(
            part,
            Part {
                metadata,
                ..content
            },
        );
    }
    // If the tag is missing, the content gives the kind.
    let tag = part.choice("kind", &KINDS)?;
    let file = part.object("file")?.map(|file| {
        let file = file.in_words(words_of_file(dialect));
        describe_file(&file, file.only(contents_of_file(&file)?)?.1)
    });
    let contents = [text, ("file", file.transpose()?), data];
    if let Some(tag) = tag
        && contents.iter().all(|(_, content)| content.is_none())
    {
        return Err(part.fault(tag, "is required"));
    }
    let (kind, content) = part.only(contents)?;
    if tag.is_some_and(|tag| tag != kind) {
        return Err(part.fault("kind", format!("does not fit the content `{kind}`")));
    }
    if path.ends_with(VALUE) {
        metadata.remove(WRAPPED);
    }
    Ok(Part {
        metadata,
        ..content
    })
}

/// The contents of a file, which are in the part itself in 1.0.
fn contents_of_file(file: &Object<'_>) -> ReadResult<[(&'static str, Option<Part>); 2]> {
    let raw = file.base64("raw")?.map(PartContent::Raw);
    let url = file.text("url")?.map(|it| PartContent::Url(it.to_owned()));
    Ok([("raw", raw.map(Part::new)), ("url", url.map(Part::new))])
}

/// The part with the name and the type of its file.
fn describe_file(file: &Object<'_>, part: Part) -> ReadResult<Part> {
    let text_of = |name| {
        let text = file.string(name)?.filter(|text| !text.is_empty());
        Ok(text.map(str::to_owned))
    };
    Ok(Part {
        filename: text_of("filename")?,
        media_type: text_of("mediaType")?,
        ..part
    })
}

/// The data of a part, without the objects that clients of the older generations put around it,
/// and the path to it from the member of the part: `.data`, `.value`, both or none.
pub(crate) fn data_of<'a>(
    part: &Object<'a>,
    dialect: Dialect,
) -> ReadResult<(&'static str, Option<&'a Value>)> {
    if dialect.generation == Generation::V10 {
        // `data` is any JSON value, so its null is a value.
        return Ok(("", part.raw("data")));
    }
    // A2A 0.3 §6.5.3: an object. A2A 0.1 §6.5.3: an object or an array.
    let arrays = dialect.generation == Generation::V01;
    let rule = match arrays {
        true => "must be an object or an array",
        false => "must be an object",
    };
    let is_data = |it: &&Value| it.is_object() || arrays && it.is_array();
    let data = part.value_as("data", rule, |it| Some(it).filter(is_data))?;
    let sole = |data: Option<&'a Value>, name: &str| {
        let object = data?.as_object().filter(|it| it.len() == 1)?;
        object.get(name)
    };
    // A `DataPart` of the proto has the data in a member `data`. A client that follows the prose
    // (A2A 0.3 §6.5) leaves that level out, or names the kind.
    let is_proto = dialect == Dialect::rest(Generation::V03) && part.member("kind")?.is_none();
    let of_proto = sole(data, "data").filter(|it| is_proto && it.is_object());
    let data = of_proto.or(data);
    let mark = part.raw("metadata").and_then(|it| it.get(WRAPPED));
    let inner = sole(data, VALUE).filter(|_| mark == Some(&Value::Bool(true)));
    let path = match (of_proto, inner) {
        (None, None) => "",
        (Some(_), None) => ".data",
        (None, Some(_)) => ".value",
        (Some(_), Some(_)) => ".data.value",
    };
    Ok((path, inner.or(data)))
}

/// The idempotency key of `command`: from the header, whose bytes are `header`, or from the metadata
/// of the message or the request, in every generation and binding.
///
/// # Errors
/// [`A2aError::InvalidParams`] for a malformed key, and for two different keys in
/// one request.
pub(super) fn idempotency_key(
    header: Option<&[u8]>,
    command: &SendCommand,
) -> Result<Option<IdempotencyKey>, A2aError> {
    // What is no text is refused as an empty key is.
    let of_header = |bytes| str::from_utf8(bytes).unwrap_or_default().trim();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let of_metadata = |metadata: &Metadata| metadata.get(IdempotencyKey::METADATA).map(text);
    let key = IdempotencyKey::METADATA;
    let mut current = None;
    for (field, text) in [
        (
            KEY_HEADER.to_owned(),
            header.map(of_header).map(str::to_owned),
        ),
        (
            format!("message.metadata.{key}"),
            of_metadata(&command.message.metadata),
        ),
        (format!("metadata.{key}"), of_metadata(&command.metadata)),
    ] {
        let Some(text) = text else { continue };
        let key = IdempotencyKey::parse(text)
            .map_err(|error| A2aError::invalid(&field, format!("must be {}", error.rule)))?;
        if current.as_ref().is_some_and(|other| *other != key) {
            let why = "is not the idempotency key given elsewhere in this request";
            return Err(A2aError::invalid(field, why));
        }
        current = Some(key);
    }
    Ok(current)
}
