//! Reads the idempotency key of a send: from a header, or from the metadata of
//! the message or the request, in every generation and binding.

use a2a_lambda_model::task::{A2aError, IdempotencyKey, SendCommand};
use serde_json::Value;

/// The name of the header.
pub(super) const HEADER: &str = "Idempotency-Key";

/// The key of `command`; `header` is the bytes of the header, if any.
///
/// # Errors
/// [`A2aError::InvalidParams`] for a malformed key, and for two different keys in
/// one request.
pub(super) fn key(
    header: Option<&[u8]>,
    command: &SendCommand,
) -> Result<Option<IdempotencyKey>, A2aError> {
    let of_message = format!("message.metadata.{}", IdempotencyKey::METADATA);
    let of_request = format!("metadata.{}", IdempotencyKey::METADATA);
    let mut current = header.map(of_header).transpose()?;
    for (field, metadata) in [
        (of_message, &command.message.metadata),
        (of_request, &command.metadata),
    ] {
        let Some(value) = metadata.get(IdempotencyKey::METADATA) else {
            continue;
        };
        let key = of_metadata(&field, value)?;
        if current.as_ref().is_some_and(|other| *other != key) {
            let why = "is not the idempotency key given elsewhere in this request";
            return Err(A2aError::invalid(field, why));
        }
        current = Some(key);
    }
    Ok(current)
}

fn of_header(bytes: &[u8]) -> Result<IdempotencyKey, A2aError> {
    let text = std::str::from_utf8(bytes).unwrap_or_default();
    parsed(HEADER, text.trim())
}

fn of_metadata(field: &str, value: &Value) -> Result<IdempotencyKey, A2aError> {
    let Value::String(text) = value else {
        return Err(A2aError::invalid(field, "must be a string"));
    };
    parsed(field, text)
}

fn parsed(field: &str, text: &str) -> Result<IdempotencyKey, A2aError> {
    IdempotencyKey::parse(text)
        .map_err(|error| A2aError::invalid(field, format!("must be {}", error.rule)))
}
