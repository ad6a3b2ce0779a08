//! The push configs of all tasks of a caller, with the progress of their deliveries.

use a2a_lambda::engine::{Clock as _, SystemClock};
use a2a_lambda::store::records::RecordReader;
use a2a_lambda::store::{ListPosition, RecordQuery, StoreError};
use a2a_lambda::task::{Owner, PushRecord, Timestamp};
use serde_json::{Value, json};

/// Tasks that one read of the list looks at.
const PAGE: usize = 100;
/// Reads of one request. The next request continues.
const READS: usize = 10;

/// The webhooks of the tasks after the position `after`, the newest tasks first, and the
/// position where the next page begins.
///
/// # Errors
/// [`StoreError`] when the table does not answer or the position is malformed.
pub(super) async fn page(
    store: &RecordReader,
    owner: &Owner,
    after: &str,
) -> Result<Value, StoreError> {
    let now = SystemClock.now();
    let mut webhooks = Vec::new();
    let mut count = 0_usize;
    // `#` cannot be in a query, so the position has a `,` there.
    let mut next = match after.strip_prefix("after=").filter(|it| !it.is_empty()) {
        Some(text) => Some(ListPosition::parse(&text.replacen(',', "#", 1))?),
        None => None,
    };
    for _ in 0..READS {
        let query = RecordQuery {
            context_id: None,
            state: None,
            status_after: None,
            after: next.take(),
            limit: PAGE,
            count_limit: 0,
            now,
        };
        let page = store.list(owner, &query).await?;
        count = count.saturating_add(page.records.len());
        for head in page
            .records
            .iter()
            .filter(|record| !record.listeners().is_empty())
        {
            let pushes = store.pushes(owner, head.id()).await?;
            let pushes = pushes
                .iter()
                .filter(|push| push.incarnation == *head.incarnation());
            webhooks.extend(pushes.map(|push| shown(push, head.last_seq(), now)));
        }
        next = page.next;
        if next.is_none() || webhooks.len() >= PAGE {
            break;
        }
    }
    let next = next.map(|next| next.to_string().replacen('#', ",", 1));
    Ok(json!({"webhooks": webhooks, "next": next, "tasksRead": count}))
}

/// A webhook without its secrets. `last` is the number of the last event of the task.
pub(super) fn shown(push: &PushRecord, last: u64, now: Timestamp) -> Value {
    let delivery = &push.delivery;
    let waits = delivery.retry_at > now;
    json!({
        "task": push.task.as_str(),
        "id": push.listener.id.as_str(),
        "url": push.listener.url,
        "generation": push.listener.generation.as_str(),
        "signs": push.listener.signs,
        "createdAt": push.created_at.as_millis(),
        "delivered": delivery.cursor,
        "events": last,
        "failedAttempts": delivery.attempts,
        "retryAt": waits.then(|| delivery.retry_at.as_millis()),
        "lastCallMs": u64::try_from(delivery.took.as_millis()).unwrap_or(u64::MAX),
    })
}
