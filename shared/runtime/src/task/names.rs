//! The names of ours in the metadata of others, all of them.
//!
//! `docs/conformance.md` has a table of them. What the card declares as an
//! extension beyond a name is in `protocol/card/extension.rs`.

/// On a message or a request: the name of this send.
pub(crate) const IDEMPOTENCY_KEY: &str = "a2a-lambda/idempotencyKey";
/// On a message: the skill to call.
pub(crate) const SKILL_ID: &str = "a2a-lambda/skillId";
/// On the message of a failed status: why, in a word.
pub(crate) const ERROR_CODE: &str = "a2a-lambda/errorCode";
/// Beside it: more of it.
pub(crate) const ERROR_DETAILS: &str = "a2a-lambda/errorDetails";
/// On the message of an auth-required status: which credentials.
pub(crate) const AUTH: &str = "a2a-lambda/auth";
/// On a task of 0.1 or 0.3: the last state changes, oldest first. The cards of
/// these generations promise `stateTransitionHistory`.
pub(crate) const STATE_TRANSITIONS: &str = "a2a-lambda/stateTransitions";
/// On the task or message of a send: the state of its conversation was gone.
pub(crate) const CONTEXT_RESET: &str = "a2a-lambda/contextReset";
/// On a task, event, message or part: something of it was left out.
pub(crate) const TRUNCATED: &str = "a2a-lambda/truncated";
/// On a status update: the turn runs again from its last checkpoint.
pub(crate) const RESTARTED: &str = "a2a-lambda/restarted";
