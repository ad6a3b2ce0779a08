//! Races for the thread of a conversation, which many tasks may write at once.

use super::Engine;
use crate::store::StoreError;
use crate::task::Timestamp;
use std::time::Duration;

/// For how long a lost race is run again; the skill is not. It is less than
/// the life that a lease has left.
const RACES: Duration = Duration::from_secs(20);
/// How long past the end of its work a turn may still race: its call has a
/// second more to answer, and its invocation two.
const LATE: Duration = Duration::from_secs(2);
/// What a turn has for it in any case.
const LEAST: Duration = Duration::from_millis(500);

/// The races that a turn has run and lost.
#[derive(Debug)]
pub(super) struct Races {
    lost: u32,
    end: Timestamp,
}

impl Engine {
    /// No race lost yet, by a turn which should stop its work at `stop_at`.
    pub(super) fn races(&self, stop_at: Option<Timestamp>) -> Races {
        let now = self.reader.clock.now();
        let end = now.plus(RACES.min(self.reader.policy.lease / 3));
        let last = stop_at.map_or(end, |at| at.plus(LATE).max(now.plus(LEAST)));
        Races {
            lost: 0,
            end: end.min(last),
        }
    }

    /// Waits a little before a race is run again, longer each time and each
    /// task for itself, so that many tasks of one conversation all get through;
    /// `false` if there is no time for another one.
    pub(super) async fn stand_back(&self, races: &mut Races) -> bool {
        let longest = 10_u64 << races.lost.min(6);
        races.lost += 1;
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

/// Every race was lost.
pub(super) fn outrun() -> StoreError {
    StoreError::Unavailable("lost too many races for the thread".to_owned())
}

#[cfg(test)]
mod tests;
