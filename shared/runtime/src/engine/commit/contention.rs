//! What the engine does after another write came first.
//!
//! - [`Races`]: it decides again, from a fresh read
//! - [`RetryBudget`]: a turn waits, because many tasks of a context may write its thread

use super::Commits;
use crate::engine::error::EngineError;
use crate::store::StoreError;
use crate::task::Timestamp;
use std::time::Duration;

/// How often the engine decides.
const ROUNDS: usize = 8;

/// The races that one operation has lost.
#[derive(Debug, Default)]
pub(in crate::engine) struct Races(usize);

impl Races {
    /// Notes that another write came first, so that the engine decides again.
    ///
    /// # Errors
    /// An outage after [`ROUNDS`] lost races.
    pub(in crate::engine) fn note_loss(&mut self) -> Result<(), EngineError> {
        self.0 += 1;
        if self.0 < ROUNDS {
            return Ok(());
        }
        Err(StoreError::Unavailable("lost too many races".to_owned()).into())
    }
}

/// How long the end of a turn retries a lost race, without running its skill again. This is
/// shorter than the rest of the lease.
const RACES: Duration = Duration::from_secs(20);
/// How long after `stop_at` a turn may still retry. Its call has 1 s more to respond,
/// and its invocation 2 s.
const LATE: Duration = Duration::from_secs(2);
/// A turn retries for at least this long.
const LEAST: Duration = Duration::from_millis(500);

/// The races that a turn has lost, and when it stops retrying.
#[derive(Debug)]
pub(in crate::engine) struct RetryBudget {
    losses: u32,
    end: Timestamp,
}

impl Commits {
    /// Begins to count the races of a turn that should stop its work at `stop_at`.
    pub(in crate::engine) fn races(&self, stop_at: Option<Timestamp>) -> RetryBudget {
        let end = RACES.min(self.reader.policy.lease / 3);
        let end = self.reader.clock.now().plus(end);
        let run = self.races_of_run(stop_at);
        RetryBudget {
            end: end.min(run.end),
            ..run
        }
    }

    /// The same until the run ends. The turn of a step that waits for its commit continues, with its
    /// heartbeat; if its run ended, the effect of the step would be repeated.
    pub(in crate::engine) fn races_of_run(&self, stop_at: Option<Timestamp>) -> RetryBudget {
        let least = self.reader.clock.now().plus(LEAST);
        let end = stop_at.map(|at| at.plus(LATE).max(least));
        RetryBudget {
            losses: 0,
            end: end.unwrap_or(Timestamp::from_millis(i64::MAX)),
        }
    }

    /// Waits before the next try. The wait grows with each lost race and is random per
    /// task, so that all tasks of a context get through. Returns `false` if no time is
    /// left.
    pub(in crate::engine) async fn back_off(&self, races: &mut RetryBudget) -> bool {
        let longest = 10_u64 << races.losses.min(6);
        races.losses += 1;
        let wait = self.up_to(Duration::from_millis(longest));
        let clock = &self.reader.clock;
        let again = clock.now().plus(Duration::from_millis(1) + wait);
        if again >= races.end {
            return false;
        }
        clock.sleep_until(again).await;
        true
    }
}

/// The error of a turn that has lost every race for its thread.
pub(in crate::engine) fn contention_error() -> StoreError {
    StoreError::Unavailable("lost too many races for the thread".to_owned())
}

#[cfg(test)]
mod tests;
