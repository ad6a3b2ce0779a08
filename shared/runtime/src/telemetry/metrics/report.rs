//! Adds what was counted to the table, at the end of an invocation.

use super::{Metrics, MetricsMode};
use crate::clock::{Clock, SystemClock, lock};
use crate::store::counters::{COUNTER_SHARDS, Counters};
use crate::task::Timestamp;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How often a process adds its counters to the table at most.
const INTERVAL: Duration = Duration::from_secs(10);
/// How long an invocation waits for that.
const PATIENCE: Duration = Duration::from_secs(1);
/// Adds the counters of one process to the table.
pub struct Reporter {
    metrics: Metrics,
    /// The table, if this function writes counters to it.
    counters: Option<Counters>,
    shard: u32,
    clock: Arc<dyn Clock>,
    last_write: Mutex<Option<Timestamp>>,
}

impl Reporter {
    /// A reporter that writes to `counters`. `random` chooses the shard.
    #[must_use]
    pub fn new(metrics: Metrics, counters: Option<Counters>, random: u128) -> Self {
        metrics.keep_for(match counters {
            Some(_) => MetricsMode::Table,
            None => MetricsMode::Off,
        });
        let shard = random % u128::from(COUNTER_SHARDS);
        Self {
            metrics,
            counters,
            shard: u32::try_from(shard).unwrap_or_default(),
            clock: Arc::new(SystemClock),
            last_write: Mutex::new(None),
        }
    }

    #[cfg(test)]
    pub(super) fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Stores what was counted, at most once in 10 s. Call it when the work of an
    /// invocation is done and its response is not, since Lambda freezes the process after the
    /// response.
    pub async fn end_of_invocation(&self) {
        let Some(counters) = self.counters.as_ref().filter(|_| self.is_due()) else {
            return;
        };
        let delta = self.metrics.lock().delta.take();
        if delta.is_empty() {
            return;
        }
        // Counters that fail are lost: after a lost response nobody knows whether they were
        // added, and a second time would count them twice.
        let adding = counters.add_counters(self.shard, &delta);
        match tokio::time::timeout(PATIENCE, adding).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!("failed to store counters: {error}"),
            Err(_) => tracing::warn!("failed to store counters within a second"),
        }
    }

    /// Whether the interval is over. If it is, the next one begins.
    fn is_due(&self) -> bool {
        let now = self.clock.now();
        let mut last_write = lock(&self.last_write);
        let is_due = last_write.is_none_or(|at| now >= at.plus(INTERVAL));
        if is_due {
            *last_write = Some(now);
        }
        is_due
    }
}

debug_as_name!(Reporter);
