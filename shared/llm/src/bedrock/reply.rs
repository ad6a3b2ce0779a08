//! Answers of Converse and `ConverseStream`.

use super::document::value;
use super::kept::Reasoning;
use crate::provider::ModelCallError;
use a2a_lambda_skill::AgentError;
use a2a_lambda_skill::model::{Delta, ModelContent, ModelReply, StopReason, Usage};
use aws_sdk_bedrockruntime::operation::converse::ConverseOutput;
use aws_sdk_bedrockruntime::types::{
    ContentBlock, ContentBlockDelta, ContentBlockStart, ConverseOutput as Output,
    ConverseStreamOutput, ReasoningContentBlockDelta, StopReason as Reason, TokenUsage,
};
use std::collections::VecDeque;

/// The answer of Converse.
pub(super) fn reply(output: &ConverseOutput) -> Result<ModelReply, ModelCallError> {
    let Some(Output::Message(message)) = output.output() else {
        return Err(ModelCallError::Form("no message"));
    };
    let content = message.content().iter().filter_map(content);
    Ok(ModelReply {
        content: content.collect(),
        stop: stop(output.stop_reason())?,
        usage: usage(output.usage()),
    })
}

fn content(block: &ContentBlock) -> Option<ModelContent> {
    match block {
        ContentBlock::Text(text) => Some(ModelContent::Text(text.clone())),
        ContentBlock::ToolUse(used) => Some(ModelContent::ToolUse {
            id: used.tool_use_id.clone(),
            name: used.name.clone(),
            input: value(&used.input),
        }),
        ContentBlock::ReasoningContent(block) => Reasoning::of(block)
            .into_block()
            .map(ModelContent::Provider),
        // Nothing here asks for citations, images or sound.
        _ => None,
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

/// The answer of `ConverseStream`, as far as it has arrived.
#[derive(Debug, Default)]
pub(super) struct ConverseEvents {
    reasoning: Reasoning,
    stop: Option<StopReason>,
}

impl ConverseEvents {
    /// Adds what an event says.
    pub(super) fn event(
        &mut self,
        event: &ConverseStreamOutput,
        out: &mut VecDeque<Delta>,
    ) -> Result<(), ModelCallError> {
        match event {
            ConverseStreamOutput::ContentBlockStart(start) => {
                if let Some(ContentBlockStart::ToolUse(used)) = start.start() {
                    out.push_back(Delta::ToolUse {
                        id: used.tool_use_id.clone(),
                        name: used.name.clone(),
                    });
                }
            }
            ConverseStreamOutput::ContentBlockDelta(event) => match event.delta() {
                Some(ContentBlockDelta::Text(text)) => out.push_back(Delta::Text(text.clone())),
                Some(ContentBlockDelta::ToolUse(piece)) => {
                    out.push_back(Delta::ToolInput(piece.input.clone()));
                }
                Some(ContentBlockDelta::ReasoningContent(piece)) => self.reasons(piece),
                _ => {}
            },
            ConverseStreamOutput::ContentBlockStop(_) => {
                let block = std::mem::take(&mut self.reasoning).into_block();
                out.extend(block.map(Delta::Provider));
            }
            ConverseStreamOutput::MessageStop(event) => {
                self.stop = Some(stop(event.stop_reason())?);
            }
            // The last event of a stream: its tokens.
            ConverseStreamOutput::Metadata(metadata) => {
                if let Some(stop) = self.stop.take() {
                    let usage = usage(metadata.usage());
                    out.push_back(Delta::Stop { stop, usage });
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn reasons(&mut self, piece: &ReasoningContentBlockDelta) {
        match piece {
            ReasoningContentBlockDelta::Text(text) => self.reasoning.text.push_str(text),
            ReasoningContentBlockDelta::Signature(text) => self.reasoning.signature.push_str(text),
            ReasoningContentBlockDelta::RedactedContent(bytes) => {
                self.reasoning
                    .redacted_content
                    .extend_from_slice(bytes.as_ref());
            }
            _ => {}
        }
    }

    /// The end of the stream. A service may send no tokens after the end of the message.
    pub(super) fn end(&mut self, out: &mut VecDeque<Delta>) -> Result<(), ModelCallError> {
        let stop = self.stop.take().ok_or(ModelCallError::Cut)?;
        let usage = Usage::default();
        out.push_back(Delta::Stop { stop, usage });
        Ok(())
    }
}
