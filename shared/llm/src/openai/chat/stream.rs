//! Reads the chunks of a streamed answer.

use super::{kept, reply::pieces, stop_reason};
use crate::openai::failure::{no_json, reported};
use crate::openai::tool_calls::ToolCallStream;
use crate::openai::values::{arguments_piece, elements, text, usage};
use crate::provider::ModelCallError;
use a2a_lambda_skill::Collected;
use a2a_lambda_skill::model::{Delta, ModelContent, ModelReply, Usage};
use serde_json::{Map, Value};
use std::collections::VecDeque;

/// The state of a streamed answer.
#[derive(Debug)]
pub(crate) struct ChatStream {
    /// The members of a message that return to the service.
    returned_members: Vec<String>,
    /// Those that were not emitted yet.
    members: Map<String, Value>,
    calls: ToolCallStream,
    finish: Option<String>,
    is_refused: bool,
    usage: Usage,
}

impl ChatStream {
    pub(crate) fn new(returned_members: Vec<String>) -> Self {
        Self {
            returned_members,
            members: Map::new(),
            calls: ToolCallStream::default(),
            finish: None,
            is_refused: false,
            usage: Usage::default(),
        }
    }

    /// Takes the data of an event.
    ///
    /// # Errors
    /// [`ModelCallError`] when the event is not JSON, reports an error, or ends the stream too
    /// early.
    pub(crate) fn event(
        &mut self,
        data: &str,
        out: &mut VecDeque<Delta>,
    ) -> Result<(), ModelCallError> {
        if data.trim() == "[DONE]" {
            return self.end(out);
        }
        let chunk: Value = serde_json::from_str(data).map_err(no_json)?;
        if chunk.get("error").is_some_and(|error| !error.is_null()) {
            return Err(reported(&chunk));
        }
        // The usage comes in the last chunk, which usually has no choice.
        self.count(&chunk);
        let is_first = |choice: &&Value| {
            let index = choice.get("index").and_then(Value::as_u64);
            index.unwrap_or_default() == 0
        };
        if let Some(choice) = elements(&chunk, "choices").iter().find(is_first) {
            self.delta(
                choice.get("delta").unwrap_or(&Value::Null),
                out,
                |call, _| call.get("index").and_then(Value::as_u64),
            );
            let finish = text(choice, "finish_reason").map(str::to_owned);
            self.finish = finish.or_else(|| self.finish.take());
        }
        Ok(())
    }

    /// Takes a message that is not streamed.
    ///
    /// # Errors
    /// [`ModelCallError::Form`] when a tool call has no name.
    pub(super) fn whole(
        &mut self,
        response: &Value,
        message: &Value,
        finish: &str,
    ) -> Result<ModelReply, ModelCallError> {
        let mut out = VecDeque::new();
        self.count(response);
        self.delta(message, &mut out, |_, index| Some(index));
        self.finish = Some(finish.to_owned());
        self.end(&mut out)?;
        Collected::whole(out).ok_or(ModelCallError::Cut)
    }

    fn count(&mut self, response: &Value) {
        if let Some(usage) = usage(response, "prompt_tokens", "completion_tokens") {
            self.usage = usage;
        }
    }

    /// Takes a piece of a message. `index_of` tells its tool calls apart.
    fn delta(
        &mut self,
        delta: &Value,
        out: &mut VecDeque<Delta>,
        index_of: fn(&Value, u64) -> Option<u64>,
    ) {
        kept::collect(delta, &self.returned_members, &mut self.members);
        for piece in pieces(delta) {
            self.release_members(out);
            match piece {
                ModelContent::Text(text) => out.push_back(Delta::Text(text)),
                ModelContent::Provider(block) => out.push_back(Delta::Provider(block)),
                // `pieces` makes none.
                ModelContent::ToolUse { .. } => {}
            }
        }
        if let Some(text) = text(delta, "refusal") {
            self.is_refused = true;
            self.release_members(out);
            out.push_back(Delta::Text(text.to_owned()));
        }
        for (call, position) in elements(delta, "tool_calls").iter().zip(0..) {
            self.release_members(out);
            let function = call.get("function").unwrap_or(&Value::Null);
            let index = index_of(call, position);
            let arguments = arguments_piece(function.get("arguments"));
            let (id, name) = (text(call, "id"), text(function, "name"));
            self.calls.add(index, id, name, &arguments);
        }
        self.calls.release(out);
    }

    /// Emits the collected members as a block. They precede what follows them in the stream.
    fn release_members(&mut self, out: &mut VecDeque<Delta>) {
        let members = std::mem::take(&mut self.members);
        if !members.is_empty() {
            out.push_back(Delta::Provider(kept::message_block(&members)));
        }
    }

    /// Takes the end of the stream. Some services leave `[DONE]` out: the answer is complete
    /// once it has a `finish_reason`.
    ///
    /// # Errors
    /// [`ModelCallError::Cut`] when the answer is not complete.
    pub(crate) fn end(&mut self, out: &mut VecDeque<Delta>) -> Result<(), ModelCallError> {
        let finish = self.finish.take().ok_or(ModelCallError::Cut)?;
        self.release_members(out);
        self.calls.close_all(out)?;
        out.push_back(Delta::Stop {
            stop: stop_reason(&finish, self.calls.any(), self.is_refused),
            usage: self.usage,
        });
        Ok(())
    }
}
