//! Turns the events that commits logged into push queue messages.

use crate::store::queue::{PushItem, PushQueue, TaskImage};
use std::time::Duration;

/// Forwards images with new events: one push queue message for each push config. Returns
/// the indexes of the images for which the queue did not accept every message.
///
/// Like [`relay`](crate::engine::relay) it keeps no state: `notify` is in the image of the commit
/// that logged the event, and in no later one.
pub async fn relay_pushes(queue: &dyn PushQueue, images: &[TaskImage]) -> Vec<usize> {
    let mut items = Vec::new();
    let mut asking = Vec::new();
    for (index, image) in images.iter().enumerate() {
        if image.notify.is_none() {
            continue;
        }
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
    let results = match queue.ring(&items, Duration::ZERO).await {
        Ok(results) => results,
        Err(error) => {
            tracing::warn!("failed to send push queue messages: {error}");
            Vec::new()
        }
    };
    let is_lost = |index: usize| !results.get(index).copied().unwrap_or(false);
    let places = asking.into_iter().enumerate();
    let mut again: Vec<usize> = places
        .filter(|(index, _)| is_lost(*index))
        .map(|(_, index)| index)
        .collect();
    // Several messages of one image may be lost.
    again.dedup();
    again
}
