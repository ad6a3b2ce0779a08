//! Reads and writes the JSON-RPC 2.0 envelope.
//!
//! The decoder of `a2a-lf` is not used: it refuses ids above `i64::MAX` and absent
//! ids, and it does not check the version.

use super::json;
use a2a_lambda_model::task::A2aError;
use serde::Serialize;
use serde_json::{Number, Value, json};

/// The value of `jsonrpc` (JSON-RPC 2.0 §4).
const VERSION: &str = "2.0";
/// The most entries of a batch.
pub(super) const MAX_BATCH: usize = 16;
/// The most bytes of an id, which every event of a stream repeats.
const MAX_ID: usize = 1024;

/// The id of a JSON-RPC request, which its response repeats exactly (JSON-RPC 2.0
/// §4, §5).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(untagged)]
pub enum RpcId {
    /// `null`, or malformed.
    #[default]
    Null,
    /// A notification (JSON-RPC 2.0 §4.1). In a batch it has no response. A request that is not
    /// in one has, with the id `null`: the kit of 0.3 leaves the id out and waits.
    Absent,
    /// A number, also with a fraction, which JSON-RPC 2.0 §4 does not forbid.
    Number(Number),
    /// A string of up to 1024 bytes.
    Text(String),
}

impl RpcId {
    fn read(value: Option<&Value>) -> Option<Self> {
        match value {
            None => Some(Self::Absent),
            Some(Value::Null) => Some(Self::Null),
            Some(Value::String(text)) if text.len() <= MAX_ID => Some(Self::Text(text.clone())),
            Some(Value::Number(number)) => Some(Self::Number(number.clone())),
            Some(_) => None,
        }
    }
}

/// The envelope of a request; the parameters are unread.
#[derive(Debug, PartialEq)]
pub(super) struct Envelope {
    pub(super) id: RpcId,
    pub(super) method: String,
    /// The member `params` of any type; `null` if it is absent.
    pub(super) params: Value,
}

/// Reads one envelope.
///
/// # Errors
/// [`A2aError::InvalidRequest`], with the id of the error response.
pub(super) fn envelope(value: Value) -> Result<Envelope, (RpcId, A2aError)> {
    let fault = |id, why: &str| match id {
        // JSON-RPC 2.0 §6: what is not a request is not a notification.
        RpcId::Absent => (RpcId::Null, invalid(why)),
        id => (id, invalid(why)),
    };
    // JSON-RPC 2.0 §4: the members of a request object.
    let Value::Object(mut members) = value else {
        return Err(fault(RpcId::Null, "a request must be a JSON object"));
    };
    let Some(id) = RpcId::read(members.get("id")) else {
        let why = format!("`id` must be a string of up to {MAX_ID} bytes, a number or null");
        return Err(fault(RpcId::Null, &why));
    };
    // The decoder refuses duplicates inside the parameters, after the caller is known.
    let params = members.remove("params").unwrap_or_default();
    let mut members = Value::Object(members);
    if let Some(path) = json::duplicate(&members) {
        // JSON-RPC 2.0 §5: the id is null if it cannot be determined.
        let id = if path == "id" { RpcId::Null } else { id };
        return Err(fault(id, &format!("`{path}` must stand only once")));
    }
    if members.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Err(fault(id, "`jsonrpc` must be \"2.0\""));
    }
    let Some(Value::String(method)) = members.get_mut("method").map(Value::take) else {
        return Err(fault(id, "`method` must be a string"));
    };
    Ok(Envelope { id, method, params })
}

/// The error for a body or batch entry that is not a request.
pub(super) fn invalid(why: impl Into<String>) -> A2aError {
    A2aError::InvalidRequest { why: why.into() }
}

/// The response with a result.
pub(super) const fn result<T: Serialize>(id: &RpcId, result: T) -> RpcResult<'_, T> {
    RpcResult {
        id,
        jsonrpc: VERSION,
        result,
    }
}

/// A response with a result (JSON-RPC 2.0 §5). `result` is present, even when it is null.
#[derive(Debug, Serialize)]
pub(super) struct RpcResult<'a, T> {
    id: &'a RpcId,
    jsonrpc: &'static str,
    result: T,
}

/// The response with an error.
pub(super) fn error(id: &RpcId, error: &Value) -> Value {
    json!({"jsonrpc": VERSION, "id": id, "error": error})
}

#[cfg(test)]
mod tests;
