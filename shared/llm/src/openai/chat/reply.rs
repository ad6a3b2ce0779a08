//! Reads a whole answer.

use super::{ChatStream, kept};
use crate::openai::failure::reported;
use crate::openai::quirks::OpenAiQuirks;
use crate::openai::values::{elements, text};
use crate::provider::ModelCallError;
use a2a_lambda_skill::model::{ModelContent, ModelReply};
use serde_json::Value;

/// Reads the first choice of an answer.
///
/// # Errors
/// [`ModelCallError`] when the answer reports an error or has no choice.
pub(crate) fn reply(response: &Value, quirks: &OpenAiQuirks) -> Result<ModelReply, ModelCallError> {
    if response.get("error").is_some_and(|error| !error.is_null()) {
        return Err(reported(response));
    }
    let choice = elements(response, "choices").first();
    let choice = choice.ok_or(ModelCallError::Form("no choice"))?;
    let message = choice.get("message").filter(|message| message.is_object());
    let message = message.ok_or(ModelCallError::Form("no message"))?;
    let mut stream = ChatStream::new(quirks.returned_members.clone());
    let finish = text(choice, "finish_reason").unwrap_or_default();
    stream.whole(response, message, finish)
}

/// The member `content` of a message or a delta: a text, or an array of parts.
pub(super) fn pieces(message: &Value) -> Vec<ModelContent> {
    if let Some(text) = text(message, "content") {
        return vec![ModelContent::Text(text.to_owned())];
    }
    let parts = elements(message, "content").iter();
    let piece = |part: &Value| match text(part, "text") {
        Some(text) if part.get("type") == Some(&Value::from("text")) => {
            ModelContent::Text(text.to_owned())
        }
        _ => ModelContent::Provider(kept::part_block(part)),
    };
    parts.map(piece).collect()
}
