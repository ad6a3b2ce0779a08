//! The sources of time and ids. The engine and `auth` take both only through these traits, so that
//! a simulation can replay a run.

use crate::task::Timestamp;
use futures::future::BoxFuture;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A clock. A simulation replaces it.
pub trait Clock: Send + Sync {
    /// The current time.
    fn now(&self) -> Timestamp;

    /// Returns at `at`, or immediately if that is past.
    fn sleep_until(&self, at: Timestamp) -> BoxFuture<'_, ()>;

    /// Lets a step end later than others that are open, in tests of the order.
    fn delay_end(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// A source of fresh numbers for ids. A simulation replaces it.
pub trait Ids: Send + Sync {
    /// A number that was not used before.
    fn next(&self) -> u128;
}

/// The clock of the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the one clock behind the trait"
    )]
    fn now(&self) -> Timestamp {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let millis = since.map_or(0, |d| d.as_millis());
        Timestamp::from_millis(i64::try_from(millis).unwrap_or(i64::MAX))
    }

    fn sleep_until(&self, at: Timestamp) -> BoxFuture<'_, ()> {
        Box::pin(tokio::time::sleep(at.since(self.now())))
    }
}

/// Random ids: 128 bits of the system's random source.
#[derive(Debug, Clone, Copy, Default)]
pub struct RandomIds;

impl Ids for RandomIds {
    #[expect(
        clippy::disallowed_methods,
        clippy::expect_used,
        reason = "this is the one source of ids behind the trait; without it no id is unique"
    )]
    fn next(&self) -> u128 {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).expect("the random source of the system");
        u128::from_ne_bytes(bytes)
    }
}

/// Returns at `at`; never returns if it is `None`.
pub(crate) async fn wake_up(clock: &dyn Clock, at: Option<Timestamp>) {
    match at {
        Some(at) => clock.sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// Locks `mutex`, poisoned or not: it guards plain data, which a panic of a skill
/// leaves usable.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_bit_of_a_number_is_fixed() {
        let numbers = || (0..200).map(|_| RandomIds.next());
        assert_eq!(numbers().fold(0, |all, number| all | number), u128::MAX);
        assert_eq!(numbers().fold(u128::MAX, |all, number| all & number), 0);
    }
}
