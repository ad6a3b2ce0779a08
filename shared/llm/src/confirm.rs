//! Tools that run only after the user has confirmed them.

use super::conversation::{Approval, Conversation, ToolCall};
use a2a_lambda_model::task::metadata_keys::CONFIRM;
use a2a_lambda_model::task::{Part, PartContent};
use a2a_lambda_skill::{AgentError, AgentResult, Content, consent, digest, is_invisible};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::iter;

/// How many characters of a long text a question shows: of its begin, and of its end.
const BEGIN: usize = 768;
const END: usize = 256;

const QUESTION: &str = "May the agent do this? Answer yes or no.";
const OTHER_DIGEST: &str =
    "The answer has the digest of another question, so it confirmed nothing.\n";

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
    /// The question for the user, with each tool and every member of its arguments. A long text is
    /// cut alone, and invisible characters are escaped. The metadata of its part has the digest of
    /// the calls as `a2a-lambda/confirm`.
    pub question: Content,
    /// What the worker continues with. It belongs into the slot of the skill.
    pub slot: LlmSlot,
}

/// A worker that waits for its user.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LlmSlot(pub(super) Conversation);

impl LlmConfirm {
    /// The question about the open calls of `conversation` that the user `confirms`.
    pub(super) fn of(
        conversation: Conversation,
        confirms: impl Fn(&ToolCall) -> bool,
    ) -> AgentResult<Self> {
        let mut calls = conversation.open_calls();
        calls.retain(confirms);
        let mut text = QUESTION.to_owned();
        for call in &calls {
            text.push_str("\n- ");
            show(&mut text, &readable_name(&call.name), &call.input, 1);
        }
        let mut part = Part::text(text);
        let digest = digest(CONFIRM, &calls).map_err(AgentError::serialization)?;
        part.metadata.insert(CONFIRM.to_owned(), digest.into());
        Ok(Self {
            question: Content::from_parts(vec![part]),
            slot: LlmSlot(conversation),
        })
    }

    /// Whether `answer` is about this question: it repeats its digest, or has none.
    pub(super) fn is_answered_by(&self, answer: &Content) -> bool {
        let digest = answer.confirmation();
        digest.is_none() || digest == self.question.confirmation()
    }

    /// The same question, after an answer with another digest.
    pub(super) fn again(self) -> Self {
        let mut parts = self.question.into_parts();
        for part in &mut parts {
            if let PartContent::Text(text) = &mut part.content {
                text.insert_str(0, OTHER_DIGEST);
            }
        }
        Self {
            question: Content::from_parts(parts),
            slot: self.slot,
        }
    }
}

/// Adds `name` and the value, and each member of the value on a line of its own.
fn show(text: &mut String, name: &str, value: &Value, depth: usize) {
    text.push_str(name);
    let members: Vec<(String, &Value)> = match value {
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| (readable_name(name), value))
            .collect(),
        Value::Array(values) => (1..)
            .zip(values)
            .map(|(number, value): (u64, _)| (format!("[{number}]"), value))
            .collect(),
        Value::String(value) => return text.push_str(&format!(": {}", readable(value))),
        value => return text.push_str(&format!(": {value}")),
    };
    if members.is_empty() {
        text.push_str(&format!(": {value}"));
    }
    for (name, value) in members {
        text.push('\n');
        text.extend(iter::repeat_n("  ", depth));
        show(text, &name, value, depth + 1);
    }
}

/// The name of a tool or a member. It is quoted if it could be taken for something else.
fn readable_name(name: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    if !name.is_empty() && name.len() <= BEGIN && name.bytes().all(is_plain) {
        return name.to_owned();
    }
    readable(name)
}

/// A text in quotes, without its middle if it is long. What cannot be seen is escaped.
fn readable(text: &str) -> String {
    let count = text.chars().count();
    if count <= BEGIN + END {
        return quoted(text.chars());
    }
    let begin = quoted(text.chars().take(BEGIN));
    let end = quoted(text.chars().skip(count - END));
    format!("{begin} … {end} ({count} characters)")
}

fn quoted(letters: impl Iterator<Item = char>) -> String {
    let mut text = String::from('"');
    for letter in letters {
        match letter {
            '"' | '\\' => text.extend(['\\', letter]),
            '\n' => text.push_str("\\n"),
            letter if is_invisible(letter) => text.extend(letter.escape_unicode()),
            letter => text.push(letter),
        }
    }
    text.push('"');
    text
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
    Ok(match consent(text) {
        Some(true) => Approval::Given,
        _ => Approval::Refused(text.to_owned()),
    })
}
