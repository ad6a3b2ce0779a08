//! Reads and writes push configs of 0.3 over JSON-RPC (A2A 0.3 §7.5 to §7.8).

use crate::compat;
use crate::json_object::JsonObject;
use crate::params::{self, FieldCase};
use a2a_lambda_model::task::{
    A2aError, CreatePush, Generation, PushConfig, PushId, PushListQuery, PushOffer, PushPage,
    PushQuery,
};
use serde_json::Value;

/// The member that names a push config (A2A 0.3 §7.6.1, §7.8.1).
const CONFIG_ID: &str = "pushNotificationConfigId";

/// Reads the parameters of `tasks/pushNotificationConfig/set`. A push config without
/// an id gets the id `default` and replaces an earlier one with that id, as the
/// official kit of 0.3 expects.
///
/// # Errors
/// [`A2aError::InvalidParams`] naming each faulty field.
pub(crate) fn decode_set_push(params: &Value) -> Result<CreatePush, A2aError> {
    params::read(params, FieldCase::Json, |params| {
        let task = params.required_task_id("taskId");
        let config = params.required_object("pushNotificationConfig");
        let offer = config
            .and_then(|config| compat::read_push(&config, Generation::V03, compat::read_schemes));
        let offer = offer?;
        let id = offer.id.or_else(|| Some(PushId::only()));
        Some(CreatePush {
            task: task?,
            offer: PushOffer { id, ..offer },
        })
    })
}

/// Reads the parameters of `tasks/pushNotificationConfig/get`, in which the id of
/// the push config is optional.
///
/// # Errors
/// [`A2aError::InvalidParams`] naming each faulty field.
pub(crate) fn decode_get_push(params: &Value) -> Result<PushQuery, A2aError> {
    params::read(params, FieldCase::Json, |params| {
        let id = params.push_id(CONFIG_ID);
        Some(PushQuery {
            task: params.required_task_id("id")?,
            id,
        })
    })
}

/// Reads the parameters of `tasks/pushNotificationConfig/list`.
///
/// # Errors
/// [`A2aError::InvalidParams`] naming each faulty field.
pub(crate) fn decode_list_pushes(params: &Value) -> Result<PushListQuery, A2aError> {
    params::read(params, FieldCase::Json, |params| {
        Some(PushListQuery {
            task: params.required_task_id("id")?,
            page_size: None,
            page_token: None,
        })
    })
}

/// Reads the parameters of `tasks/pushNotificationConfig/delete`.
///
/// # Errors
/// [`A2aError::InvalidParams`] naming each faulty field.
pub(crate) fn decode_delete_push(params: &Value) -> Result<PushQuery, A2aError> {
    params::read(params, FieldCase::Json, |params| {
        let task = params.required_task_id("id");
        let id = params.required_push_id(CONFIG_ID);
        Some(PushQuery {
            task: task?,
            id: Some(id?),
        })
    })
}

/// Writes a push config, without its secrets (A2A 0.3 §6.10).
pub(crate) fn encode_push(config: &PushConfig) -> Value {
    let inner = compat::write_push(config, Some(&config.id));
    JsonObject::new()
        .with("taskId", config.task.as_str())
        .with("pushNotificationConfig", inner)
        .build()
}

/// Writes the push configs of a task (A2A 0.3 §7.7).
pub(crate) fn encode_pushes(page: &PushPage) -> Value {
    page.configs.iter().map(encode_push).collect()
}
