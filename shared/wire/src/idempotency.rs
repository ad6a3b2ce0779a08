//! Reads the idempotency key of a send: from a header, or from the metadata of
//! the message or the request, in every generation and binding.

use a2a_lambda_model::task::{A2aError, IdempotencyKey, Metadata, SendCommand};
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
    // What is no text is refused as an empty key is.
    let of_header = |bytes| str::from_utf8(bytes).unwrap_or_default().trim();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let of_metadata = |metadata: &Metadata| metadata.get(IdempotencyKey::METADATA).map(text);
    let key = IdempotencyKey::METADATA;
    let mut current = None;
    for (field, text) in [
        (HEADER.to_owned(), header.map(of_header).map(str::to_owned)),
        (
            format!("message.metadata.{key}"),
            of_metadata(&command.message.metadata),
        ),
        (format!("metadata.{key}"), of_metadata(&command.metadata)),
    ] {
        let Some(text) = text else { continue };
        let key = IdempotencyKey::parse(text)
            .map_err(|error| A2aError::invalid(&field, format!("must be {}", error.rule)))?;
        if current.as_ref().is_some_and(|other| *other != key) {
            let why = "is not the idempotency key given elsewhere in this request";
            return Err(A2aError::invalid(field, why));
        }
        current = Some(key);
    }
    Ok(current)
}
