//! The time limits of a call and of a turn.

use super::error::EngineError;
use super::reader::Reader;
use crate::clock::wake_up;
use crate::store::StoreError;
use crate::task::Timestamp;
use std::time::Duration;

/// How long a unary call may take beyond the blocking budget, for its reads and writes.
/// With the default budget of 25 s it ends before the 29 s that API Gateway gives a
/// buffered integration (Amazon API Gateway quotas for REST APIs).
const BEYOND: Duration = Duration::from_secs(3);

/// Time reserved at the end of an invocation for the last read of the store and the
/// last bytes of the response.
const LAST_BYTES: Duration = Duration::from_secs(2);

/// The least time reserved for a hand-over.
const MARGIN: Duration = Duration::from_secs(2);

/// The time limits of one call. The HTTP edge makes it once; all that the call does
/// takes its limits from it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CallBudget {
    /// When the invocation ends.
    pub(in crate::engine) deadline: Option<Timestamp>,
    /// Until when the call may wait for its turn; `None` counts from the start of the
    /// send.
    waits_until: Option<Timestamp>,
    /// When a call without a stream must have its response.
    answer_by: Option<Timestamp>,
    /// Whether other calls share these limits.
    pub(in crate::engine) is_in_batch: bool,
    /// When the credentials of the caller end: no stream shows anything after it.
    credentials_end: Option<Timestamp>,
}

impl CallBudget {
    /// The limits of a call in an invocation that ends at `deadline`, or in a process
    /// without such an end.
    #[must_use]
    pub fn until(deadline: Option<Timestamp>) -> Self {
        Self {
            deadline,
            ..Self::default()
        }
    }

    /// The same limits for a caller whose credentials end at `end`. A turn continues after
    /// that; what a stream shows does not.
    pub(crate) const fn for_credentials(self, end: Option<Timestamp>) -> Self {
        Self {
            credentials_end: end,
            ..self
        }
    }

    /// The same limits for each of several calls together.
    pub(crate) const fn in_batch(self) -> Self {
        Self {
            is_in_batch: true,
            ..self
        }
    }

    /// `at`, or earlier if the invocation ends before.
    fn at_most(&self, at: Timestamp) -> Timestamp {
        self.deadline
            .map_or(at, |end| at.min(end.minus(LAST_BYTES)))
    }
}

impl Reader {
    /// Whether the time of a piece of work is over.
    pub(in crate::engine) fn time_is_up(&self, until: Option<Timestamp>) -> bool {
        until.is_some_and(|until| self.clock.now() >= until)
    }

    /// The limits of a call that starts now in an invocation that ends at `deadline`.
    pub(crate) fn call_budget(&self, deadline: Option<Timestamp>) -> CallBudget {
        let now = self.clock.now();
        let blocking = self.policy.blocking_budget;
        let budget = CallBudget::until(deadline);
        CallBudget {
            waits_until: Some(budget.at_most(now.plus(blocking))),
            answer_by: Some(now.plus(blocking + BEYOND)),
            ..budget
        }
    }

    /// Until when the call may wait for its turn.
    pub(in crate::engine) fn waits_until(&self, budget: &CallBudget) -> Timestamp {
        let blocking = self.policy.blocking_budget;
        let from_now = || budget.at_most(self.clock.now().plus(blocking));
        budget.waits_until.unwrap_or_else(from_now)
    }

    /// When a stream that starts now asks its client to reconnect.
    pub(in crate::engine) fn stream_ends(&self, budget: &CallBudget) -> Timestamp {
        let ends = budget.at_most(self.clock.now().plus(self.policy.stream_max_age));
        budget.credentials_end.map_or(ends, |end| ends.min(end))
    }

    /// Waits until the response of a call is due. Work that takes longer is dropped, like
    /// work of a process that died: what it has committed stays committed. The result of a
    /// store call without a response is unknown, so the error is that of an outage.
    pub(crate) async fn response_is_due(&self, budget: &CallBudget) -> EngineError {
        wake_up(&*self.clock, budget.answer_by).await;
        StoreError::Unavailable("the call did not finish in time".to_owned()).into()
    }
}

/// The time limits of a turn. `None` is no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::engine) struct TurnBudget {
    /// When the invocation ends.
    pub(in crate::engine) deadline: Option<Timestamp>,
    /// The time from which no new step may start here.
    pub(in crate::engine) stop_at: Option<Timestamp>,
    /// When the caller gets its response, even if the turn has not ended.
    waits_until: Option<Timestamp>,
}

impl TurnBudget {
    /// The limits of a turn that starts `now` in an invocation that ends at `deadline`.
    /// It stops early enough to be handed over: a tenth of the time left (at least 2 s)
    /// plus 2 s before the end. A running step may use the 2 s.
    pub(in crate::engine) fn of_invocation(deadline: Option<Timestamp>, now: Timestamp) -> Self {
        let stop_at = deadline.map(|deadline| {
            let remaining = deadline.since(now);
            let margin = (remaining / 10).max(MARGIN);
            now.plus(remaining.saturating_sub(margin + MARGIN))
        });
        Self {
            deadline,
            stop_at,
            waits_until: None,
        }
    }

    /// The limits of a turn whose caller waits until `at`.
    pub(in crate::engine) fn waiting_until(self, at: Timestamp) -> Self {
        Self {
            stop_at: Some(self.stop_at.map_or(at, |stop_at| stop_at.min(at))),
            waits_until: Some(at),
            ..self
        }
    }

    /// When the skill has no more time.
    pub(in crate::engine) fn ends_at(&self) -> Option<Timestamp> {
        let limits = [self.deadline, self.waits_until];
        limits.into_iter().flatten().min()
    }
}

#[cfg(test)]
mod tests;
