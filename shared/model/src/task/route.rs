//! Why a task has its skill.

use super::is_default;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// The most bytes of an input of a model that a task shows.
const SHOWN: usize = 4 * 1024;

/// Why a task has its skill. A task whose client named the skill other than by a command has no
/// route, and one of an agent with one skill has none unless a pattern read its message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SkillRoute {
    /// The step of the router that decided: `command`, `single`, `media_type`, `schema`,
    /// `example`, `text`, `model`, `refines`, `fallback`, or `answer` of the router's question.
    pub how: String,
    /// The input that a model or a pattern made of the message, until the turn ends. A turn that
    /// runs again gets the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    /// Who wrote the input.
    #[serde(default, skip_serializing_if = "is_default")]
    pub writer: InputWriter,
}

/// Who wrote the input that a skill gets.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum InputWriter {
    /// The caller of the task: a person, or the program that a person uses. Words of the caller
    /// that a pattern takes out of a text are the caller's.
    #[default]
    Caller,
    /// A language model: that of the router, or one that calls the skill as a tool. A confirmation
    /// does not change that.
    Model,
}

impl SkillRoute {
    /// Whether the client chose the skill in its answer to the router's question. Then the skill
    /// gets the messages before it, with what the answer carries beside its words.
    #[must_use]
    pub fn is_answer(&self) -> bool {
        self.how == "answer"
    }

    /// The input as the task shows it for good, if a model wrote it.
    pub(crate) fn model_input(&self) -> Option<Value> {
        let input = self.input.as_ref();
        let input = input.filter(|_| self.writer == InputWriter::Model)?;
        let text = input.to_string();
        if text.len() <= SHOWN {
            return Some(input.clone());
        }
        let sha256 = hex::encode(Sha256::digest(&text));
        let beginning = text.get(..text.floor_char_boundary(SHOWN));
        Some(json!({ "sha256": sha256, "beginning": beginning }))
    }
}
