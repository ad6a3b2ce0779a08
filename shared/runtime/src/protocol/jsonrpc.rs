//! The JSON-RPC 2.0 envelope: ours, since no decoder at hand keeps an id above
//! `i64`, tells an absent id from a wrong one, or checks the version.

use super::json::{self, Step};
use crate::task::{FieldViolation, Refusal};
use serde_json::{Map, Number, Value, json};

/// Entries a batch may have.
pub(super) const MAX_BATCH: usize = 16;
/// Bytes of an id: every event of a stream repeats it.
const MAX_ID: usize = 1024;

/// The id of a JSON-RPC request, which its answer repeats exactly.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum RpcId {
    /// `null`, absent, or not readable. A request without an id is answered
    /// too: clients of 0.3 leave it out and wait.
    #[default]
    Null,
    /// An integer, signed or unsigned 64 bits.
    Number(Number),
    /// A string of up to 1024 bytes.
    Text(String),
}

impl RpcId {
    fn read(value: Option<&Value>) -> Option<Self> {
        match value {
            None | Some(Value::Null) => Some(Self::Null),
            Some(Value::String(text)) if text.len() <= MAX_ID => Some(Self::Text(text.clone())),
            Some(Value::Number(number)) if number.is_i64() || number.is_u64() => {
                Some(Self::Number(number.clone()))
            }
            Some(_) => None,
        }
    }

    fn to_value(&self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Number(number) => Value::Number(number.clone()),
            Self::Text(text) => Value::String(text.clone()),
        }
    }
}

/// A request as its envelope names it; the parameters are unread.
#[derive(Debug, PartialEq)]
pub(super) struct Envelope {
    pub(super) id: RpcId,
    pub(super) method: String,
    /// Whatever stands there; `null` when nothing does.
    pub(super) params: Value,
    /// Members that stand twice inside the parameters.
    pub(super) duplicates: Vec<FieldViolation>,
}

/// Reads one envelope. `duplicates` are those of this value.
///
/// # Errors
/// The id to answer with, and [`Refusal::InvalidRequest`].
pub(super) fn envelope(
    value: Value,
    duplicates: &[Vec<Step>],
) -> Result<Envelope, (RpcId, Refusal)> {
    let refused = |id, why: &str| (id, invalid(why));
    let Value::Object(mut members) = value else {
        return Err(refused(RpcId::Null, "a request must be a JSON object"));
    };
    let Some(mut id) = RpcId::read(members.get("id")) else {
        let why = format!("`id` must be a string of up to {MAX_ID} bytes, an integer or null");
        return Err(refused(RpcId::Null, &why));
    };
    let (inside, outside): (Vec<&Vec<Step>>, Vec<&Vec<Step>>) =
        duplicates.iter().partition(|path| in_params(path));
    if let Some(path) = outside.first() {
        if path.first() == Some(&Step::Name("id".to_owned())) {
            id = RpcId::Null;
        }
        let why = format!("`{}` must stand only once", json::render(path));
        return Err(refused(id, &why));
    }
    if members.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Err(refused(id, "`jsonrpc` must be \"2.0\""));
    }
    let Some(Value::String(method)) = members.remove("method") else {
        return Err(refused(id, "`method` must be a string"));
    };
    Ok(Envelope {
        id,
        method,
        params: members.remove("params").unwrap_or_default(),
        duplicates: inside
            .into_iter()
            .map(|path| json::duplicate(path.get(1..).unwrap_or_default()))
            .collect(),
    })
}

fn in_params(path: &[Step]) -> bool {
    path.len() > 1 && path.first() == Some(&Step::Name("params".to_owned()))
}

/// A body or entry that is no request.
pub(super) fn invalid(why: impl Into<String>) -> Refusal {
    Refusal::InvalidRequest { why: why.into() }
}

/// Whether a body on a path of 0.1 is an envelope or the bare parameters.
pub(super) fn looks_like_envelope(value: &Value) -> bool {
    value.get("jsonrpc").is_some()
}

/// The answer that carries a result; the member stands even when it is null.
pub(super) fn result(id: &RpcId, result: Value) -> Value {
    let mut answer = head(id);
    answer.insert("result".to_owned(), result);
    Value::Object(answer)
}

/// The answer that carries an error.
pub(super) fn error(id: &RpcId, error: Value) -> Value {
    let mut answer = head(id);
    answer.insert("error".to_owned(), error);
    Value::Object(answer)
}

fn head(id: &RpcId) -> Map<String, Value> {
    let mut answer = Map::new();
    answer.insert("jsonrpc".to_owned(), json!("2.0"));
    answer.insert("id".to_owned(), id.to_value());
    answer
}

#[cfg(test)]
mod tests;
