//! Reads and writes push configs of 0.3 over REST: `ProtoJSON` of the 0.3 proto, with
//! its resource names. The JSON-RPC format is read too.

use crate::protocol::legacy;
use crate::protocol::read::{self, Object, Spelling};
use crate::protocol::write::Members;
use crate::task::{
    CreatePush, Generation, PushConfig, PushId, PushListQuery, PushOffer, PushPage, Refusal,
};
use serde_json::Value;

/// Reads the body of `POST /v1/tasks/{id}/pushNotificationConfigs`
/// (A2A 0.3 §3.5.6):
/// `{"parent", "configId", "config": {"name", "pushNotificationConfig"}}`.
///
/// # Errors
/// [`Refusal::InvalidParams`] naming each faulty field.
pub(crate) fn decode_create_push(task: &str, body: &Value) -> Result<CreatePush, Refusal> {
    let task = read::task_id(task)?;
    let offer = read::read(body, Spelling::ProtoJson, |body| {
        let named = body.push_id("configId");
        let outer = match body.object("config") {
            Some(config) => config,
            None => body.clone(),
        };
        let config = outer.required_object("pushNotificationConfig");
        let offer = config.and_then(|config| legacy::read_push(&config, Generation::V03))?;
        let id = named.or(offer.id.clone()).or_else(|| named_in(&outer));
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
/// [`Refusal::InvalidParams`] naming each faulty field.
pub(crate) fn decode_list_pushes(
    task: &str,
    query: &[(String, String)],
) -> Result<PushListQuery, Refusal> {
    let task = read::task_id(task)?;
    read::read_query(query, |query| {
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
    let inner = legacy::write_push(config, Some(&config.id));
    Members::new()
        .with("name", name)
        .with("pushNotificationConfig", inner)
        .build()
}

/// Writes a page of push configs.
pub(crate) fn encode_pushes(page: &PushPage) -> Value {
    let configs: Vec<Value> = page.configs.iter().map(encode_push).collect();
    Members::new()
        .with("configs", configs)
        .with("nextPageToken", page.next_page_token.as_str())
        .build()
}
