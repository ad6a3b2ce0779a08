//! Clocks for tests. `VirtualClock` follows tokio's clock: with `start_paused` it stops,
//! and tokio advances it when every task waits.

use a2a_lambda::engine::Clock;
use a2a_lambda::task::Timestamp;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicI64, Ordering};
use tokio::time::Instant;

/// 2026-05-28T10:00:00Z.
const START: i64 = 1_779_962_400_000;

/// A clock that follows tokio's clock.
#[derive(Debug)]
pub struct VirtualClock {
    started: Instant,
}

impl Default for VirtualClock {
    fn default() -> Self {
        Self {
            started: Instant::now(),
        }
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(START).plus(self.started.elapsed())
    }

    fn sleep_until(&self, at: Timestamp) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(tokio::time::sleep(at.since(self.now())))
    }
}

/// A clock that a test sets, for data that another process has stored in real time. It
/// starts at the Unix epoch.
#[derive(Debug, Default)]
pub struct SetClock(AtomicI64);

impl SetClock {
    /// Sets the time; it may go backwards.
    pub fn set(&self, at: Timestamp) {
        self.0.store(at.as_millis(), Ordering::SeqCst);
    }
}

impl Clock for SetClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::SeqCst))
    }

    fn sleep_until(&self, at: Timestamp) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(tokio::time::sleep(at.since(self.now())))
    }
}
