//! Checks an agent as a whole, without running a skill.

use crate::runtime::Runtime;
use crate::settings::{Settings, Source};
use crate::task::{Message, Metadata};
use a2a_lambda_skill::route::{self, RouteRequest, Routed};
use a2a_lambda_skill::{AgentDefinition, AnySkill, Content, media};
use serde_json::Value;

/// A mistake in the definition of an agent that its clients would notice.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AgentCheckError {
    /// The agent has no valid card.
    #[error("the agent has no card: {why}")]
    Card {
        /// What is wrong.
        why: String,
    },
    /// The router does not choose a skill for the skill's own example.
    #[error("`{example}`, an example of skill `{skill}`, leads to {reaches}")]
    Example {
        /// The id of the skill.
        skill: String,
        /// Its example.
        example: String,
        /// What the router does instead: chooses another skill, asks the user, or
        /// refuses the message.
        reaches: String,
    },
    /// A skill takes every JSON object as its input.
    #[error(
        "skill `{skill}` takes any JSON object, so the router gives it data that is meant for \
         others: put `#[serde(deny_unknown_fields)]` on its input"
    )]
    AnyObject {
        /// The id of the skill.
        skill: String,
    },
    /// A skill cannot decode its own example as its input.
    #[error("skill `{skill}` does not take its own example `{example}`: {why}")]
    Input {
        /// The id of the skill.
        skill: String,
        /// Its example.
        example: String,
        /// What is wrong.
        why: String,
    },
}

/// Checks an agent as a whole and returns all faults; an empty list means none.
///
/// It checks that
/// - the agent has a valid card;
/// - no skill takes any JSON object, beside other skills;
/// - each example of a skill that takes text can be decoded as the skill's input;
/// - the router chooses that skill for the example, when the message does not name a
///   skill.
///
/// It runs no skill and calls no model.
#[must_use]
pub fn check_agent(agent: &AgentDefinition) -> Vec<AgentCheckError> {
    let mut faults: Vec<AgentCheckError> = card(agent).into_iter().collect();
    let several = agent.skills().count() > 1;
    for (id, skill) in agent.skills() {
        if several && takes_any_object(skill.input_schema()) {
            let skill = id.as_str().to_owned();
            faults.push(AgentCheckError::AnyObject { skill });
        }
        for example in skill.metadata().examples {
            faults.extend(fits(&**skill, example));
            faults.extend(reaches(agent, id.as_str(), &**skill, example));
        }
    }
    faults
}

/// Development settings, which need no secret.
struct Defaults;

impl Source for Defaults {
    fn get(&self, name: &str) -> Option<String> {
        (name == "A2A_AUTH").then(|| "dev".to_owned())
    }
}

fn card(agent: &AgentDefinition) -> Option<AgentCheckError> {
    let why = match Settings::read(&Defaults) {
        Ok(settings) => Runtime::builder(agent.clone(), settings)
            .build()
            .err()?
            .to_string(),
        Err(error) => error.to_string(),
    };
    Some(AgentCheckError::Card { why })
}

/// Whether a schema is that of a struct that admits every object: it requires no member and
/// ignores unknown ones.
fn takes_any_object(schema: &Value) -> bool {
    let names = schema.get("required").and_then(Value::as_array);
    schema.get("properties").is_some()
        && names.is_none_or(Vec::is_empty)
        && schema.get("additionalProperties") != Some(&Value::Bool(false))
}

fn takes(skill: &dyn AnySkill, content: &Content) -> bool {
    media::admits(skill.metadata(), content.parts())
}

fn fits(skill: &dyn AnySkill, example: &str) -> Option<AgentCheckError> {
    let content = Content::from_text(example);
    if !takes(skill, &content) {
        return None;
    }
    let error = skill.decode(&content).err()?;
    Some(AgentCheckError::Input {
        skill: skill.metadata().id.to_owned(),
        example: example.to_owned(),
        why: error.text().to_owned(),
    })
}

fn reaches(
    agent: &AgentDefinition,
    id: &str,
    skill: &dyn AnySkill,
    example: &str,
) -> Option<AgentCheckError> {
    let content = Content::from_text(example);
    if !takes(skill, &content) {
        return None;
    }
    let request = RouteRequest {
        pinned: None,
        message: &Message::from_user("check", content.into_parts()),
        request_metadata: &Metadata::new(),
    };
    let reaches = match route::route(agent, &request) {
        Ok(Routed::Skill(route)) if route.id.as_str() == id => return None,
        Ok(Routed::Skill(route)) => format!("skill `{}`", route.id),
        Ok(Routed::Ask { .. }) => "a question".to_owned(),
        Err(error) => error.to_string(),
    };
    Some(AgentCheckError::Example {
        skill: id.to_owned(),
        example: example.to_owned(),
        reaches,
    })
}
