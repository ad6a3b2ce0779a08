//! Reads and writes push configs of 1.0 (A2A 1.0 §3.1.7 to §3.1.10).

use super::decode::read;
use crate::compat;
use crate::json_object::JsonObject;
use crate::params::{self, Object, SCHEME_RULE, is_scheme};
use a2a_lambda_model::task::{
    A2aError, CreatePush, Generation, PushConfig, PushListQuery, PushOffer, PushPage, PushQuery,
};
use serde_json::Value;

/// Reads a push config, alone or inside a send (A2A 1.0 §4.3.1).
pub(super) fn read_offer(config: &Object<'_>) -> Option<PushOffer> {
    compat::read_push(config, Generation::V10, |authentication| {
        // A2A 1.0 §4.3.2: one scheme.
        let scheme = authentication.required_text("scheme");
        if scheme.is_some_and(|scheme| !is_scheme(scheme)) {
            authentication.refuse("scheme", SCHEME_RULE);
        }
        scheme.map(str::to_owned).into_iter().collect()
    })
}

/// Reads `CreateTaskPushNotificationConfig`.
///
/// # Errors
/// [`A2aError::InvalidParams`] with every fault.
pub(crate) fn decode_create_push(params: &Value) -> Result<CreatePush, A2aError> {
    read(params, |config| {
        let task = config.required_task_id("taskId");
        let offer = read_offer(config);
        Some(CreatePush {
            task: task?,
            offer: offer?,
        })
    })
}

/// Reads `GetTaskPushNotificationConfig` and `DeleteTaskPushNotificationConfig`.
///
/// # Errors
/// [`A2aError::InvalidParams`] with every fault.
pub(crate) fn decode_one_push(params: &Value) -> Result<PushQuery, A2aError> {
    read(params, |params| {
        let task = params.required_task_id("taskId");
        let id = params.required_push_id("id");
        Some(PushQuery {
            task: task?,
            id: Some(id?),
        })
    })
}

/// Reads `ListTaskPushNotificationConfigs`.
///
/// # Errors
/// [`A2aError::InvalidParams`] with every fault.
pub(crate) fn decode_list_pushes(params: &Value) -> Result<PushListQuery, A2aError> {
    read(params, |params| {
        let task = params.required_task_id("taskId");
        let page_size = params.page_size();
        let page_token = params.text("pageToken").map(str::to_owned);
        Some(PushListQuery {
            task: task?,
            page_size,
            page_token,
        })
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
    let mut params = params::members(pairs)?;
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
