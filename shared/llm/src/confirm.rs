//! Tools that run only after the user has confirmed them.

use super::conversation::{Conversation, ToolCall};
use super::setup::LlmSetup;
use a2a_lambda_skill::{AgentResult, Consent, ConsentCall, Content, TaskContext};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The end of a worker that has tools to confirm.
#[derive(Debug)]
pub enum LlmOutcome<T> {
    /// The answer.
    Answer(T),
    /// The model wants to run tools that the user has to confirm, and no tool of its newest message
    /// has run. Or the worker needs more tokens.
    Confirm(LlmConfirm),
}

/// A question whether tools may run, or the worker may use more tokens.
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
    /// The question to the user of `conversation`.
    pub(super) fn of(
        cx: &TaskContext<'_>,
        conversation: Conversation,
        setup: &LlmSetup,
    ) -> AgentResult<Self> {
        let calls = calls_to_confirm(&conversation, setup);
        let calls: Vec<_> = calls.iter().map(|call| call.as_consent(setup)).collect();
        Ok(Self {
            question: cx.ask_consent(&calls)?,
            slot: LlmSlot(conversation),
        })
    }
}

/// The consent of the message of this turn to what `conversation` has asked, if it gives one.
pub(super) fn consent(
    cx: &TaskContext<'_>,
    conversation: &Conversation,
    setup: &LlmSetup,
) -> AgentResult<Option<Consent>> {
    let calls = calls_to_confirm(conversation, setup);
    let calls: Vec<_> = calls.iter().map(|call| call.as_consent(setup)).collect();
    cx.consent(&calls)
}

/// What the user is asked: whether the worker may use more tokens, or may call tools.
fn calls_to_confirm(conversation: &Conversation, setup: &LlmSetup) -> Vec<ToolCall> {
    if let Some(call) = conversation.call_for_more(setup) {
        return vec![call];
    }
    let mut calls = conversation.open_calls();
    calls.retain(|call| {
        setup
            .tools
            .iter()
            .any(|it| it.confirm && it.name == call.name)
    });
    calls
}

impl ToolCall {
    fn as_consent<'a>(&'a self, setup: &'a LlmSetup) -> ConsentCall<'a> {
        let tool = setup.tools.iter().find(|it| it.name == self.name);
        ConsentCall {
            skill: &self.name,
            input: &self.input,
            schema: tool.map_or(&Value::Null, |tool| &tool.input.schema),
        }
    }
}
