//! Decodes requests and responses of 1.0 with the official Rust types and encodes them again.
//! If the value changes, one of the two codecs is wrong.

use crate::vector::Asked;
use a2a_lambda_wire::{MethodCall, OpenedRequest, RawRequest};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The type of a 1.0 response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Sent,
    Task,
    Page,
    Event,
    Error,
    Card,
}

impl Kind {
    /// The type of the response to a call.
    pub(crate) const fn of(asked: Asked) -> Option<Self> {
        match asked {
            Asked::Send => Some(Self::Sent),
            Asked::Get | Asked::Cancel => Some(Self::Task),
            Asked::List => Some(Self::Page),
            Asked::Stream | Asked::Subscribe | Asked::Read => Some(Self::Event),
            Asked::Raw => None,
        }
    }
}

/// Decodes a value with the official type, encodes it again, and compares.
///
/// # Errors
/// The decoding error, or the first difference.
pub(crate) fn reads(kind: Kind, value: &Value) -> Result<(), String> {
    let read = match kind {
        Kind::Sent => again::<a2a::SendMessageResponse>(value),
        Kind::Task => again::<a2a::Task>(value),
        Kind::Page => again::<a2a::ListTasksResponse>(value),
        Kind::Event => again::<a2a::StreamResponse>(value),
        Kind::Error => again::<a2a::JsonRpcResponse>(value),
        Kind::Card => again::<a2a::AgentCard>(value),
    }?;
    same("", value, &read)
}

/// The vectors with requests that the official types refuse, though `ProtoJSON` allows them.
pub(crate) const REFUSED: [&str; 3] = [
    "base64 may be URL-safe or unpadded",
    "1.0 reads the original names of the proto",
    "numbers as text are read where the proto has integers",
];

/// Decodes the parameters of a JSON-RPC request with the official type, encodes them again,
/// and compares what this project reads from the two.
///
/// # Errors
/// The decoding error, or the two calls.
pub(crate) fn reads_request(envelope: &Value) -> Result<(), String> {
    let params = envelope.get("params").unwrap_or(&Value::Null);
    let written = match envelope["method"].as_str().unwrap_or_default() {
        "SendMessage" | "SendStreamingMessage" => again::<a2a::SendMessageRequest>(params),
        "GetTask" => again::<a2a::GetTaskRequest>(params),
        "ListTasks" => again::<a2a::ListTasksRequest>(params),
        "CancelTask" => again::<a2a::CancelTaskRequest>(params),
        "SubscribeToTask" => again::<a2a::SubscribeToTaskRequest>(params),
        "CreateTaskPushNotificationConfig" => again::<a2a::TaskPushNotificationConfig>(params),
        "GetTaskPushNotificationConfig" => {
            again::<a2a::GetTaskPushNotificationConfigRequest>(params)
        }
        "DeleteTaskPushNotificationConfig" => {
            again::<a2a::DeleteTaskPushNotificationConfigRequest>(params)
        }
        "ListTaskPushNotificationConfigs" => {
            again::<a2a::ListTaskPushNotificationConfigsRequest>(params)
        }
        _ => return Ok(()),
    }?;
    let mut theirs = envelope.clone();
    theirs["params"] = written;
    let (ours, theirs) = (call(envelope)?, call(&theirs)?);
    match ours == theirs {
        true => Ok(()),
        false => Err(format!("{ours:?} is read as {theirs:?}")),
    }
}

/// What this project reads.
pub(crate) fn call(envelope: &Value) -> Result<MethodCall, String> {
    let body = envelope.to_string();
    let raw = RawRequest {
        method: "POST",
        path: "/",
        content_type: Some("application/json"),
        version: Some("1.0"),
        body: body.as_bytes(),
        ..RawRequest::default()
    };
    match a2a_lambda_wire::open(&raw) {
        Ok(OpenedRequest::One(call)) => call.decode().map_err(|error| error.to_string()),
        _ => Err("opens no call".to_owned()),
    }
}

fn again<T: DeserializeOwned + Serialize>(value: &Value) -> Result<Value, String> {
    let read: T = serde_json::from_value(value.clone()).map_err(|error| error.to_string())?;
    serde_json::to_value(read).map_err(|error| error.to_string())
}

/// Compares by the rules of `ProtoJSON`: an absent member is its default, and a time may
/// have any number of fraction digits.
fn same(place: &str, ours: &Value, theirs: &Value) -> Result<(), String> {
    let differ = || Err(format!("{place}: {ours} is read as {theirs}"));
    match (ours, theirs) {
        (Value::Object(ours), Value::Object(theirs)) => {
            let names = ours.keys().chain(theirs.keys());
            names.into_iter().try_for_each(|name| {
                let place = format!("{place}/{name}");
                match (ours.get(name), theirs.get(name)) {
                    (Some(ours), Some(theirs)) => same(&place, ours, theirs),
                    (Some(only), None) | (None, Some(only)) if is_default(only) => Ok(()),
                    (ours, theirs) => Err(format!("{place}: {ours:?} is read as {theirs:?}")),
                }
            })
        }
        (Value::Array(ours), Value::Array(theirs)) if ours.len() == theirs.len() => {
            let pairs = ours.iter().zip(theirs).enumerate();
            pairs.into_iter().try_for_each(|(index, (ours, theirs))| {
                same(&format!("{place}/{index}"), ours, theirs)
            })
        }
        (Value::String(ours), Value::String(theirs))
            // The official type writes no zero fraction.
            if ours.ends_with(".000Z") && ours.replace(".000Z", "Z") == *theirs =>
        {
            Ok(())
        }
        (ours, theirs) if ours == theirs => Ok(()),
        _ => differ(),
    }
}

fn is_default(value: &Value) -> bool {
    match value {
        Value::Bool(value) => !value,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Number(number) => number.as_i64() == Some(0),
        Value::Object(_) | Value::Null => false,
    }
}
