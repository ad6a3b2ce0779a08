//! Tools that run only after the user has confirmed them.

use super::conversation::{Conversation, ToolCall};
use super::tool::OfferedTool;
use a2a_lambda_skill::{AgentResult, Consent, ConsentCall, Content, TaskContext};
use serde::{Deserialize, Serialize};

/// The end of a worker that has tools to confirm.
#[derive(Debug)]
pub enum LlmOutcome<T> {
    /// The answer.
    Answer(T),
    /// The model wants to run tools that the user has to confirm. No tool of its newest message
    /// has run.
    Confirm(LlmConfirm),
}

/// A question whether tools may run.
#[derive(Debug, Clone, PartialEq)]
pub struct LlmConfirm {
    /// The question for the user, which the skill sends as it is. Its text shows each tool and every
    /// member of its arguments, with invisible characters escaped, and begins with how much of long
    /// texts it leaves out. Its data has all of them. The metadata of the text has the digest of the
    /// question as `a2a-lambda/confirm`.
    pub question: Content,
    /// What the worker continues with. It belongs into the slot of the skill.
    pub slot: LlmSlot,
}

/// A worker that waits for its user.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LlmSlot(pub(super) Conversation);

impl LlmConfirm {
    /// The question about the open calls of `conversation` that the user confirms.
    pub(super) fn of(
        cx: &TaskContext<'_>,
        conversation: Conversation,
        tools: &[OfferedTool],
    ) -> AgentResult<Self> {
        let calls = conversation.open_calls();
        Ok(Self {
            question: cx.ask_consent(&to_confirm(&calls, tools))?,
            slot: LlmSlot(conversation),
        })
    }
}

/// The consent of the message of this turn to the open calls of `conversation`, if it gives one.
pub(super) fn consent(
    cx: &TaskContext<'_>,
    conversation: &Conversation,
    tools: &[OfferedTool],
) -> AgentResult<Option<Consent>> {
    cx.consent(&to_confirm(&conversation.open_calls(), tools))
}

fn to_confirm<'a>(calls: &'a [ToolCall], tools: &'a [OfferedTool]) -> Vec<ConsentCall<'a>> {
    let tool = |call: &ToolCall| tools.iter().find(|it| it.confirm && it.name == call.name);
    let calls = calls.iter().filter_map(|call| {
        Some(ConsentCall {
            skill: &call.name,
            input: &call.input,
            schema: &tool(call)?.input.schema,
        })
    });
    calls.collect()
}
