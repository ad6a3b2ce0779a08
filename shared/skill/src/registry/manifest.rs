//! What an agent publishes about itself and its skills.

use crate::{AnySkill, SessionAdapter, SkillMetadata};
use a2a_lambda_model::task::SkillId;
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};
use serde_json::Value;
use std::sync::Arc;

/// What an agent publishes about itself.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
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
    /// The instructions for the models of its skills.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
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
    #[serde(flatten)]
    pub(super) entry: RegisteredSkill,
    /// Whether the skill can ask.
    pub asks: bool,
    /// Whether the skill can make a task.
    pub task: bool,
    /// Whether only the extended card shows the skill.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub extended: bool,
}

/// A skill as an agent holds it. Its form is that of its schemas, which are made when something
/// reads them.
#[derive(Debug, Clone)]
pub(super) struct RegisteredSkill {
    pub(super) id: SkillId,
    pub(super) skill: Arc<dyn AnySkill>,
    /// What finds the session context of a conversation that begins with it.
    pub(super) adapter: Option<Arc<dyn SessionAdapter>>,
    /// Whether it gets what the model of the router does not decide.
    pub(super) is_fallback: bool,
}

impl SkillManifest {
    /// The JSON schema of the data part; `{}` if the skill accepts every value.
    #[must_use]
    pub fn input_schema(&self) -> &Value {
        self.entry.skill.input_schema()
    }

    /// The JSON schema of the output artifact, if there is one.
    #[must_use]
    pub fn output_schema(&self) -> Option<&Value> {
        self.entry.skill.output_schema()
    }
}

impl RegisteredSkill {
    fn schemas(&self) -> (&Value, Option<&Value>) {
        (self.skill.input_schema(), self.skill.output_schema())
    }
}

impl PartialEq for RegisteredSkill {
    fn eq(&self, other: &Self) -> bool {
        self.schemas() == other.schemas()
    }
}

/// The members `inputSchema` and `outputSchema`.
impl Serialize for RegisteredSkill {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (input, output) = self.schemas();
        let mut members = serializer.serialize_map(None)?;
        members.serialize_entry("inputSchema", input)?;
        if let Some(output) = output {
            members.serialize_entry("outputSchema", output)?;
        }
        members.end()
    }
}

impl AgentManifest {
    /// Whether authenticated callers see more than the public card.
    #[must_use]
    pub fn has_extended_card(&self) -> bool {
        // A2A 1.0 §3.1.11: an agent may show authenticated callers an extended card.
        self.extended_description.is_some() || self.skills.iter().any(|skill| skill.extended)
    }
}
