//! Answers of Converse and `ConverseStream`.

use super::kept::Reasoning;
use crate::provider::{ModelCallError, ReplyDecoder};
use a2a_lambda_skill::AgentError;
use a2a_lambda_skill::model::{Delta, StopReason, Usage};
use aws_sdk_bedrockruntime::operation::converse::ConverseOutput;
use aws_sdk_bedrockruntime::types::{
    ContentBlock, ContentBlockDelta, ContentBlockStart, ConverseOutput as Output,
    ConverseStreamOutput, ReasoningContentBlock, ReasoningContentBlockDelta, StopReason as Reason,
    TokenUsage,
};
use aws_smithy_json::serialize::JsonValueWriter;
use std::collections::VecDeque;

/// The most bytes of an answer, as the JSON of its deltas.
const BYTES: usize = 16 * 1024 * 1024;

/// What arrives of an answer.
#[derive(Debug)]
pub(super) enum ConverseEvent {
    /// All of it, from Converse.
    Whole(ConverseOutput),
    /// An event of `ConverseStream`.
    Piece(ConverseStreamOutput),
}

/// What has arrived of an answer.
#[derive(Debug, Default)]
pub(super) struct ConverseDecoder {
    reasoning: Reasoning,
    stop: Option<StopReason>,
    bytes: usize,
}

impl ReplyDecoder<ConverseEvent> for ConverseDecoder {
    fn event(
        &mut self,
        event: ConverseEvent,
        out: &mut VecDeque<Delta>,
    ) -> Result<(), ModelCallError> {
        match event {
            ConverseEvent::Whole(output) => self.take_output(output, out)?,
            ConverseEvent::Piece(event) => self.take_event(event, out)?,
        }
        let texts = out.iter().map(serde_json::to_string);
        self.bytes += texts.flatten().map(|text| text.len()).sum::<usize>();
        if self.bytes > BYTES {
            return Err(ModelCallError::TooLong(BYTES));
        }
        Ok(())
    }

    /// A service may send no tokens after the end of the message.
    fn end(&mut self, out: &mut VecDeque<Delta>) -> Result<(), ModelCallError> {
        let stop = self.stop.take().ok_or(ModelCallError::Cut)?;
        let usage = Usage::default();
        out.push_back(Delta::Stop { stop, usage });
        Ok(())
    }
}

impl ConverseDecoder {
    fn take_output(
        &mut self,
        output: ConverseOutput,
        out: &mut VecDeque<Delta>,
    ) -> Result<(), ModelCallError> {
        let Some(Output::Message(message)) = output.output else {
            return Err(ModelCallError::Form("no message"));
        };
        for block in message.content {
            match block {
                ContentBlock::Text(text) => out.push_back(Delta::Text(text)),
                ContentBlock::ToolUse(used) => {
                    let (id, name) = (used.tool_use_id, used.name);
                    let mut input = String::new();
                    JsonValueWriter::new(&mut input).document(&used.input);
                    out.extend([Delta::ToolUse { id, name }, Delta::ToolInput(input)]);
                }
                ContentBlock::ReasoningContent(ReasoningContentBlock::ReasoningText(block)) => {
                    self.reasoning.text = block.text;
                    self.reasoning.signature = block.signature.unwrap_or_default();
                }
                ContentBlock::ReasoningContent(ReasoningContentBlock::RedactedContent(bytes)) => {
                    self.reasoning.redacted_content = bytes.into_inner();
                }
                // Nothing here asks for citations, images or sound.
                _ => {}
            }
            self.release_reasoning(out);
        }
        let (stop, usage) = (stop(&output.stop_reason)?, usage(output.usage.as_ref()));
        out.push_back(Delta::Stop { stop, usage });
        Ok(())
    }

    fn take_event(
        &mut self,
        event: ConverseStreamOutput,
        out: &mut VecDeque<Delta>,
    ) -> Result<(), ModelCallError> {
        match event {
            ConverseStreamOutput::ContentBlockStart(event) => {
                if let Some(ContentBlockStart::ToolUse(used)) = event.start {
                    let (id, name) = (used.tool_use_id, used.name);
                    out.push_back(Delta::ToolUse { id, name });
                }
            }
            ConverseStreamOutput::ContentBlockDelta(event) => match event.delta {
                Some(ContentBlockDelta::Text(text)) => out.push_back(Delta::Text(text)),
                Some(ContentBlockDelta::ToolUse(piece)) => {
                    out.push_back(Delta::ToolInput(piece.input));
                }
                Some(ContentBlockDelta::ReasoningContent(piece)) => self.take_reasoning(&piece),
                _ => {}
            },
            ConverseStreamOutput::ContentBlockStop(_) => self.release_reasoning(out),
            ConverseStreamOutput::MessageStop(event) => {
                self.stop = Some(stop(&event.stop_reason)?);
            }
            // The last event of a stream: its tokens.
            ConverseStreamOutput::Metadata(event) => {
                if let Some(stop) = self.stop.take() {
                    let usage = usage(event.usage.as_ref());
                    out.push_back(Delta::Stop { stop, usage });
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn take_reasoning(&mut self, piece: &ReasoningContentBlockDelta) {
        let reasoning = &mut self.reasoning;
        match piece {
            ReasoningContentBlockDelta::Text(text) => reasoning.text.push_str(text),
            ReasoningContentBlockDelta::Signature(text) => reasoning.signature.push_str(text),
            ReasoningContentBlockDelta::RedactedContent(bytes) => {
                reasoning.redacted_content.extend_from_slice(bytes.as_ref());
            }
            _ => {}
        }
    }

    /// Emits the reasoning of a block that has ended.
    fn release_reasoning(&mut self, out: &mut VecDeque<Delta>) {
        let block = std::mem::take(&mut self.reasoning).into_block();
        out.extend(block.map(Delta::Provider));
    }
}

fn stop(reason: &Reason) -> Result<StopReason, ModelCallError> {
    Ok(match reason {
        Reason::EndTurn | Reason::StopSequence => StopReason::EndTurn,
        Reason::ToolUse => StopReason::ToolUse,
        Reason::MaxTokens => StopReason::MaxTokens,
        Reason::GuardrailIntervened | Reason::ContentFiltered => StopReason::Filtered,
        Reason::ModelContextWindowExceeded => {
            let text = "the context window is exceeded".to_owned();
            let error = AgentError::context_length_exceeded;
            return Err(ModelCallError::Service { error, text });
        }
        _ => StopReason::Other,
    })
}

fn usage(usage: Option<&TokenUsage>) -> Usage {
    let tokens = |count: i32| u64::try_from(count).unwrap_or(0);
    usage.map_or_else(Usage::default, |usage| {
        let cache = |count: Option<i32>| tokens(count.unwrap_or_default());
        let cached_tokens = cache(usage.cache_read_input_tokens);
        let cache_tokens = cached_tokens.saturating_add(cache(usage.cache_write_input_tokens));
        Usage {
            // Bedrock counts only those that it neither reads from its cache nor writes there.
            input_tokens: tokens(usage.input_tokens).saturating_add(cache_tokens),
            output_tokens: tokens(usage.output_tokens),
            cached_tokens,
        }
    })
}
