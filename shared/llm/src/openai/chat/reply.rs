//! Reads a whole answer.

use super::{kept, stop_reason};
use crate::openai::failure::{ErrorReport, ModelCallError};
use crate::openai::quirks::OpenAiQuirks;
use crate::openai::tool_calls::id_or_place;
use crate::openai::values::{arguments, elements, text, usage};
use a2a_lambda_skill::model::{ModelContent, ModelReply};
use serde_json::{Map, Value};

/// Reads the first choice of an answer.
///
/// # Errors
/// [`ModelCallError`] when the answer reports an error or has no choice.
pub(crate) fn reply(response: &Value, quirks: &OpenAiQuirks) -> Result<ModelReply, ModelCallError> {
    if response.get("error").is_some_and(|error| !error.is_null()) {
        return Err(ModelCallError::Reported(ErrorReport::of(response)));
    }
    let choice = elements(response, "choices").first();
    let choice = choice.ok_or(ModelCallError::Form("no choice"))?;
    let message = choice.get("message").filter(|message| message.is_object());
    let message = message.ok_or(ModelCallError::Form("no message"))?;
    let mut content = Vec::new();
    let mut members = Map::new();
    kept::collect(message, &quirks.returned_members, &mut members);
    if !members.is_empty() {
        content.push(ModelContent::Provider(kept::message_block(&members)));
    }
    content.extend(pieces(message));
    let refusal = text(message, "refusal");
    content.extend(refusal.map(|text| ModelContent::Text(text.to_owned())));
    let calls = elements(message, "tool_calls");
    for (index, call) in calls.iter().enumerate() {
        content.push(tool_use(index, call)?);
    }
    let finish = text(choice, "finish_reason").unwrap_or_default();
    Ok(ModelReply {
        content,
        stop: stop_reason(finish, !calls.is_empty(), refusal.is_some()),
        usage: usage(response, "prompt_tokens", "completion_tokens").unwrap_or_default(),
    })
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

fn tool_use(index: usize, call: &Value) -> Result<ModelContent, ModelCallError> {
    let function = call.get("function").unwrap_or(&Value::Null);
    let name = text(function, "name");
    let name = name.ok_or(ModelCallError::Form("a tool call without a name"))?;
    Ok(ModelContent::ToolUse {
        id: id_or_place(text(call, "id").unwrap_or_default(), index),
        name: name.to_owned(),
        input: arguments(function.get("arguments")),
    })
}
