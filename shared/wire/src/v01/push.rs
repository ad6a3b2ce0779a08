//! Reads and writes push configs of 0.1: one per task, without an id
//! (A2A 0.1 §7.5, §7.6).

use crate::compat;
use crate::json_object::JsonObject;
use crate::params::{self, FieldCase, Object};
use a2a_lambda_model::task::{
    A2aError, CreatePush, Generation, PushConfig, PushId, PushOffer, PushQuery,
};
use serde_json::Value;

/// Reads a push config, which replaces an earlier one of the task.
pub(super) fn read_push(config: &Object<'_>) -> Option<PushOffer> {
    Some(PushOffer {
        id: Some(PushId::only()),
        ..compat::read_push(config, Generation::V01, compat::read_schemes)?
    })
}

/// Reads the parameters of `tasks/pushNotification/set`.
///
/// # Errors
/// [`A2aError::InvalidParams`] naming each faulty field.
pub(crate) fn decode_set_push(params: &Value) -> Result<CreatePush, A2aError> {
    params::read(params, FieldCase::Json, |params| {
        let task = params.required_task_id("id");
        let config = params.required_object("pushNotificationConfig");
        let offer = config.as_ref().and_then(read_push);
        Some(CreatePush {
            task: task?,
            offer: offer?,
        })
    })
}

/// Reads the parameters of `tasks/pushNotification/get`.
///
/// # Errors
/// [`A2aError::InvalidParams`] naming each faulty field.
pub(crate) fn decode_get_push(params: &Value) -> Result<PushQuery, A2aError> {
    params::read(params, FieldCase::Json, |params| {
        Some(PushQuery {
            task: params.required_task_id("id")?,
            id: Some(PushId::only()),
        })
    })
}

/// Writes a push config, without its secrets (A2A 0.1 §6.10).
pub(crate) fn encode_push(config: &PushConfig) -> Value {
    JsonObject::new()
        .with("id", config.task.as_str())
        .with("pushNotificationConfig", compat::write_push(config, None))
        .build()
}
