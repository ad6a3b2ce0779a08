//! How long a turn may take without progress, and how often a task may be handed over.
//!
//! Each invocation of a turn ends, but a turn can be handed over or released again and
//! again. These limits end a turn that makes no progress, or progress for ever.

use crate::engine::Engine;
use crate::task::TaskRecord;
use a2a_lambda_skill::AgentError;

impl Engine {
    /// The error of a task that must not be handed over once more.
    pub(in crate::engine) fn hand_over_limit(&self, record: &TaskRecord) -> Option<AgentError> {
        let most = self.reader.policy.task_hand_overs_max;
        if record.used().hand_overs < most {
            return self.run_limit(record);
        }
        let text = format!("the task was handed over {most} times, and no task may be more often");
        Some(exceeded(text).with_detail("handOversMax", most))
    }

    /// The error of a task whose turn must not run again: it has made no progress for too
    /// long.
    pub(in crate::engine) fn run_limit(&self, record: &TaskRecord) -> Option<AgentError> {
        let idle = self.reader.clock.now().since(record.progress_at());
        let most = self.reader.policy.task_run_max;
        if idle < most {
            return None;
        }
        let (idle, most) = (idle.as_secs(), most.as_secs());
        let text = format!("the task made no progress for {idle} s, and {most} s are allowed");
        Some(exceeded(text).with_detail("runMaxSeconds", most))
    }
}

fn exceeded(text: String) -> AgentError {
    AgentError::domain("RUN_LIMIT_EXCEEDED", text)
}

#[cfg(test)]
mod tests;
