//! Moves what commits ask for to the queues: a turn to run, and events to deliver.
//!
//! It keeps no state. An intent is the version that set it, and `notify` is in the image of the
//! commit that logged the event alone. So a later image, which still has them, sends nothing.

use crate::store::StoreError;
use crate::store::queue::{PushItem, PushQueue, TaskImage, WorkMessage, WorkQueue};
use crate::task::Timestamp;
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
    lost(asking, queue.send(&messages).await)
}

/// Forwards images with new events: one push queue message for each push config. Returns
/// the indexes of the images for which the queue did not accept every message.
pub async fn relay_pushes(queue: &dyn PushQueue, images: &[TaskImage]) -> Vec<usize> {
    let (mut asking, mut items) = (Vec::new(), Vec::new());
    let images = images.iter().enumerate();
    for (index, image) in images.filter(|(_, image)| image.notify.is_some()) {
        for config in &image.listeners {
            asking.push(index);
            items.push(PushItem {
                owner: image.owner.clone(),
                task: image.task.clone(),
                incarnation: image.incarnation.clone(),
                config: config.clone(),
            });
        }
    }
    if items.is_empty() {
        return Vec::new();
    }
    lost(asking, queue.ring(&items, Duration::ZERO).await)
}

/// The images for which the queue did not accept every message. `asking` has the image of each.
fn lost(asking: Vec<usize>, results: Result<Vec<bool>, StoreError>) -> Vec<usize> {
    let results = results.unwrap_or_else(|error| {
        tracing::warn!("failed to send messages to a queue: {error}");
        Vec::new()
    });
    let is_sent = |message: usize| results.get(message).copied().unwrap_or(false);
    let images = asking.into_iter().enumerate();
    let mut again: Vec<usize> = images
        .filter(|(message, _)| !is_sent(*message))
        .map(|(_, image)| image)
        .collect();
    // Several messages of one image may be lost.
    again.dedup();
    again
}
