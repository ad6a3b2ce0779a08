//! Reads and writes push configs of 1.0 (A2A 1.0 §3.1.7 to §3.1.10).

use super::decode::{from_pairs, invalid_id, read, task_id};
use super::schema;
use crate::json_object::JsonObject;
use a2a_lambda_model::task::{
    A2aError, CreatePush, Generation, PushConfig, PushId, PushListQuery, PushOffer, PushPage,
    PushQuery, Secret,
};
use serde_json::Value;

/// The push config at the path `at` of a request.
pub(super) fn offer(
    config: a2a::TaskPushNotificationConfig,
    at: &str,
) -> Result<PushOffer, A2aError> {
    let authentication = config.authentication;
    let (scheme, credentials) = match authentication {
        Some(it) => (Some(it.scheme), it.credentials),
        None => (None, None),
    };
    Ok(PushOffer {
        at: at.to_owned(),
        id: config
            .id
            .map(|id| PushId::parse(id).map_err(|error| invalid_id("id", &error)))
            .transpose()?,
        url: config.url,
        token: config.token.map(Secret::new),
        schemes: scheme.into_iter().collect(),
        credentials: credentials.map(Secret::new),
        generation: Generation::V10,
        signs: false,
    })
}

/// Reads `CreateTaskPushNotificationConfig`.
///
/// # Errors
/// [`A2aError::InvalidParams`] with every fault.
pub(crate) fn decode_create_push(params: &Value) -> Result<CreatePush, A2aError> {
    let config: a2a::TaskPushNotificationConfig = read(&schema::CREATE_PUSH, params.clone())?;
    Ok(CreatePush {
        task: task_id(config.task_id.clone())?,
        offer: offer(config, "")?,
    })
}

/// Reads `GetTaskPushNotificationConfig` and `DeleteTaskPushNotificationConfig`.
///
/// # Errors
/// [`A2aError::InvalidParams`] with every fault.
pub(crate) fn decode_one_push(params: &Value) -> Result<PushQuery, A2aError> {
    let request: a2a::GetTaskPushNotificationConfigRequest =
        read(&schema::ONE_PUSH, params.clone())?;
    Ok(PushQuery {
        task: task_id(request.task_id)?,
        id: Some(PushId::parse(request.id).map_err(|error| invalid_id("id", &error))?),
    })
}

/// Reads `ListTaskPushNotificationConfigs`.
///
/// # Errors
/// [`A2aError::InvalidParams`] with every fault.
pub(crate) fn decode_list_pushes(params: &Value) -> Result<PushListQuery, A2aError> {
    let request: a2a::ListTaskPushNotificationConfigsRequest =
        read(&schema::LIST_PUSHES, params.clone())?;
    Ok(PushListQuery {
        task: task_id(request.task_id)?,
        page_size: request
            .page_size
            .and_then(|size| usize::try_from(size).ok()),
        page_token: request.page_token,
    })
}

/// Reads `GET /tasks/{id}/pushNotificationConfigs`.
///
/// # Errors
/// [`A2aError::InvalidParams`] with every fault.
pub(crate) fn decode_list_pushes_pairs(
    task: &str,
    pairs: &[(String, String)],
) -> Result<PushListQuery, A2aError> {
    let mut params = from_pairs(pairs)?;
    params.insert("taskId".to_owned(), task.into());
    decode_list_pushes(&Value::Object(params))
}

/// A push config, without its secrets.
pub(crate) fn encode_push(config: &PushConfig) -> Value {
    let scheme = config.schemes.first();
    let authentication = scheme.map(|it| JsonObject::new().with("scheme", it.as_str()));
    JsonObject::new()
        .with("id", config.id.as_str())
        .with("taskId", config.task.as_str())
        .with("url", config.url.as_str())
        .maybe("authentication", authentication)
        .build()
}

/// A page of push configs.
pub(crate) fn encode_pushes(page: &PushPage) -> Value {
    let configs: Vec<Value> = page.configs.iter().map(encode_push).collect();
    let next = &page.next_page_token;
    JsonObject::new()
        .with("configs", configs)
        .maybe("nextPageToken", (!next.is_empty()).then_some(next.as_str()))
        .build()
}
