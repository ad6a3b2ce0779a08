//! The two clocks of the tests. `VirtualClock` follows tokio's clock: with `start_paused`
//! it stops, and tokio advances it when every task waits. `SetClock` shows what the test
//! sets.

use a2a_lambda::engine::Clock;
use a2a_lambda::task::Timestamp;
use futures::future::BoxFuture;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// 2026-05-28T10:00:00Z.
const START: i64 = 1_779_962_400_000;

/// A clock that follows tokio's clock. A test can move it forward, or hold it.
#[derive(Debug)]
pub struct VirtualClock {
    began: Timestamp,
    started: Instant,
    /// How much faster than tokio's clock it runs.
    speed: u32,
    /// How far it was moved forward, in milliseconds.
    moved: AtomicU64,
    /// When it was stopped, in milliseconds; 0 while it runs.
    held: AtomicI64,
}

impl Default for VirtualClock {
    fn default() -> Self {
        Self::starting(Timestamp::from_millis(START), 1)
    }
}

impl VirtualClock {
    /// A clock that shows `began` and runs `speed` times as fast as tokio's clock.
    #[must_use]
    pub fn starting(began: Timestamp, speed: u32) -> Self {
        Self {
            began,
            started: Instant::now(),
            speed,
            moved: AtomicU64::new(0),
            held: AtomicI64::new(0),
        }
    }

    /// Moves it forward by `time`. A sleep that has begun does not become shorter.
    pub fn advance(&self, time: Duration) {
        let millis = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        self.moved.fetch_add(millis, Ordering::SeqCst);
    }

    /// Makes work take no time, however slow the machine is. A wait of less than
    /// a second ends immediately; a longer one (a heartbeat, the end of a budget)
    /// never ends.
    pub fn hold(&self, held: bool) {
        let since = if held { self.running().as_millis() } else { 0 };
        self.held.store(since, Ordering::SeqCst);
    }

    fn is_held(&self) -> bool {
        self.held.load(Ordering::SeqCst) != 0
    }

    /// The time if it had been neither held nor moved.
    fn running(&self) -> Timestamp {
        self.began.plus(self.started.elapsed() * self.speed)
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> Timestamp {
        let shown = match self.held.load(Ordering::SeqCst) {
            0 => self.running(),
            held => Timestamp::from_millis(held),
        };
        shown.plus(Duration::from_millis(self.moved.load(Ordering::SeqCst)))
    }

    fn sleep_until(&self, at: Timestamp) -> BoxFuture<'_, ()> {
        let left = at.since(self.now());
        if !self.is_held() {
            return Box::pin(tokio::time::sleep(left / self.speed));
        }
        if left < Duration::from_secs(1) {
            return Box::pin(tokio::task::yield_now());
        }
        Box::pin(std::future::pending())
    }
}

/// A clock that a test sets, for data that another process has stored in real time, and
/// for tests over days. By default it shows the Unix epoch.
#[derive(Debug, Default)]
pub struct SetClock {
    now: AtomicI64,
    /// Whether a sleep never ends. Otherwise it takes its time on tokio's clock.
    endless: bool,
}

impl SetClock {
    /// A clock that shows `now`.
    #[must_use]
    pub const fn at(now: Timestamp) -> Self {
        Self {
            now: AtomicI64::new(now.as_millis()),
            endless: false,
        }
    }

    /// A clock that shows `now` and whose sleeps never end, so that a turn ends before
    /// a timer does on any machine.
    #[must_use]
    pub const fn without_timers(now: Timestamp) -> Self {
        Self {
            now: AtomicI64::new(now.as_millis()),
            endless: true,
        }
    }

    /// Sets the time; it may go backwards.
    pub fn set(&self, at: Timestamp) {
        self.now.store(at.as_millis(), Ordering::SeqCst);
    }

    /// Moves it forward by `time`.
    pub fn advance(&self, time: Duration) {
        self.set(self.now().plus(time));
    }
}

impl Clock for SetClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.now.load(Ordering::SeqCst))
    }

    fn sleep_until(&self, at: Timestamp) -> BoxFuture<'_, ()> {
        if self.endless {
            return Box::pin(std::future::pending());
        }
        Box::pin(tokio::time::sleep(at.since(self.now())))
    }
}
