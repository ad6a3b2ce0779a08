//! Reads an answer, which is whole or in chunks.

use super::kept;
use crate::openai::failure::reported_error;
use crate::openai::quirks::OpenAiQuirks;
use crate::openai::sse::{ServerEvent, WHOLE};
use crate::openai::tool_calls::ToolCallStream;
use crate::openai::values::{arguments_piece, elements, text, usage};
use crate::provider::{ModelCallError, ReplyDecoder};
use a2a_lambda_skill::model::{Delta, StopReason, Usage};
use serde_json::{Map, Value, json};
use std::collections::VecDeque;

/// What has arrived of an answer.
#[derive(Debug, Default)]
pub(crate) struct ChatDecoder {
    /// The members of a message that return to the service.
    returned_members: Vec<String>,
    /// Those that were not emitted yet.
    members: Map<String, Value>,
    calls: ToolCallStream,
    finish: Option<String>,
    is_refused: bool,
    usage: Usage,
}

impl ReplyDecoder<ServerEvent> for ChatDecoder {
    /// Takes a chunk, or a whole answer.
    fn event(
        &mut self,
        (name, chunk): ServerEvent,
        out: &mut VecDeque<Delta>,
    ) -> Result<(), ModelCallError> {
        if chunk.get("error").is_some_and(|error| !error.is_null()) {
            return Err(reported_error(&chunk));
        }
        // The usage of a stream comes in its last chunk, which usually has no choice.
        if let Some(usage) = usage(&chunk, "prompt_tokens", "completion_tokens") {
            self.usage = usage;
        }
        let is_first = |choice: &&Value| {
            let index = choice.get("index").and_then(Value::as_u64);
            index.unwrap_or_default() == 0
        };
        let choices = elements(&chunk, "choices");
        let is_whole = name == WHOLE;
        let (choice, delta) = if is_whole {
            let choice = choices.first().ok_or(ModelCallError::Form("no choice"))?;
            // Some services also send an empty `delta` there.
            let message = choice.get("message").filter(|it| it.is_object());
            (choice, message.ok_or(ModelCallError::Form("no message"))?)
        } else if let Some(choice) = choices.iter().find(is_first) {
            (choice, choice.get("delta").unwrap_or(&Value::Null))
        } else {
            return Ok(());
        };
        self.delta(delta, is_whole, out);
        let finish = text(choice, "finish_reason").or(is_whole.then_some(""));
        self.finish = finish.map(str::to_owned).or_else(|| self.finish.take());
        Ok(())
    }

    /// Some services leave `[DONE]` out: the answer is complete once it has a `finish_reason`.
    fn end(&mut self, out: &mut VecDeque<Delta>) -> Result<(), ModelCallError> {
        let finish = self.finish.take().ok_or(ModelCallError::Cut)?;
        self.release_members(out);
        self.calls.close_all(out)?;
        let stop = self.stop_reason(&finish);
        let usage = self.usage;
        out.push_back(Delta::Stop { stop, usage });
        Ok(())
    }
}

impl ChatDecoder {
    pub(crate) fn new(quirks: &OpenAiQuirks) -> Self {
        Self {
            returned_members: quirks.returned_members.clone(),
            ..Self::default()
        }
    }

    /// Takes a message, or a piece of one.
    fn delta(&mut self, delta: &Value, is_whole: bool, out: &mut VecDeque<Delta>) {
        kept::collect(delta, &self.returned_members, &mut self.members);
        let mut pieces = pieces(delta);
        if let Some(text) = text(delta, "refusal") {
            self.is_refused = true;
            pieces.push(Delta::Text(text.to_owned()));
        }
        let calls = elements(delta, "tool_calls");
        if !pieces.is_empty() || !calls.is_empty() {
            self.release_members(out);
        }
        out.extend(pieces);
        for (call, position) in calls.iter().zip(0..) {
            let function = call.get("function").unwrap_or(&Value::Null);
            // The calls of a whole message differ by their positions.
            let index = call.get("index").and_then(Value::as_u64);
            let index = if is_whole { Some(position) } else { index };
            let arguments = arguments_piece(function.get("arguments"));
            let (id, name) = (text(call, "id"), text(function, "name"));
            self.calls.add(index, id, name, &arguments, out);
        }
    }

    /// Emits the collected members as a block. They precede what follows them in the stream.
    fn release_members(&mut self, out: &mut VecDeque<Delta>) {
        let members = std::mem::take(&mut self.members);
        if !members.is_empty() {
            out.push_back(Delta::Provider(json!({ kept::MESSAGE: members })));
        }
    }

    /// The stop reason of `finish_reason`.
    ///
    /// A forced call ends with `stop`, and a refusal too. Whether the model waits for tools
    /// depends on its calls alone.
    fn stop_reason(&self, finish: &str) -> StopReason {
        match finish {
            "content_filter" => StopReason::Filtered,
            _ if self.is_refused => StopReason::Filtered,
            "length" => StopReason::MaxTokens,
            "stop" | "tool_calls" if self.calls.any() => StopReason::ToolUse,
            "stop" | "tool_calls" => StopReason::EndTurn,
            _ => StopReason::Other,
        }
    }
}

/// The member `content` of a message or a delta: a text, or an array of parts.
fn pieces(message: &Value) -> Vec<Delta> {
    if let Some(text) = text(message, "content") {
        return vec![Delta::Text(text.to_owned())];
    }
    let parts = elements(message, "content").iter();
    let piece = |part: &Value| match text(part, "text") {
        Some(piece) if text(part, "type") == Some("text") => Delta::Text(piece.to_owned()),
        _ => Delta::Provider(json!({ kept::PART: part })),
    };
    parts.map(piece).collect()
}
