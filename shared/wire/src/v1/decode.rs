//! Reads the requests of 1.0 into `task` values.

use super::encode;
use super::push::read_offer;
use crate::params::{self, FieldCase, MAX_HISTORY, MessageForm, Object, SendOptions};
use a2a_lambda_model::task::{
    A2aError, CancelCommand, EventId, Generation, GetQuery, ListQuery, Part, PartContent,
    SendCommand, SendMode, SubscribeCommand, TaskState,
};
use serde_json::{Map, Value};

/// Reads `SendMessage` and `SendStreamingMessage`.
///
/// # Errors
/// [`A2aError::InvalidParams`] with every fault.
pub(crate) fn decode_send(params: &Value) -> Result<SendCommand, A2aError> {
    read(params, |params| {
        let message = params.required_object("message");
        let message = message.and_then(|message| MESSAGE.read(&message));
        let configuration = params.object("configuration");
        let options = configuration.map_or_else(SendOptions::unset, |it| read_options(&it));
        options.command(params, message, Generation::V10)
    })
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
                read_offer(&push)
            })
        },
        history_length: configuration.history_length("historyLength", MAX_HISTORY),
        mode: match configuration.boolean("returnImmediately") {
            Some(true) => SendMode::Immediate,
            Some(false) | None => SendMode::Blocking,
        },
    }
}

/// Reads `GetTask`.
///
/// # Errors
/// [`A2aError::InvalidParams`] with every fault.
pub(crate) fn decode_get(params: &Value) -> Result<GetQuery, A2aError> {
    read(params, |params| {
        let id = params.required_task_id("id");
        let history_length = params.history_length("historyLength", MAX_HISTORY);
        Some(GetQuery {
            id: id?,
            history_length,
        })
    })
}

/// Reads `GET /tasks/{id}`.
///
/// # Errors
/// [`A2aError::InvalidParams`] with every fault.
pub(crate) fn decode_get_pairs(id: &str, pairs: &[(String, String)]) -> Result<GetQuery, A2aError> {
    let mut params = params::members(pairs)?;
    params.insert("id".to_owned(), id.into());
    decode_get(&Value::Object(params))
}

/// Reads `CancelTask`; over REST `params` is the body with the id of the path.
///
/// # Errors
/// [`A2aError::InvalidParams`] with every fault.
pub(crate) fn decode_cancel(params: &Value) -> Result<CancelCommand, A2aError> {
    read(params, |params| {
        let id = params.required_task_id("id");
        let metadata = params.metadata("metadata");
        Some(CancelCommand { id: id?, metadata })
    })
}

/// Reads `SubscribeToTask`; `last_event` is the `Last-Event-ID` that came
/// with it.
///
/// # Errors
/// [`A2aError::InvalidParams`] with every fault.
pub(crate) fn decode_subscribe(
    params: &Value,
    last_event: Option<EventId>,
) -> Result<SubscribeCommand, A2aError> {
    read(params, |params| {
        Some(SubscribeCommand {
            id: params.required_task_id("id")?,
            last_event,
        })
    })
}

/// Reads `ListTasks`.
///
/// # Errors
/// [`A2aError::InvalidParams`] with every fault.
pub(crate) fn decode_list(params: &Value) -> Result<ListQuery, A2aError> {
    let states = TaskState::ALL.map(|state| (encode::state(state), state));
    read(params, |params| Some(params::read_list(params, &states)))
}

/// Reads `GET /tasks`.
///
/// # Errors
/// [`A2aError::InvalidParams`] with every fault.
pub(crate) fn decode_list_pairs(pairs: &[(String, String)]) -> Result<ListQuery, A2aError> {
    decode_list(&Value::Object(params::members(pairs)?))
}

/// Reads a request with `decode`.
pub(super) fn read<T>(
    params: &Value,
    decode: impl FnOnce(&Object<'_>) -> Option<T>,
) -> Result<T, A2aError> {
    // Absent parameters count as an empty object, so that each missing field is named.
    let empty = Value::Object(Map::new());
    let params = if params.is_null() { &empty } else { params };
    params::read(params, FieldCase::V10, |params| {
        let request = decode(params);
        // The route names the tenant; a request repeats it.
        params.string("tenant");
        request
    })
}
