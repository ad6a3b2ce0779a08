//! Reads the requests of 1.0 into `task` values.

use super::push;
use super::schema::{self, Shape};
use crate::params::MAX_HISTORY;
use a2a_lambda_model::task::{
    A2aError, CancelCommand, ContextId, EventId, FieldViolation, Generation, GetQuery, IdError,
    ListQuery, Message, Metadata, Part, PartContent, Role, SendCommand, SendMode, SubscribeCommand,
    TaskId, TaskState, Timestamp,
};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::collections::HashMap;

/// The page size unless the client names one (A2A 1.0 §3.1.4).
const DEFAULT_PAGE_SIZE: usize = 50;

/// Reads `SendMessage` and `SendStreamingMessage`.
///
/// # Errors
/// [`A2aError::InvalidParams`] with every fault.
pub(crate) fn decode_send(params: &Value) -> Result<SendCommand, A2aError> {
    let request: a2a::SendMessageRequest = read(&schema::SEND, params.clone())?;
    let configuration = request.configuration.unwrap_or(NO_CONFIGURATION);
    Ok(SendCommand {
        message: message(request.message)?,
        client_task_id: None,
        // A2A 1.0 §3.2.2: a send is blocking unless it asks to return immediately.
        mode: match configuration.return_immediately {
            Some(true) => SendMode::Immediate,
            Some(false) | None => SendMode::Blocking,
        },
        history_length: history_length(configuration.history_length),
        accepted_output_modes: configuration.accepted_output_modes.unwrap_or_default(),
        push: configuration
            .task_push_notification_config
            .map(|config| push::offer(config, "configuration.taskPushNotificationConfig"))
            .transpose()?,
        metadata: metadata(request.metadata),
        generation: Generation::V10,
        idempotency_key: None,
    })
}

const NO_CONFIGURATION: a2a::SendMessageConfiguration = a2a::SendMessageConfiguration {
    accepted_output_modes: None,
    task_push_notification_config: None,
    history_length: None,
    return_immediately: None,
};

/// Reads `GetTask`.
///
/// # Errors
/// [`A2aError::InvalidParams`] with every fault.
pub(crate) fn decode_get(params: &Value) -> Result<GetQuery, A2aError> {
    let request: a2a::GetTaskRequest = read(&schema::GET, params.clone())?;
    Ok(GetQuery {
        id: task_id(request.id)?,
        history_length: history_length(request.history_length),
    })
}

/// Reads `GET /tasks/{id}`.
///
/// # Errors
/// [`A2aError::InvalidParams`] with every fault.
pub(crate) fn decode_get_pairs(id: &str, pairs: &[(String, String)]) -> Result<GetQuery, A2aError> {
    let mut params = from_pairs(pairs)?;
    params.insert("id".to_owned(), id.into());
    decode_get(&Value::Object(params))
}

