//! Reads typed values from JSON, for the decoders of all generations.
//!
//! A reader does not stop at the first fault. It notes each fault with the path of
//! its field, and the error lists them all. So a decoder reads every member before
//! it builds the result. Unknown members are ignored; `null` counts as absent.

mod object;
mod request;
#[cfg(test)]
mod tests;
mod value;

pub(crate) use object::{Object, snake};
pub(crate) use request::{MessageForm, PAGE_SIZE, SendOptions, read_list};
#[cfg(test)]
pub(crate) use value::base64;

use a2a_lambda_model::task::{A2aError, FieldViolation, IdError, MAX_PUSH_SCHEME};
use serde_json::{Map, Value};
use std::cell::RefCell;

/// The most messages of history in a response (A2A 1.0 §3.2.4 leaves the default to
/// the server).
pub(crate) const MAX_HISTORY: usize = 100;
/// The most parts a message may have.
pub(crate) const MAX_PARTS: usize = 64;
/// The most faults in one error, so that a hostile request gets a short response.
const MAX_VIOLATIONS: usize = 32;

/// The encoding of member names and scalars.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FieldCase {
    /// Plain JSON of 0.3 and 0.1.
    Json,
    /// `ProtoJSON` of 1.0, and of 0.3 over REST: an integer may be a string. The zero value of
    /// an optional text, enum or time means that it is absent.
    ProtoJson,
}

/// The faults found so far.
#[derive(Debug, Default)]
struct Problems(RefCell<Vec<FieldViolation>>);

impl Problems {
    fn add(&self, violation: FieldViolation) {
        let mut list = self.0.borrow_mut();
        if list.len() < MAX_VIOLATIONS && !list.contains(&violation) {
            list.push(violation);
        }
    }

    /// The value, or the faults if there are any.
    fn settle<T>(self, value: Option<T>) -> Result<T, A2aError> {
        let violations = self.0.into_inner();
        match value {
            Some(value) if violations.is_empty() => Ok(value),
            None if violations.is_empty() => Err(A2aError::invalid(ROOT, "is not valid")),
            _ => Err(A2aError::InvalidParams { violations }),
        }
    }
}

/// The field of a violation that concerns the parameters as a whole.
const ROOT: &str = "params";

/// Reads an object with `decode`.
///
/// # Errors
/// [`A2aError::InvalidParams`] with every fault, also when `params` is not an object.
pub(crate) fn read<T>(
    params: &Value,
    spelling: FieldCase,
    decode: impl FnOnce(&Object<'_>) -> Option<T>,
) -> Result<T, A2aError> {
    let Value::Object(map) = params else {
        return Err(A2aError::invalid(ROOT, "must be an object"));
    };
    read_map(map, spelling, decode)
}

/// Query parameters as the members of a request.
///
/// # Errors
/// [`A2aError::InvalidParams`] with each parameter that is repeated.
pub(crate) fn members(pairs: &[(String, String)]) -> Result<Map<String, Value>, A2aError> {
    let mut members = Map::new();
    let mut violations = Vec::new();
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
            violations.push(FieldViolation::new(name, "is given twice"));
        }
    }
    if violations.is_empty() {
        Ok(members)
    } else {
        Err(A2aError::InvalidParams { violations })
    }
}

/// An id in a path.
///
/// # Errors
/// [`A2aError::InvalidParams`] when it is malformed.
pub(crate) fn path_id<T>(id: Result<T, IdError>) -> Result<T, A2aError> {
    id.map_err(|error| A2aError::invalid("id", rule(&error)))
}

/// Whether a text has 1 to `max` printable ASCII characters.
pub(crate) fn is_printable(text: &str, max: usize) -> bool {
    let printable = |byte: u8| (b' '..=b'~').contains(&byte);
    (1..=max).contains(&text.len()) && text.bytes().all(printable)
}

/// The rule of [`is_printable`] as the text of a violation.
pub(crate) fn printable_rule(max: usize) -> String {
    format!("must have at most {max} characters, all of them printable ASCII")
}

/// Whether a text is the name of an authentication scheme (RFC 9110 §11.1).
pub(crate) fn is_scheme(text: &str) -> bool {
    // RFC 9110 §5.6.2: the characters of a token.
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    (1..=MAX_PUSH_SCHEME).contains(&text.len()) && text.bytes().all(token)
}

/// Reads the members of an object with `decode`.
///
/// # Errors
/// [`A2aError::InvalidParams`] with every fault.
pub(crate) fn read_map<T>(
    map: &Map<String, Value>,
    spelling: FieldCase,
    decode: impl FnOnce(&Object<'_>) -> Option<T>,
) -> Result<T, A2aError> {
    let problems = Problems::default();
    let value = decode(&Object {
        path: String::new(),
        map,
        spelling,
        problems: &problems,
    });
    problems.settle(value)
}

fn rule(error: &IdError) -> String {
    format!("must be {}", error.rule)
}
