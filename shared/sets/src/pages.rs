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

/// The place that a cursor of a caller names.
///
/// # Errors
/// `INVALID_INPUT` for one that [`cursor`] did not write.
pub(crate) fn place<T: DeserializeOwned>(cursor: Option<&str>) -> AgentResult<Option<T>> {
    let place = cursor.map(serde_json::from_str).transpose();
    place.map_err(|_| AgentError::invalid_input("`cursor` is not one that this skill has returned"))
}

/// The cursor that names a place.
pub(crate) fn cursor(place: Option<impl Serialize>) -> AgentResult<Option<String>> {
    let cursor = place.map(|place| serde_json::to_string(&place));
    cursor.transpose().map_err(AgentError::serialization)
}
