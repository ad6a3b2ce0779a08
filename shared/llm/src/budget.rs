//! What a worker may use up.

use std::time::Duration;

/// The most that a worker uses for one answer. Then it fails with `BUDGET_EXCEEDED`, or with
/// `DEADLINE` when its time is over.
///
/// The task keeps what is used, so a worker that another process continues has the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LlmBudget {
    pub(super) turns: u32,
    pub(super) tokens: Option<u64>,
    pub(super) time: Option<Duration>,
}

/// 20 turns, and no limit of tokens or time.
impl Default for LlmBudget {
    fn default() -> Self {
        Self {
            turns: 20,
            tokens: None,
            time: None,
        }
    }
}

impl LlmBudget {
    /// The most answers of the model, from 1. In the last one the model must give its result.
    #[must_use]
    pub const fn turns(self, turns: u32) -> Self {
        Self { turns, ..self }
    }

    /// The most tokens, of requests and answers. A request counts one for two bytes before its
    /// answer. A call that leaves no room for another one is the last: it has no tools, and its
    /// answer is marked as partial (`a2a-lambda/partial`). What the task has left counts as well.
    #[must_use]
    pub const fn tokens(self, tokens: u64) -> Self {
        Self {
            tokens: Some(tokens),
            ..self
        }
    }

    /// The most time since the worker began, with that of its tools. Only the time in
    /// which a turn runs counts: not that between two runs, nor until a user confirms a tool.
    #[must_use]
    pub const fn time(self, time: Duration) -> Self {
        Self {
            time: Some(time),
            ..self
        }
    }
}
