//! What an agent publishes about itself and its skills.

use crate::skill::SkillMetadata;
use serde::Serialize;
use serde_json::Value;

/// What an agent publishes about itself.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentManifest {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// What it does.
    pub description: String,
    /// The instructions for a model that picks a skill.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dispatcher_prompt: Option<String>,
    /// The description of the agent in the extended card.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extended_description: Option<String>,
    /// The skills, in the order in which they were added.
    pub skills: Vec<SkillManifest>,
}

/// What an agent publishes about a skill.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SkillManifest {
    /// The metadata, with name and modes filled in.
    #[serde(flatten)]
    pub metadata: SkillMetadata,
    /// The id of the set the skill belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub set: Option<String>,
    /// The JSON schema of the data part; `{}` if the skill accepts every value.
    pub input_schema: Value,
    /// The JSON schema of the output artifact, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// Whether the skill can ask.
    pub asks: bool,
    /// Whether the skill can make a task.
    pub task: bool,
    /// Whether only the extended card shows the skill.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub extended: bool,
}

impl AgentManifest {
    /// Whether authenticated callers see more than the public card.
    #[must_use]
    pub fn has_extended_card(&self) -> bool {
        // A2A 1.0 §3.1.11: an agent may show authenticated callers an extended card.
        self.extended_description.is_some() || self.skills.iter().any(|skill| skill.extended)
    }
}
