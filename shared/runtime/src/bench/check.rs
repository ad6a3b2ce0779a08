//! What can be said of a whole agent without running a skill.

use crate::runtime::Runtime;
use crate::settings::{Settings, Source};
use crate::skill::route::{self, RouteRequest, Routed};
use crate::skill::{AgentDefinition, AnySkill, Content, media};
use crate::task::{Message, Metadata};

/// Something in an agent that its clients would trip over.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AgentFault {
    /// There is no valid card.
    #[error("the agent has no card: {why}")]
    Card {
        /// Why not.
        why: String,
    },
    /// A published example does not reach the skill that publishes it.
    #[error("`{example}`, an example of skill `{skill}`, leads to {reaches}")]
    Example {
        /// The skill.
        skill: String,
        /// Its example.
        example: String,
        /// The other skill, a question, or why it is refused.
        reaches: String,
    },
    /// A published example does not fit the skill's own input.
    #[error("skill `{skill}` does not take its own example `{example}`: {why}")]
    Input {
        /// The skill.
        skill: String,
        /// Its example.
        example: String,
        /// Why not.
        why: String,
    },
}

/// Checks an agent as a whole: that its card can be made, and that each
/// example of a skill that takes text fits the skill's input and, said without
/// naming the skill, reaches it. No skill runs and no model is asked. Empty =
/// no fault.
#[must_use]
pub fn check_agent(agent: &AgentDefinition) -> Vec<AgentFault> {
    let mut faults: Vec<AgentFault> = card(agent).into_iter().collect();
    for (id, skill) in agent.skills() {
        for example in skill.metadata().examples {
            faults.extend(fits(&**skill, example));
            faults.extend(reaches(agent, id.as_str(), &**skill, example));
        }
    }
    faults
}

/// Settings of one's own machine.
struct Defaults;

impl Source for Defaults {
    fn get(&self, name: &str) -> Option<String> {
        (name == "A2A_AUTH").then(|| "dev".to_owned())
    }
}

fn card(agent: &AgentDefinition) -> Option<AgentFault> {
    let why = match Settings::read(&Defaults) {
        Ok(settings) => Runtime::builder(agent.clone(), settings)
            .build()
            .err()?
            .to_string(),
        Err(error) => error.to_string(),
    };
    Some(AgentFault::Card { why })
}

fn takes(skill: &dyn AnySkill, content: &Content) -> bool {
    media::admits(skill.metadata(), content.parts())
}

fn fits(skill: &dyn AnySkill, example: &str) -> Option<AgentFault> {
    let content = Content::from_text(example);
    if !takes(skill, &content) {
        return None;
    }
    let error = skill.decode(&content).err()?;
    Some(AgentFault::Input {
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
) -> Option<AgentFault> {
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
        Ok(Routed::Skill { id: chosen, .. }) if chosen.as_str() == id => return None,
        Ok(Routed::Skill { id: chosen, .. }) => format!("skill `{chosen}`"),
        Ok(Routed::Ask { .. }) => "a question".to_owned(),
        Err(refusal) => refusal.to_string(),
    };
    Some(AgentFault::Example {
        skill: id.to_owned(),
        example: example.to_owned(),
        reaches,
    })
}
