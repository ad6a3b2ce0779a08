//! Reads the events of a streamed answer.

use super::reply::{block, call_id, is_refusal, stop_reason, texts, usage_of};
use crate::openai::failure::{no_json, reported};
use crate::openai::sse::ServerEvent;
use crate::openai::tool_calls::ToolCallStream;
use crate::openai::values::{arguments_piece, text};
use crate::provider::ModelCallError;
use a2a_lambda_skill::model::Delta;
use serde_json::Value;
use std::collections::{BTreeSet, VecDeque};

/// The state of a streamed answer.
#[derive(Debug, Default)]
pub(crate) struct ResponsesStream {
    calls: ToolCallStream,
    /// The items whose text was streamed.
    text_items: BTreeSet<Option<u64>>,
    is_refused: bool,
}

impl ResponsesStream {
    /// Takes an event. Events that say nothing new are skipped.
    ///
    /// # Errors
    /// [`ModelCallError`] when the event is not JSON, or reports an error.
    pub(crate) fn event(
        &mut self,
        event: &ServerEvent,
        out: &mut VecDeque<Delta>,
    ) -> Result<(), ModelCallError> {
        // Some services end the stream as Chat Completions does.
        if event.data.trim() == "[DONE]" {
            return Ok(());
        }
        let data: Value = serde_json::from_str(&event.data).map_err(no_json)?;
        let index = data.get("output_index").and_then(Value::as_u64);
        let item = data.get("item").unwrap_or(&Value::Null);
        match text(&data, "type").unwrap_or(&event.name) {
            "response.output_text.delta" => self.text(index, &data, out),
            "response.refusal.delta" => {
                self.is_refused = true;
                self.text(index, &data, out);
            }
            "response.output_item.added" => self.added(index, item, out),
            "response.function_call_arguments.delta" => {
                let piece = arguments_piece(data.get("delta"));
                self.calls.add(index, None, None, &piece);
                self.calls.release(out);
            }
            "response.output_item.done" => self.done(index, item, out),
            "response.completed" | "response.incomplete" | "response.failed" => {
                let response = data.get("response").unwrap_or(&Value::Null);
                self.stop(response, out)?;
            }
            "error" => return Err(reported(&data)),
            _ => {}
        }
        Ok(())
    }

    fn text(&mut self, index: Option<u64>, data: &Value, out: &mut VecDeque<Delta>) {
        if let Some(text) = text(data, "delta") {
            self.text_items.insert(index);
            out.push_back(Delta::Text(text.to_owned()));
        }
    }

    fn added(&mut self, index: Option<u64>, item: &Value, out: &mut VecDeque<Delta>) {
        if text(item, "type") == Some("function_call") {
            // The arguments follow, or come with the end of the item.
            self.calls.add(index, call_id(item), text(item, "name"), "");
            self.calls.release(out);
        }
    }

    /// Takes an item that is complete.
    pub(super) fn done(&mut self, index: Option<u64>, item: &Value, out: &mut VecDeque<Delta>) {
        match text(item, "type") {
            Some("function_call") => {
                self.calls.add(index, call_id(item), text(item, "name"), "");
                let arguments = arguments_piece(item.get("arguments"));
                self.calls.close(index, &arguments);
                self.calls.release(out);
            }
            Some("message") => {
                self.is_refused |= is_refusal(item);
                if !self.text_items.contains(&index) {
                    out.extend(texts(item).map(|text| Delta::Text(text.to_owned())));
                }
            }
            _ => out.push_back(Delta::Provider(block(item))),
        }
    }

    /// Takes the end of the answer.
    pub(super) fn stop(
        &mut self,
        response: &Value,
        out: &mut VecDeque<Delta>,
    ) -> Result<(), ModelCallError> {
        let stop = stop_reason(response, self.calls.any(), self.is_refused)?;
        self.calls.close_all(out)?;
        let usage = usage_of(response);
        out.push_back(Delta::Stop { stop, usage });
        Ok(())
    }
}
