//! Sends dispatch intents that no worker has claimed to the work queue again. The sweep
//! does so without a write. So a broken relay, or a queue that lost a message, delays a
//! task but does not lose it.
//!
//! The engine keeps no count of resends. While the queue is nearly empty, it holds no
//! message for an old intent, and the sweep sends all of them. Otherwise most old intents
//! have a waiting message, and another one would only lengthen the queue. Then the sweep
//! sends an intent when its age has doubled since the last pass.

use crate::engine::EngineError;
use crate::store::queue::{WorkItem, WorkQueue};
use crate::task::Timestamp;
use std::time::Duration;

/// The age from which the sweep may send an intent again.
pub(in crate::engine) const QUEUED: Duration = Duration::from_secs(300);
/// A queue with fewer waiting messages is nearly empty.
const NEARLY_EMPTY: usize = 100;
/// The most turns that one round adds to a queue that is not nearly empty.
const ADDED: usize = 1000;

/// Whether an age has passed 1, 2, 4, 8, … times `unit` since it was `before`. Without
/// `before`: whether it has reached `unit`.
pub(in crate::engine) fn has_doubled(
    unit: Duration,
    before: Option<Duration>,
    now: Duration,
) -> bool {
    let doublings = |age: Duration| {
        let units = age.as_millis() / unit.as_millis().max(1);
        // The bit length grows by one at 1, 2, 4, 8, … units.
        u128::BITS - units.leading_zeros()
    };
    doublings(now) > before.map_or(0, doublings)
}

/// A pass of the sweep over all open tasks, which may take several rounds.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::engine) struct RedispatchPass {
    /// When it began.
    pub(in crate::engine) began: Timestamp,
    /// When the pass before it began, if this process has made one.
    pub(in crate::engine) before: Option<Timestamp>,
}

/// Sends old intents again in one round of the sweep.
pub(in crate::engine) struct Redispatch<'q> {
    queue: &'q dyn WorkQueue,
    pass: RedispatchPass,
    /// Whether the queue is nearly empty; read when the first intent is due.
    nearly_empty: Option<bool>,
    /// How many more turns may be added to a queue that is not nearly empty.
    left: usize,
}

impl<'q> Redispatch<'q> {
    pub(in crate::engine) const fn new(queue: &'q dyn WorkQueue, pass: RedispatchPass) -> Self {
        Self {
            queue,
            pass,
            nearly_empty: None,
            left: ADDED,
        }
    }

    /// Sends the turns that are due; returns how many the queue accepted. Each turn comes
    /// with the time of its intent, which is at least [`QUEUED`] ago.
    pub(in crate::engine) async fn send(&mut self, standing: Vec<(WorkItem, Timestamp)>) -> usize {
        if standing.is_empty() {
            return 0;
        }
        let all = self.is_nearly_empty().await;
        let mut due = Vec::new();
        for (item, since) in standing {
            if all {
                due.push(item);
            } else if self.left > 0 && self.has_doubled(since) {
                self.left -= 1;
                due.push(item);
            }
        }
        if due.is_empty() {
            return 0;
        }
        match self.queue.send(&due).await {
            Ok(taken) => taken.into_iter().filter(|taken| *taken).count(),
            // The next round tries again.
            Err(error) => {
                EngineError::from(error).log();
                0
            }
        }
    }

    fn has_doubled(&self, since: Timestamp) -> bool {
        let RedispatchPass { began, before } = self.pass;
        let before = before.map(|before| before.since(since));
        has_doubled(QUEUED, before, began.since(since))
    }

    async fn is_nearly_empty(&mut self) -> bool {
        if let Some(known) = self.nearly_empty {
            return known;
        }
        let known = match self.queue.waiting().await {
            Ok(waiting) => waiting < NEARLY_EMPTY,
            Err(error) => {
                EngineError::from(error).log();
                // An unknown length counts as full: more messages would multiply a backlog.
                false
            }
        };
        *self.nearly_empty.insert(known)
    }
}

#[cfg(test)]
mod tests;
