//! All names that this runtime uses in the metadata of protocol objects.
//!
//! `docs/conformance.md` lists them in a table. `wire/src/card/extension.rs` has what
//! the card declares about the extensions.

/// On a message or a request: the idempotency key of the send.
pub const IDEMPOTENCY_KEY: &str = "a2a-lambda/idempotencyKey";
/// On a message: the skill to call.
pub const SKILL_ID: &str = "a2a-lambda/skillId";
/// On the message of a failed status: the error code.
pub const ERROR_CODE: &str = "a2a-lambda/errorCode";
/// On the same message: details of the error.
pub const ERROR_DETAILS: &str = "a2a-lambda/errorDetails";
/// On the message of an auth-required status: the needed credentials.
pub const AUTH: &str = "a2a-lambda/auth";
/// On the text of a question whether skills may run with what a model wrote: the digest of the
/// question. On the message that answers it, or its part: the same digest, so that the answer is
/// about no other question.
pub const CONFIRM: &str = "a2a-lambda/confirm";
/// On a task whose skill got an input that the model of the router wrote: this input. One whose JSON
/// has more than 4 KB is given as its `sha256` and its `beginning`.
pub const INPUT: &str = "a2a-lambda/input";
/// On a message: the most tokens of models that its task may use, as a whole number above 0.
pub const BUDGET: &str = "a2a-lambda/budget";
/// On a task that has ended, and its last status update: what its calls of models have used, as
/// `calls`, `in`, `out` and `cached`.
pub const USAGE: &str = "a2a-lambda/usage";
/// On the same: the result is partial, because the budget had no room for more calls.
pub const PARTIAL: &str = "a2a-lambda/partial";
/// On the part with a question which skill is meant: what it offers, as objects with `id`, `name`
/// and `description`. The id of one is an answer.
pub const CHOICES: &str = "a2a-lambda/choices";
/// On a task of 0.1 or 0.3: the last state changes, oldest first. The cards of
/// these generations promise `stateTransitionHistory`.
pub const STATE_TRANSITIONS: &str = "a2a-lambda/stateTransitions";
/// On the task or message of a send: the state of its context had expired.
pub const CONTEXT_RESET: &str = "a2a-lambda/contextReset";
/// On a task, event, message or part: some of its content was left out.
pub const TRUNCATED: &str = "a2a-lambda/truncated";
/// On the message of a status update: the constraints that the adapter of the agent found
/// for the conversation.
pub const ACTIVE_CONSTRAINTS: &str = "a2a-lambda/activeConstraints";
/// On a status update: the turn runs again from its last checkpoint.
pub const RESTARTED: &str = "a2a-lambda/restarted";
