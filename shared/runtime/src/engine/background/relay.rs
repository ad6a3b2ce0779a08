//! Moves what commits ask for to the queues: a turn to run, and events to deliver.
//!
//! It keeps no state. An intent is the version that set it, and `notify` is in the image of the
//! commit that logged the event alone. So a later image, which still has them, sends nothing.

use crate::store::StoreError;
use crate::store::queue::{PushItem, PushQueue, TaskImage, WorkMessage, WorkQueue};
use crate::task::Timestamp;
use crate::telemetry::outcomes::{EVENTS, class_of};
use std::time::Duration;

/// Forwards images with a dispatch intent to the queue; returns the indexes of those that
/// the queue did not accept. A turn that must not begin yet is sent with a delay.
pub async fn relay(queue: &dyn WorkQueue, images: &[TaskImage], now: Timestamp) -> Vec<usize> {
    let (mut asking, mut messages) = (Vec::new(), Vec::new());
    for (index, image) in images.iter().enumerate() {
        if let Some(item) = image.asks().filter(|item| item.dispatch == image.version) {
            asking.push(index);
            let delay = image.not_before.map_or(Duration::ZERO, |at| at.since(now));
            messages.push(WorkMessage { item, delay });
        }
    }
    if messages.is_empty() {
        return Vec::new();
    }
    let is_sent = sent_flags(queue.send(&messages).await);
    let images = asking.into_iter().enumerate();
    let is_lost = |message: usize| !is_sent.get(message).copied().unwrap_or(false);
    let lost = images.filter(|(message, _)| is_lost(*message));
    lost.map(|(_, image)| image).collect()
}

/// Forwards images with new events: one push queue message for each push config. Returns how many
/// the queue did not accept. They are not sent again, because a repeat would hold up the turns
/// behind them: the next event of the task, or the sweep, sends them.
pub async fn relay_pushes(queue: &dyn PushQueue, images: &[TaskImage]) -> usize {
    let mut items = Vec::new();
    for image in images.iter().filter(|image| image.notify.is_some()) {
        for config in &image.push_ids {
            items.push(PushItem {
                owner: image.owner.clone(),
                task: image.task.clone(),
                incarnation: image.incarnation.clone(),
                config: config.clone(),
            });
        }
    }
    if items.is_empty() {
        return 0;
    }
    let is_sent = sent_flags(queue.send(&items, Duration::ZERO).await);
    let count = is_sent.into_iter().filter(|is_sent| *is_sent).count();
    let remaining = items.len().saturating_sub(count);
    if remaining > 0 {
        tracing::warn!(
            target: "a2a_lambda::relay",
            { class = class_of(EVENTS, "relay.pushes_left").word(), relay.pushes_left = remaining },
            "left {remaining} push deliveries to the sweep"
        );
    }
    remaining
}

/// Whether the queue accepted each message; none if it did not answer.
fn sent_flags(results: Result<Vec<bool>, StoreError>) -> Vec<bool> {
    results.unwrap_or_else(|error| {
        tracing::warn!("failed to send messages to a queue: {error}");
        Vec::new()
    })
}
