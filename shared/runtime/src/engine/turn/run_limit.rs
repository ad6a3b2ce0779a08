//! How long a turn may take without progress, how often a task may be handed over, and how
//! much a skill may keep.
//!
//! Each invocation of a turn ends, but a turn can be handed over or released again and
//! again. The first two limits end a turn that makes no progress, or progress for ever.

use crate::engine::policy::Policy;
use crate::engine::turn::Turns;
use crate::task::TaskRecord;
use a2a_lambda_skill::{AgentError, AgentResult};

impl Turns {
    /// The error of a task that must not be handed over once more.
    pub(in crate::engine) fn hand_over_limit(&self, record: &TaskRecord) -> Option<AgentError> {
        let most = self.reader.policy.task_hand_overs_max;
        if record.used.hand_overs < most {
            return self.run_limit(record);
        }
        let text = format!("the task was handed over {most} times, and no task may be more often");
        Some(limit_error(text).with_detail("handOversMax", most))
    }

    /// The error of a task whose turn must not run again: it has made no progress for too
    /// long. The time of a brake does not count.
    pub(in crate::engine) fn run_limit(&self, record: &TaskRecord) -> Option<AgentError> {
        let idle = self.reader.idle_time(record);
        let most = self.reader.policy.task_run_max;
        if idle < most {
            return None;
        }
        let (idle, most) = (idle.as_secs(), most.as_secs());
        let text = format!("the task made no progress for {idle} s, and {most} s are allowed");
        Some(limit_error(text).with_detail("runMaxSeconds", most))
    }
}

impl Policy {
    /// Checks that a skill may keep `current` bytes, before anything is written. The size is
    /// that of the stored form: `stored::saved_size` of a task, `stored::state_size` of a
    /// thread.
    ///
    /// # Errors
    /// `STATE_TOO_LARGE`.
    pub(in crate::engine) fn check_state_size(&self, current: usize) -> AgentResult<()> {
        let limit = self.state_max_bytes;
        if current <= limit {
            return Ok(());
        }
        Err(AgentError::state_too_large(current as u64, limit as u64))
    }
}

fn limit_error(text: String) -> AgentError {
    AgentError::domain("RUN_LIMIT_EXCEEDED", text)
}

#[cfg(test)]
mod tests;
