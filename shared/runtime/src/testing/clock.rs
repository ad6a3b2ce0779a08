//! Gives the bench a clock and ids that are the same in every run.

use crate::engine::{Clock, Ids};
use crate::task::Timestamp;
use futures::future::BoxFuture;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

/// When the bench's time begins: 2026-01-01T00:00:00Z.
const START: i64 = 1_767_225_600_000;

/// A clock that moves only when the test or a wait of the engine moves it.
#[derive(Debug)]
pub(super) struct TestClock(AtomicI64);

impl Default for TestClock {
    fn default() -> Self {
        Self(AtomicI64::new(START))
    }
}

impl TestClock {
    pub(super) fn later(&self, time: Duration) -> Timestamp {
        self.now().plus(time)
    }

    pub(super) fn advance(&self, time: Duration) {
        self.reach(self.later(time));
    }

    fn reach(&self, at: Timestamp) {
        self.0.fetch_max(at.as_millis(), Ordering::Relaxed);
    }
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::Relaxed))
    }

    /// Sleeps on Tokio's clock, then moves this clock to `at`. If this clock jumped
    /// to `at` without the sleep, the engine's wait would end before the skill beside
    /// it has done anything. When Tokio's clock is paused, the sleep takes no time.
    fn sleep_until(&self, at: Timestamp) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            tokio::time::sleep(at.since(self.now())).await;
            self.reach(at);
        })
    }
}

/// Ids that count from 1.
#[derive(Debug, Default)]
pub(super) struct CountedIds(AtomicU64);

impl CountedIds {
    /// A name that this bench has not used yet: `<kind>-<number>`.
    pub(super) fn name(&self, kind: &str) -> String {
        format!("{kind}-{}", self.next())
    }
}

impl Ids for CountedIds {
    fn next(&self) -> u128 {
        u128::from(self.0.fetch_add(1, Ordering::Relaxed)) + 1
    }
}
