//! Why a task has its skill.

use serde::{Deserialize, Serialize};
use serde_json::Value;

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
}

impl SkillRoute {
    /// Whether the client chose the skill in its answer to the router's question. Then the skill
    /// gets the messages before it, with what the answer carries beside its words.
    #[must_use]
    pub fn is_answer(&self) -> bool {
        self.how == "answer"
    }
}