/// Reads `CancelTask`; over REST `params` is the body with the id of the path.
///
/// # Errors
/// [`A2aError::InvalidParams`] with every fault.
pub(crate) fn decode_cancel(params: &Value) -> Result<CancelCommand, A2aError> {
    let request: a2a::CancelTaskRequest = read(&schema::CANCEL, params.clone())?;
    Ok(CancelCommand {
        id: task_id(request.id)?,
        metadata: metadata(request.metadata),
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
    let request: a2a::SubscribeToTaskRequest = read(&schema::SUBSCRIBE, params.clone())?;
    Ok(SubscribeCommand {
        id: task_id(request.id)?,
        last_event,
    })
}

/// Reads `ListTasks`.
///
/// # Errors
/// [`A2aError::InvalidParams`] with every fault.
pub(crate) fn decode_list(params: &Value) -> Result<ListQuery, A2aError> {
    let request: a2a::ListTasksRequest = read(&schema::LIST, params.clone())?;
    Ok(ListQuery {
        context_id: request
            .context_id
            .map(|id| ContextId::parse(id).map_err(|error| invalid_id("contextId", &error)))
            .transpose()?,
        status: request.status.as_ref().and_then(state),
        status_after: request
            .status_timestamp_after
            .map(|time| Timestamp::from_millis(time.timestamp_millis())),
        page_size: request
            .page_size
            .and_then(|size| usize::try_from(size).ok())
            .unwrap_or(DEFAULT_PAGE_SIZE),
        page_token: request.page_token,
        history_length: history_length(request.history_length),
        // A2A 1.0 §3.1.4: the default of `includeArtifacts` is false.
        include_artifacts: request.include_artifacts.unwrap_or(false),
    })
}

/// Reads `GET /tasks`.
///
/// # Errors
/// [`A2aError::InvalidParams`] with every fault.
pub(crate) fn decode_list_pairs(pairs: &[(String, String)]) -> Result<ListQuery, A2aError> {
    decode_list(&Value::Object(from_pairs(pairs)?))
}

/// Checks `params`, then reads them with `a2a-lf`.
pub(super) fn read<T: DeserializeOwned>(shape: &Shape, mut params: Value) -> Result<T, A2aError> {
    // Absent parameters count as an empty object, so that each missing field is named.
    if params.is_null() {
        params = Value::Object(Map::new());
    }
    schema::validate(shape, &mut params)?;
    // `validate` found no fault, but `a2a-lf` did. Its text can hold Rust names, so the client
    // does not see it.
    T::deserialize(params).map_err(|_| A2aError::invalid("params", "is not as A2A 1.0 defines it"))
}

/// Query parameters as the members of a request.
pub(super) fn from_pairs(pairs: &[(String, String)]) -> Result<Map<String, Value>, A2aError> {
    let mut params = Map::new();
    let mut violations = Vec::new();
    for (name, text) in pairs {
        // A2A 1.0 §11.5: a boolean is `true` or `false`. Only this parameter is one;
        // text and numbers are read from a string.
        let switch = matches!(name.as_str(), "includeArtifacts" | "include_artifacts");
        let value = match text.as_str() {
            "true" if switch => Value::Bool(true),
            "false" if switch => Value::Bool(false),
            text => text.into(),
        };
        if params.insert(name.clone(), value).is_some() {
            violations.push(FieldViolation::new(name, "is given twice"));
        }
    }
    if violations.is_empty() {
        Ok(params)
    } else {
        Err(A2aError::InvalidParams { violations })
    }
}

fn message(message: a2a::Message) -> Result<Message, A2aError> {
    Ok(Message {
        id: message.message_id,
        role: match message.role {
            a2a::Role::Agent => Role::Agent,
            // `shape` accepts only `ROLE_USER`.
            a2a::Role::User | a2a::Role::Unspecified => Role::User,
        },
        parts: message.parts.into_iter().map(part).collect(),
        context_id: message
            .context_id
            .map(|id| ContextId::parse(id).map_err(|e| invalid_id("message.contextId", &e)))
            .transpose()?,
        task_id: message
            .task_id
            .map(|id| TaskId::parse(id).map_err(|e| invalid_id("message.taskId", &e)))
            .transpose()?,
        reference_task_ids: message.reference_task_ids.unwrap_or_default(),
        extensions: message.extensions.unwrap_or_default(),
        metadata: metadata(message.metadata),
    })
}

fn part(part: a2a::Part) -> Part {
    Part {
        content: match part.content {
            a2a::PartContent::Text(text) => PartContent::Text(text),
            a2a::PartContent::Raw(bytes) => PartContent::Raw(bytes.into()),
            a2a::PartContent::Url(url) => PartContent::Url(url),
            a2a::PartContent::Data(value) => PartContent::Data(value),
        },
        filename: part.filename,
        media_type: part.media_type,
        metadata: metadata(part.metadata),
    }
}

fn state(state: &a2a::TaskState) -> Option<TaskState> {
    let name = serde_json::to_value(state).ok()?;
    name.as_str().and_then(schema::state)
}

fn metadata(members: Option<HashMap<String, Value>>) -> Metadata {
    members.unwrap_or_default().into_iter().collect()
}

fn history_length(length: Option<i32>) -> usize {
    // A2A 1.0 §3.2.4: the server chooses the default.
    length
        .and_then(|length| usize::try_from(length).ok())
        .unwrap_or(MAX_HISTORY)
}

pub(super) fn task_id(id: String) -> Result<TaskId, A2aError> {
    TaskId::parse(id).map_err(|error| invalid_id("id", &error))
}

pub(super) fn invalid_id(field: &str, error: &IdError) -> A2aError {
    A2aError::invalid(field, format!("must be {}", error.rule))
}
