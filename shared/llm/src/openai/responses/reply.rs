//! Reads a whole answer.

use super::{ITEM, ResponsesStream};
use crate::openai::failure::reported;
use crate::openai::values::{elements, text, usage};
use crate::provider::ModelCallError;
use a2a_lambda_skill::Collected;
use a2a_lambda_skill::model::{ModelReply, StopReason, Usage};
use serde_json::{Value, json};
use std::collections::VecDeque;

/// Reads an answer.
///
/// # Errors
/// [`ModelCallError`] when the answer reports an error, or is not finished.
pub(crate) fn reply(response: &Value) -> Result<ModelReply, ModelCallError> {
    let (mut stream, mut out) = (ResponsesStream::default(), VecDeque::new());
    for (item, index) in elements(response, "output").iter().zip(0..) {
        stream.done(Some(index), item, &mut out);
    }
    stream.stop(response, &mut out)?;
    Collected::whole(out).ok_or(ModelCallError::Cut)
}

/// The stop reason of an answer.
///
/// # Errors
/// [`ModelCallError`] when the answer reports an error, or is not finished.
pub(super) fn stop_reason(
    response: &Value,
    calls: bool,
    is_refused: bool,
) -> Result<StopReason, ModelCallError> {
    let why = response.pointer("/incomplete_details/reason");
    match text(response, "status") {
        Some("completed") if is_refused => Ok(StopReason::Filtered),
        Some("completed") if calls => Ok(StopReason::ToolUse),
        Some("completed") => Ok(StopReason::EndTurn),
        Some("incomplete") => Ok(match why.and_then(Value::as_str) {
            Some("max_output_tokens") => StopReason::MaxTokens,
            Some("content_filter") => StopReason::Filtered,
            _ => StopReason::Other,
        }),
        _ if response.get("error").is_some_and(|error| !error.is_null()) => Err(reported(response)),
        _ => Err(ModelCallError::Form("a status that is not final")),
    }
}

/// The tokens of an answer.
pub(super) fn usage_of(response: &Value) -> Usage {
    usage(response, "input_tokens", "output_tokens").unwrap_or_default()
}

/// The texts of a message, and its refusal.
pub(super) fn texts(message: &Value) -> impl Iterator<Item = &str> {
    let parts = elements(message, "content").iter();
    parts.filter_map(|part| text(part, "text").or_else(|| text(part, "refusal")))
}

/// Whether the message has a refusal.
pub(super) fn is_refusal(message: &Value) -> bool {
    let mut parts = elements(message, "content").iter();
    parts.any(|part| text(part, "type") == Some("refusal"))
}

/// The block of an item that returns to the service unchanged.
pub(super) fn block(item: &Value) -> Value {
    json!({ ITEM: item })
}

/// The id of a call, which its result names.
pub(super) fn call_id(item: &Value) -> Option<&str> {
    text(item, "call_id").or_else(|| text(item, "id"))
}
