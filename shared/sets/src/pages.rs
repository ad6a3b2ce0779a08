//! The pages of a list: how long one is, and where the next one begins.

use a2a_lambda::skill::{AgentError, AgentResult};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The most entries of a page, and those of a call that names no limit.
pub(crate) const LIMIT_MAX: usize = 50;
const LIMIT: usize = 10;

/// The most entries of a call that asks for `limit`.
///
/// # Errors
/// `INVALID_INPUT` names the argument.
pub(crate) fn limit(limit: Option<usize>) -> AgentResult<usize> {
    let limit = limit.unwrap_or(LIMIT);
    if (1..=LIMIT_MAX).contains(&limit) {
        return Ok(limit);
    }
    let text = format!("`limit` is {limit}, expected 1 to {LIMIT_MAX}");
    Err(AgentError::invalid_input(text))
}

/// The position that a cursor of a caller names.
///
/// # Errors
/// `INVALID_INPUT` for one that [`cursor`] did not write.
pub(crate) fn position<T: DeserializeOwned>(cursor: Option<&str>) -> AgentResult<Option<T>> {
    let position = cursor.map(serde_json::from_str).transpose();
    position
        .map_err(|_| AgentError::invalid_input("`cursor` is not one that this skill has returned"))
}

/// The cursor that names a position.
pub(crate) fn cursor(position: Option<impl Serialize>) -> AgentResult<Option<String>> {
    let cursor = position.map(|it| serde_json::to_string(&it));
    cursor.transpose().map_err(AgentError::serialization)
}
