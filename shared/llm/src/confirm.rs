//! Tools that run only after the user has confirmed them.

use super::conversation::{Approval, Conversation, ToolCall};
use a2a_lambda_skill::{AgentResult, Content};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The longest arguments in a question, in bytes.
const SHOWN: usize = 4096;

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
    /// The question for the user, with each tool and its arguments.
    pub question: String,
    /// What the worker continues with. It belongs into the slot of the skill.
    pub slot: LlmSlot,
}

/// A worker that waits for its user.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LlmSlot(pub(super) Conversation);

impl LlmConfirm {
    pub(super) fn of(conversation: Conversation, confirms: impl Fn(&ToolCall) -> bool) -> Self {
        let mut question = "May the agent do this? Answer yes or no.".to_owned();
        for call in conversation
            .open_calls()
            .iter()
            .filter(|call| confirms(call))
        {
            let input = call.input.to_string();
            let text = match input.char_indices().find(|(at, _)| *at >= SHOWN) {
                Some((at, _)) => format!("{}… ({} bytes)", input.split_at(at).0, input.len()),
                None => input,
            };
            question.push_str(&format!("\n- {} {text}", call.name));
        }
        Self {
            question,
            slot: LlmSlot(conversation),
        }
    }
}

/// Reads the user's answer: `yes` or `true` in any form is a confirmation, everything else is
/// not.
pub(super) fn approval(answer: &Content) -> AgentResult<Approval> {
    if let Some(data) = answer.first_data() {
        return Ok(match data {
            Value::Bool(true) => Approval::Given,
            data if data.get("confirm") == Some(&Value::Bool(true)) => Approval::Given,
            data => Approval::Refused(data.to_string()),
        });
    }
    let text = answer.text()?;
    let word = text.trim().trim_end_matches(['.', '!']).to_lowercase();
    Ok(match word.as_str() {
        "yes" | "y" | "true" | "ok" | "okay" | "confirm" => Approval::Given,
        _ => Approval::Refused(text.to_owned()),
    })
}
