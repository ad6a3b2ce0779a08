//! Reads and writes push configs of 0.3 over REST: `ProtoJSON` of the 0.3 proto, with
//! its resource names. The JSON-RPC format is read too.

use crate::compat;
use crate::json_object::JsonObject;
use crate::params::{self, FieldCase, Object};
use a2a_lambda_model::task::{
    A2aError, CreatePush, Generation, PushConfig, PushId, PushListQuery, PushOffer, PushPage,
};
use serde_json::Value;

/// Reads the body of `POST /v1/tasks/{id}/pushNotificationConfigs`
/// (A2A 0.3 §3.5.6):
/// `{"parent", "configId", "config": {"name", "pushNotificationConfig"}}`.
///
/// # Errors
/// [`A2aError::InvalidParams`] naming each faulty field.
pub(crate) fn decode_create_push(task: &str, body: &Value) -> Result<CreatePush, A2aError> {
    let task = params::task_id(task)?;
    let offer = params::read(body, FieldCase::ProtoJson, |body| {
        let config_id = body.push_id("configId");
        let outer = match body.object("config") {
            Some(config) => config,
            None => body.clone(),
        };
        let config = outer.required_object("pushNotificationConfig");
        let offer = config.and_then(|config| compat::read_push(&config, Generation::V03))?;
        let id = config_id.or(offer.id.clone()).or_else(|| named_in(&outer));
        Some(PushOffer { id, ..offer })
    })?;
    Ok(CreatePush { task, offer })
}

/// The id at the end of `tasks/{task}/pushNotificationConfigs/{id}`. The server gives
/// the name, so a malformed one is ignored and not refused.
fn named_in(config: &Object<'_>) -> Option<PushId> {
    let (_, id) = config
        .text("name")?
        .rsplit_once("/pushNotificationConfigs/")?;
    PushId::parse(id).ok()
}

/// Reads the query of `GET /v1/tasks/{id}/pushNotificationConfigs`.
///
/// # Errors
/// [`A2aError::InvalidParams`] naming each faulty field.
pub(crate) fn decode_list_pushes(
    task: &str,
    query: &[(String, String)],
) -> Result<PushListQuery, A2aError> {
    let task = params::task_id(task)?;
    params::read_query(query, |query| {
        let page_size = query.integer("pageSize", 1..=100);
        Some(PushListQuery {
            task,
            page_size: page_size.and_then(|size| usize::try_from(size).ok()),
            page_token: query.text("pageToken").map(str::to_owned),
        })
    })
}

/// Writes a push config, without its secrets.
pub(crate) fn encode_push(config: &PushConfig) -> Value {
    let name = format!(
        "tasks/{}/pushNotificationConfigs/{}",
        config.task, config.id
    );
    let inner = compat::write_push(config, Some(&config.id));
    JsonObject::new()
        .with("name", name)
        .with("pushNotificationConfig", inner)
        .build()
}

/// Writes a page of push configs.
pub(crate) fn encode_pushes(page: &PushPage) -> Value {
    let configs: Vec<Value> = page.configs.iter().map(encode_push).collect();
    JsonObject::new()
        .with("configs", configs)
        .with("nextPageToken", page.next_page_token.as_str())
        .build()
}
