//! Reads an answer, which is whole or in events.

use super::ITEM;
use crate::openai::failure::reported_error;
use crate::openai::sse::{ServerEvent, WHOLE};
use crate::openai::tool_calls::ToolCallStream;
use crate::openai::values::{arguments_piece, elements, text, usage};
use crate::provider::{ModelCallError, ReplyDecoder};
use a2a_lambda_skill::model::{Delta, StopReason};
use serde_json::{Value, json};
use std::collections::{BTreeSet, VecDeque};

/// What has arrived of an answer.
#[derive(Debug, Default)]
pub(crate) struct ResponsesDecoder {
    calls: ToolCallStream,
    /// The items whose text was streamed.
    text_items: BTreeSet<Option<u64>>,
    is_refused: bool,
}

impl ReplyDecoder<ServerEvent> for ResponsesDecoder {
    /// Takes an event, or a whole answer. Events that say nothing new are skipped.
    fn event(
        &mut self,
        (name, data): ServerEvent,
        out: &mut VecDeque<Delta>,
    ) -> Result<(), ModelCallError> {
        let index = data.get("output_index").and_then(Value::as_u64);
        let item = data.get("item").unwrap_or(&Value::Null);
        let kind = text(&data, "type").filter(|_| name != WHOLE);
        match kind.unwrap_or(&name) {
            "response.output_text.delta" => self.text(index, &data, out),
            "response.refusal.delta" => {
                self.is_refused = true;
                self.text(index, &data, out);
            }
            // The arguments follow, or come with the end of the item.
            "response.output_item.added" if text(item, "type") == Some("function_call") => {
                self.call(index, item, out);
            }
            "response.function_call_arguments.delta" => {
                let piece = arguments_piece(data.get("delta"));
                self.calls.add(index, None, None, &piece, out);
            }
            "response.output_item.done" => self.item(index, item, out),
            "response.completed" | "response.incomplete" | "response.failed" => {
                self.stop(data.get("response").unwrap_or(&Value::Null), out)?;
            }
            WHOLE => {
                for (item, index) in elements(&data, "output").iter().zip(0..) {
                    self.item(Some(index), item, out);
                }
                self.stop(&data, out)?;
            }
            "error" => return Err(reported_error(&data)),
            _ => {}
        }
        Ok(())
    }
}

impl ResponsesDecoder {
    fn text(&mut self, index: Option<u64>, data: &Value, out: &mut VecDeque<Delta>) {
        if let Some(text) = text(data, "delta") {
            self.text_items.insert(index);
            out.push_back(Delta::Text(text.to_owned()));
        }
    }

    /// Takes the name of a call, and the id that its result names.
    fn call(&mut self, index: Option<u64>, item: &Value, out: &mut VecDeque<Delta>) {
        let id = text(item, "call_id").or_else(|| text(item, "id"));
        self.calls.add(index, id, text(item, "name"), "", out);
    }

    /// Takes an item that is complete.
    fn item(&mut self, index: Option<u64>, item: &Value, out: &mut VecDeque<Delta>) {
        match text(item, "type") {
            Some("function_call") => {
                self.call(index, item, out);
                let arguments = arguments_piece(item.get("arguments"));
                self.calls.close(index, &arguments, out);
            }
            Some("message") => {
                let parts = elements(item, "content");
                let is_refusal = |part: &Value| text(part, "type") == Some("refusal");
                self.is_refused |= parts.iter().any(is_refusal);
                if !self.text_items.contains(&index) {
                    let text = |part| text(part, "text").or_else(|| text(part, "refusal"));
                    let texts = parts.iter().filter_map(text);
                    out.extend(texts.map(|text| Delta::Text(text.to_owned())));
                }
            }
            _ => out.push_back(Delta::Provider(json!({ ITEM: item }))),
        }
    }

    /// Takes the end of the answer.
    fn stop(&mut self, response: &Value, out: &mut VecDeque<Delta>) -> Result<(), ModelCallError> {
        let stop = self.stop_reason(response)?;
        self.calls.close_all(out)?;
        let usage = usage(response, "input_tokens", "output_tokens").unwrap_or_default();
        out.push_back(Delta::Stop { stop, usage });
        Ok(())
    }

    /// The stop reason of an answer.
    ///
    /// # Errors
    /// [`ModelCallError`] when the answer reports an error, or is not finished.
    fn stop_reason(&self, response: &Value) -> Result<StopReason, ModelCallError> {
        let why = response.pointer("/incomplete_details/reason");
        match text(response, "status") {
            Some("completed") if self.is_refused => Ok(StopReason::Filtered),
            Some("completed") if self.calls.any() => Ok(StopReason::ToolUse),
            Some("completed") => Ok(StopReason::EndTurn),
            Some("incomplete") => Ok(match why.and_then(Value::as_str) {
                Some("max_output_tokens") => StopReason::MaxTokens,
                Some("content_filter") => StopReason::Filtered,
                _ => StopReason::Other,
            }),
            _ if response.get("error").is_some_and(|error| !error.is_null()) => {
                Err(reported_error(response))
            }
            _ => Err(ModelCallError::Form("a status that is not final")),
        }
    }
}
