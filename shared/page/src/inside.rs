//! What a task keeps that A2A does not show.

use crate::{rows, webhooks};
use a2a_lambda::engine::{Clock as _, SystemClock};
use a2a_lambda::store::StoreError;
use a2a_lambda::store::records::RecordReader;
use a2a_lambda::task::{Owner, TaskId, WriteId};
use serde_json::{Map, Value, json};

/// The inside of a task and its incarnation; `None` if the owner has no such task.
///
/// # Errors
/// [`StoreError`] when the table does not answer.
pub async fn task(
    store: &RecordReader,
    owner: &Owner,
    id: &TaskId,
) -> Result<Option<(Map<String, Value>, WriteId)>, StoreError> {
    let now = SystemClock.now();
    let Some(record) = store.load(owner, id, now).await? else {
        return Ok(None);
    };
    let webhooks = webhooks::of_task(store, owner, &record, now).await?;
    let facts = json!({
        "skill": record.skill_name(),
        "generation": record.view(0, false).generation.as_str(),
        "version": record.version,
        "tookMs": rows::took(&record, now),
        "createdAt": record.created_at.as_millis(),
        "expiresAt": record.expires_at.as_millis(),
    });
    let members = [("facts", facts), ("webhooks", webhooks.into())];
    let members = members.map(|(name, value)| (name.to_owned(), value));
    let incarnation = record.incarnation.clone();
    Ok(Some((Map::from_iter(members), incarnation)))
}
