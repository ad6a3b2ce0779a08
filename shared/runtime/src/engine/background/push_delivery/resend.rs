//! Finds the webhooks of a task at rest that lack events. Sends their push queue messages
//! again, or takes the task out of the index of the sweep.

use super::pacing::ATTEMPTS;
use crate::engine::Leases;
use crate::engine::background::redispatch::QUEUED;
use crate::engine::error::EngineError;
use crate::store::queue::{PushItem, PushQueue};
use crate::store::records::Deliveries;
use crate::task::{PushRecord, TaskRecord, Timestamp};
use std::time::Duration;

/// The push configs of a task at rest that have events to get and are not given up. Without
/// one, the task leaves the index of the sweep.
pub(super) async fn find_undelivered(
    deliveries: &Deliveries,
    record: &TaskRecord,
) -> Result<Vec<PushRecord>, EngineError> {
    let mut push_records = deliveries.pushes(&record.owner, &record.id).await?;
    push_records.retain(|push| {
        push.incarnation == record.incarnation
            && record.push_ids.contains(&push.registration.id)
            && push.delivery.cursor < record.last_seq
            && push.delivery.attempts < ATTEMPTS
    });
    if push_records.is_empty() && record.state().is_at_rest() {
        deliveries.confirm_pushes(record).await?;
    }
    Ok(push_records)
}

/// Sends push queue messages for a task at rest again, if no worker seems to handle them;
/// returns for how many push configs. It changes no push config: only a call of a webhook
/// counts as an attempt.
///
/// Without [`Leases::Respect`] the process before this one has died with its queue.
/// Then each push config gets a message, for the time at which its lease or its pause
/// ends.
pub(in crate::engine) async fn resend_pushes(
    deliveries: &Deliveries,
    queue: &dyn PushQueue,
    record: &TaskRecord,
    leases: Leases,
    now: Timestamp,
) -> Result<usize, EngineError> {
    let mut waiting = find_undelivered(deliveries, record).await?;
    if leases != Leases::Respect {
        for push in &waiting {
            let lease_until = push.delivery.lease.as_ref().map(|lease| lease.until);
            let free = push.delivery.retry_at.max(lease_until.unwrap_or_default());
            queue.send(&[item_of(push)], free.since(now)).await?;
        }
        return Ok(waiting.len());
    }
    waiting.retain(|push| {
        // A younger push config still has its message in the queue.
        let since = record.updated_at.max(push.delivery.retry_at);
        since.plus(QUEUED) <= now && !push.delivery.is_busy(now)
    });
    let items: Vec<PushItem> = waiting.iter().map(item_of).collect();
    if !items.is_empty() {
        queue.send(&items, Duration::ZERO).await?;
    }
    Ok(items.len())
}

fn item_of(push: &PushRecord) -> PushItem {
    PushItem {
        owner: push.owner.clone(),
        task: push.task.clone(),
        incarnation: push.incarnation.clone(),
        config: push.registration.id.clone(),
    }
}
