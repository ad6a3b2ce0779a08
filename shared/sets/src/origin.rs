//! Where a stored text comes from: its author, who wrote it, and its task.

use a2a_lambda::skill::{InputWriter, TaskContext};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Who wrote a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum WrittenBy {
    /// The author, or the program of the author.
    Person,
    /// A language model in a call of the author.
    Model,
}

impl WrittenBy {
    /// Who writes in a turn.
    pub(crate) const fn in_turn(cx: &TaskContext<'_>) -> Self {
        match cx.writer() {
            InputWriter::Caller => Self::Person,
            InputWriter::Model => Self::Model,
        }
    }
}

display_serialized!(WrittenBy);

/// Where a text comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Origin {
    /// The subject whose call stored it.
    pub(crate) author: String,
    /// Whether a person or a model wrote it.
    pub(crate) via: WrittenBy,
    /// The task that stored it.
    pub(crate) task: String,
}

impl Origin {
    /// The origin of what a turn stores.
    pub(crate) fn in_turn(cx: &TaskContext<'_>) -> Self {
        Self {
            author: cx.caller().owner.subject.as_str().to_owned(),
            via: WrittenBy::in_turn(cx),
            task: cx.task_id().as_str().to_owned(),
        }
    }
}
