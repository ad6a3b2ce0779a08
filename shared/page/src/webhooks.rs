//! The push configs of all tasks of a caller, with the progress of their deliveries.

use crate::rows::{PAGE, READS, position_text, tasks_after};
use a2a_lambda::engine::{Clock as _, SystemClock};
use a2a_lambda::store::records::RecordReader;
use a2a_lambda::store::{ListPosition, StoreError};
use a2a_lambda::task::{Owner, PushRecord, TaskRecord, Timestamp};
use serde_json::{Value, json};

/// The webhooks of the tasks after the position `next`, the newest tasks first, and the
/// position where the next page begins.
///
/// # Errors
/// [`StoreError`] when the table does not answer.
pub async fn page(
    store: &RecordReader,
    owner: &Owner,
    mut next: Option<ListPosition>,
) -> Result<Value, StoreError> {
    let now = SystemClock.now();
    let mut webhooks = Vec::new();
    let mut count = 0_usize;
    for _ in 0..READS {
        let page = tasks_after(store, owner, None, next, now).await?;
        count = count.saturating_add(page.records.len());
        for head in page.records {
            if !head.push_ids.is_empty() {
                webhooks.extend(of_task(store, owner, &head, now).await?);
            }
        }
        next = page.next;
        if next.is_none() || webhooks.len() >= PAGE {
            break;
        }
    }
    let next = next.as_ref().map(position_text);
    Ok(json!({"webhooks": webhooks, "next": next, "tasksRead": count}))
}

/// The webhooks of a task.
///
/// # Errors
/// [`StoreError`] when the table does not answer.
pub(crate) async fn of_task(
    store: &RecordReader,
    owner: &Owner,
    record: &TaskRecord,
    now: Timestamp,
) -> Result<Vec<Value>, StoreError> {
    let pushes = store.pushes(owner, &record.id).await?;
    let pushes = pushes
        .iter()
        .filter(|push| push.incarnation == record.incarnation);
    let last = record.last_seq;
    Ok(pushes.map(|push| webhook_json(push, last, now)).collect())
}

/// A webhook without its secrets. `last` is the number of the last event of the task.
fn webhook_json(push: &PushRecord, last: u64, now: Timestamp) -> Value {
    let delivery = &push.delivery;
    let waits = delivery.retry_at > now;
    json!({
        "task": push.task.as_str(),
        "id": push.registration.id.as_str(),
        "url": push.registration.url,
        "generation": push.registration.generation.as_str(),
        "signs": push.registration.signs,
        "createdAt": push.created_at.as_millis(),
        "delivered": delivery.cursor,
        "events": last,
        "failedAttempts": delivery.attempts,
        "retryAt": waits.then(|| delivery.retry_at.as_millis()),
        "lastCallMs": u64::try_from(delivery.took.as_millis()).unwrap_or(u64::MAX),
    })
}
