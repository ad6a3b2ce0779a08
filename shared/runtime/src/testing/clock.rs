//! The clock and the ids of tests.

use crate::engine::{Clock, Ids};
use crate::task::Timestamp;
use futures::future::BoxFuture;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;
use tokio::time::Instant;

/// A clock that a test moves.
///
/// A *following* clock also follows Tokio's. When a test pauses Tokio's clock, both move as
/// soon as each task waits. A *standing* clock shows the same time until the test moves it or
/// a sleep ends.
#[derive(Debug)]
pub struct TestClock {
    /// When it began to follow Tokio's clock, and how much faster it runs.
    follows: Option<(Instant, u32)>,
    /// What it shows without the time since it began to follow, in milliseconds.
    base: AtomicI64,
    has_timers: bool,
    /// What [`TestClock::hold`] makes it show, in milliseconds; 0 while it runs.
    held: AtomicI64,
    /// The state of the random order in which steps end; 0 without one.
    order: AtomicU64,
}

/// Follows Tokio's clock from [`TestClock::START`].
impl Default for TestClock {
    fn default() -> Self {
        Self::following(Self::START, 1)
    }
}

impl TestClock {
    /// When a test begins: 2026-01-01T00:00:00Z.
    pub const START: Timestamp = Timestamp::from_millis(1_767_225_600_000);

    /// A clock that shows `start` and follows Tokio's clock, `speed` times as fast.
    #[must_use]
    pub fn following(start: Timestamp, speed: u32) -> Self {
        let mut clock = Self::standing(start);
        clock.follows = Some((Instant::now(), speed));
        clock
    }

    /// A clock that shows `now` until the test moves it or a sleep ends.
    #[must_use]
    pub const fn standing(now: Timestamp) -> Self {
        Self {
            follows: None,
            base: AtomicI64::new(now.as_millis()),
            has_timers: true,
            held: AtomicI64::new(0),
            order: AtomicU64::new(0),
        }
    }

    /// A standing clock on which a sleep ends only if its end is past when it is polled. So a
    /// turn ends before a timer does on any machine.
    #[must_use]
    pub const fn without_timers(now: Timestamp) -> Self {
        let mut clock = Self::standing(now);
        clock.has_timers = false;
        clock
    }

    /// Makes the clock show `at`, which may be earlier.
    pub fn set(&self, at: Timestamp) {
        self.base
            .store(at.as_millis() - self.followed(), Ordering::SeqCst);
    }

    /// Moves the clock forward. A sleep that has begun does not become shorter.
    pub fn advance(&self, time: Duration) {
        let time = i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
        self.base.fetch_add(time, Ordering::SeqCst);
    }

    /// Stops the clock, or lets it run again. Work on a stopped clock takes no time, however slow
    /// the machine is: a sleep of less than a second ends immediately, and a longer one (a
    /// heartbeat, the end of a budget) never ends.
    pub fn hold(&self, is_held: bool) {
        let now = if is_held { self.now().as_millis() } else { 0 };
        self.held.store(now, Ordering::SeqCst);
    }

    /// Lets steps end in the order of this seed.
    pub(super) fn shuffle_ends(&self, seed: u64) {
        let order = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        self.order.store(order, Ordering::Relaxed);
    }

    /// The milliseconds since it began to follow Tokio's clock.
    fn followed(&self) -> i64 {
        let time = self
            .follows
            .map_or(Duration::ZERO, |(start, speed)| start.elapsed() * speed);
        i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
    }
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        let now = match self.held.load(Ordering::SeqCst) {
            0 => self.base.load(Ordering::SeqCst) + self.followed(),
            held => held,
        };
        Timestamp::from_millis(now)
    }

    /// Sleeps on Tokio's clock. A standing clock then shows `at`: if it jumped there without the
    /// sleep, the engine's wait would end before the skill beside it has done anything.
    fn sleep_until(&self, at: Timestamp) -> BoxFuture<'_, ()> {
        let left = at.since(self.now());
        let is_held = self.held.load(Ordering::SeqCst) != 0;
        if is_held && left < Duration::from_secs(1) {
            return Box::pin(tokio::task::yield_now());
        }
        if is_held || !self.has_timers {
            return Box::pin(std::future::poll_fn(move |_| match at <= self.now() {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }));
        }
        Box::pin(async move {
            match self.follows {
                Some((_, speed)) => tokio::time::sleep(left / speed).await,
                None => {
                    tokio::time::sleep(left).await;
                    self.base.fetch_max(at.as_millis(), Ordering::SeqCst);
                }
            }
        })
    }

    fn delay_end(&self) -> BoxFuture<'_, ()> {
        let mut order = self.order.load(Ordering::Relaxed);
        // A xorshift generator, which stays at 0.
        order ^= order << 13;
        order ^= order >> 7;
        order ^= order << 17;
        self.order.store(order, Ordering::Relaxed);
        Box::pin(async move {
            for _ in 0..order % 8 {
                tokio::task::yield_now().await;
            }
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
