//! How long a task may run: the total of its turns, over all hand-overs.
//!
//! Each invocation of a turn ends, but a turn can be handed over again and again. The
//! total ends a turn that makes progress for ever.

use crate::engine::Engine;
use crate::skill::AgentError;
use crate::task::{TaskRecord, Used};

impl Engine {
    /// The error of a task that must not be handed over once more. The attempt that ends
    /// now counts.
    pub(in crate::engine) fn hand_over_limit(&self, record: &TaskRecord) -> Option<AgentError> {
        // This process runs the attempt, so the stored lease does not end it.
        let used = record.used().ended(self.reader.clock.now(), None);
        let most = self.reader.policy.task_hand_overs_max;
        if used.hand_overs < most {
            return self.run_time_limit(used);
        }
        let text = format!("the task was handed over {most} times, and no task may be more often");
        Some(exceeded(text).with_detail("handOversMax", most))
    }

    /// The error of a task that no worker may claim once more.
    pub(in crate::engine) fn claim_limit(&self, record: &TaskRecord) -> Option<AgentError> {
        let now = self.reader.clock.now();
        self.run_time_limit(record.used().ended(now, record.lease_until()))
    }

    fn run_time_limit(&self, used: Used) -> Option<AgentError> {
        let (ran, most) = (used.run_time, self.reader.policy.task_run_max);
        if ran < most {
            return None;
        }
        let (ran, most) = (ran.as_secs(), most.as_secs());
        let text = format!("the task ran for {ran} s, and a task may run for {most} s in all");
        Some(exceeded(text).with_detail("runMaxSeconds", most))
    }
}

fn exceeded(text: String) -> AgentError {
    AgentError::domain("RUN_LIMIT_EXCEEDED", text)
}

#[cfg(test)]
mod tests;
