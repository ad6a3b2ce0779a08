//! Time that tests own: tokio's, which `start_paused` stops and moves on by
//! itself when everybody waits.

use a2a_lambda::engine::Clock;
use a2a_lambda::task::Timestamp;
use std::future::Future;
use std::pin::Pin;
use tokio::time::Instant;

/// 2026-05-28T10:00:00Z.
const START: i64 = 1_779_962_400_000;

/// The clock of a test.
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
