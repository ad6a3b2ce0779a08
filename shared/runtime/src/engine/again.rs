//! Intents that stand and nobody has taken: the sweep sends them to the queue
//! again, by itself and without a write. So a relay that is broken, or a queue
//! that has lost a message, costs time and no task.
//!
//! Nothing counts how often that was done. While the queue is nearly empty, no
//! message stands for an old intent, and all are sent. Otherwise most of them have
//! a message that waits, and more of the same would only lengthen the queue. Then
//! an intent is sent when its age has doubled since the sweep last passed it.

use super::EngineError;
use crate::store::queue::{WorkItem, WorkQueue};
use crate::task::Timestamp;
use std::time::Duration;

/// How long a dispatched turn is left to its queue.
pub(super) const QUEUED: Duration = Duration::from_secs(300);
/// A queue in which fewer turns wait is nearly empty.
const NEARLY_EMPTY: usize = 100;
/// At most this many turns of one round are added to a queue that is not.
const ADDED: usize = 1000;

/// Whether an age has come to `unit`, or to twice, four times, eight times that,
/// since it was `before`; without that, whether it has come so far at all.
pub(super) fn has_doubled(unit: Duration, before: Option<Duration>, now: Duration) -> bool {
    let doublings = |age: Duration| {
        let units = age.as_millis() / unit.as_millis().max(1);
        u128::BITS - units.leading_zeros()
    };
    doublings(now) > before.map_or(0, doublings)
}

/// A pass of the sweep over all open tasks, which may take several rounds.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Pass {
    /// When it began.
    pub(super) began: Timestamp,
    /// When the pass before it began, if this process has made one.
    pub(super) before: Option<Timestamp>,
}

/// Sends intents in one round of the sweep.
pub(super) struct Again<'q> {
    queue: &'q dyn WorkQueue,
    pass: Pass,
    /// Asked of the queue when the first intent is due.
    nearly_empty: Option<bool>,
    /// How many may be added to a queue that is not nearly empty.
    left: usize,
}

impl<'q> Again<'q> {
    pub(super) const fn new(queue: &'q dyn WorkQueue, pass: Pass) -> Self {
        Self {
            queue,
            pass,
            nearly_empty: None,
            left: ADDED,
        }
    }

    /// Sends those of these turns whose time it is; says how many the queue has
    /// taken. Each comes with the time since when its intent stands, and has
    /// stood for longer than [`QUEUED`].
    pub(super) async fn send(&mut self, standing: Vec<(WorkItem, Timestamp)>) -> usize {
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
            // The next round is soon.
            Err(error) => {
                EngineError::from(error).log();
                0
            }
        }
    }

    fn has_doubled(&self, since: Timestamp) -> bool {
        let Pass { began, before } = self.pass;
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
                false
            }
        };
        *self.nearly_empty.insert(known)
    }
}

#[cfg(test)]
mod tests;
