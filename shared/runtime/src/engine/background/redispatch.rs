//! Sends dispatch intents that no worker has claimed to the work queue again. The sweep
//! does so without a write. So a broken relay, or a queue that lost a message, delays a
//! task but does not lose it.
//!
//! While the queue is nearly empty, it holds no message for an old intent, and the sweep
//! sends all of them. Otherwise another message would only lengthen the queue.

use crate::engine::error::EngineError;
use crate::store::queue::{WorkItem, WorkMessage, WorkQueue};
use std::time::Duration;

/// The age from which the sweep may send an intent again.
pub(in crate::engine) const QUEUED: Duration = Duration::from_secs(300);
/// A queue with fewer waiting messages is nearly empty.
const NEARLY_EMPTY: usize = 100;

/// Sends old intents again in one round of the sweep.
pub(in crate::engine) struct Redispatch<'q> {
    queue: &'q dyn WorkQueue,
    /// Whether the queue is nearly empty; read when the first intent is due.
    nearly_empty: Option<bool>,
}

impl<'q> Redispatch<'q> {
    pub(in crate::engine) const fn new(queue: &'q dyn WorkQueue) -> Self {
        Self {
            queue,
            nearly_empty: None,
        }
    }

    /// Sends turns whose intent the sweep has found older than [`QUEUED`], if the queue is nearly
    /// empty; returns how many the queue accepted.
    pub(in crate::engine) async fn send_if_nearly_empty(&mut self, items: Vec<WorkItem>) -> usize {
        if items.is_empty() || !self.is_nearly_empty().await {
            return 0;
        }
        self.send_now(items).await
    }

    /// Sends turns, however long the queue is; returns how many the queue accepted.
    pub(in crate::engine) async fn send_now(&self, items: Vec<WorkItem>) -> usize {
        if items.is_empty() {
            return 0;
        }
        let messages: Vec<WorkMessage> = items.into_iter().map(WorkMessage::from).collect();
        match self.queue.send(&messages).await {
            Ok(results) => results.into_iter().filter(|is_sent| *is_sent).count(),
            // The next round tries again.
            Err(error) => {
                EngineError::from(error).log();
                0
            }
        }
    }

    async fn is_nearly_empty(&mut self) -> bool {
        if let Some(is_nearly_empty) = self.nearly_empty {
            return is_nearly_empty;
        }
        let is_nearly_empty = match self.queue.waiting().await {
            Ok(waiting) => waiting < NEARLY_EMPTY,
            Err(error) => {
                EngineError::from(error).log();
                // An unknown length counts as full: more messages would multiply a backlog.
                false
            }
        };
        *self.nearly_empty.insert(is_nearly_empty)
    }
}

#[cfg(test)]
mod tests;
