//! Reads typed values from JSON, for the decoders of all generations.
//!
//! A reader stops at the first fault. Its error names the path of the field and what is
//! allowed there. Unknown members are ignored; `null` counts as absent.

mod object;
#[cfg(test)]
mod tests;

#[cfg(test)]
pub(crate) use object::base64;
pub(crate) use object::{Object, snake};

use a2a_lambda_model::task::{A2aError, Generation};
use serde_json::{Map, Value};

/// The most messages of history in a response.
const MAX_HISTORY: usize = 100;
/// The most parts a message may have.
const MAX_PARTS: usize = 64;

/// The number of messages of history for a client that names none.
pub(crate) const fn default_history(generation: Generation) -> usize {
    match generation {
        // A2A 1.0 §3.2.4 leaves the default to the server.
        Generation::V10 | Generation::V03 => MAX_HISTORY,
        // A2A 0.1 §7.1.1, §7.3.1: none.
        Generation::V01 => 0,
    }
}

/// What a reader reads, or the first fault: always [`A2aError::InvalidParams`].
pub(crate) type ReadResult<T> = Result<T, A2aError>;

/// The encoding of member names and scalars.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FieldCase {
    /// Plain JSON of 0.3 and 0.1.
    Json,
    /// `ProtoJSON` of 1.0, and of 0.3 over REST: an integer may be a string. The zero value of
    /// an optional text, enum or time means that it is absent.
    ProtoJson,
}

/// Query parameters as the members of a request.
///
/// # Errors
/// [`A2aError::InvalidParams`] when a parameter is repeated.
pub(crate) fn members(pairs: &[(String, String)]) -> ReadResult<Map<String, Value>> {
    let mut members = Map::new();
    // A2A 1.0 §3.6.1: the version may be a parameter of the query, and belongs to no operation.
    let is_member = |(name, _): &&(String, String)| !name.eq_ignore_ascii_case("a2a-version");
    for (name, text) in pairs.iter().filter(is_member) {
        // A2A 1.0 §11.5: a boolean is `true` or `false`. Only this parameter is one;
        // text and numbers are read from a string.
        let switch = matches!(name.as_str(), "includeArtifacts" | "include_artifacts");
        let value = match text.as_str() {
            "true" if switch => Value::Bool(true),
            "false" if switch => Value::Bool(false),
            text => text.into(),
        };
        if members.insert(name.clone(), value).is_some() {
            return Err(A2aError::invalid(name, "is given twice"));
        }
    }
    Ok(members)
}
