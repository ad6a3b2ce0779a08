//! What a task keeps that A2A does not show.

use super::{rows, webhooks};
use a2a_lambda::engine::{Clock as _, SystemClock};
use a2a_lambda::store::StoreError;
use a2a_lambda::store::records::RecordReader;
use a2a_lambda::task::{Owner, TaskId, TaskRecord, Timestamp};
use serde_json::{Map, Value, json};

/// The inside of a task; `None` if the owner has no such task.
///
/// # Errors
/// [`StoreError`] when the table does not answer.
pub(super) async fn task(
    store: &RecordReader,
    owner: &Owner,
    id: &TaskId,
) -> Result<Option<Map<String, Value>>, StoreError> {
    let now = SystemClock.now();
    let Some(record) = store.load(owner, id, now).await? else {
        return Ok(None);
    };
    let webhooks = webhooks::of_task(store, owner, &record, now).await?;
    Ok(Some(Map::from_iter([
        ("facts".to_owned(), facts(&record)),
        ("webhooks".to_owned(), webhooks.into()),
    ])))
}

fn facts(record: &TaskRecord) -> Value {
    let used = record.used();
    let millis = Timestamp::as_millis;
    json!({
        "task": record.id().as_str(),
        "context": record.context_id().as_str(),
        "skill": record.skill().map(ToString::to_string),
        "generation": record.view(0, false).generation.as_str(),
        "state": record.state().as_str(),
        "version": record.version(),
        "epoch": record.epoch(),
        "turn": record.turn(),
        "attempt": record.attempt(),
        "handOvers": used.hand_overs,
        "progressAt": millis(record.progress_at()),
        "notBefore": record.not_before().map(millis),
        "leaseUntil": record.lease_until().map(millis),
        "waitsForWorkerSince": record.dispatched_at().map(millis),
        "tookMs": rows::took(record, SystemClock.now()),
        "createdAt": millis(record.created_at()),
        "updatedAt": millis(record.updated_at()),
        "expiresAt": millis(record.expires_at()),
    })
}
