//! What a question of the router offers, and what of it a reply names.

use super::decision::Route;
use super::message_text::text;
use super::pattern::Words;
use crate::AgentDefinition;
use a2a_lambda_model::task::metadata_keys::CHOICES;
use a2a_lambda_model::task::{InputWriter, Message, SavedSlot, SkillId, TaskId};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::ops::Not;

/// An open task that a question offers, as it was then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct OfferedTask {
    pub(super) id: TaskId,
    /// The turn that asked.
    pub(super) turn: u32,
}

/// What a question of the router offers, in the order of the numbers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Offer {
    /// Tasks that wait for an answer: the one that the client chooses gets the message.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) tasks: Vec<OfferedTask>,
    /// The skills.
    #[serde(default, rename = "candidates")]
    pub(super) skills: Vec<SkillId>,
    /// Whether the client has chosen the only skill, which lacks its input.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub(super) lacks: bool,
    /// The call whose consent the question asks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<OfferedCall>,
}

/// A skill that the model of the router chose, with the input that it wrote.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OfferedCall {
    skill: SkillId,
    input: Value,
    about: Option<TaskId>,
}

impl OfferedCall {
    /// The route of the message that the client has sent.
    #[must_use]
    pub fn route(self, message: &Message) -> Route {
        Route {
            writer: InputWriter::Model,
            about: self.about,
            ..Route::with_input(&self.skill, message, "model", Some(self.input))
        }
    }
}

/// What a reply chooses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Choice {
    /// An open task.
    Task(OfferedTask),
    /// A skill.
    Skill(SkillId),
}

impl Offer {
    /// The offer in the slot of a question.
    #[must_use]
    pub fn of(slot: &SavedSlot) -> Self {
        Self::deserialize(&slot.value).unwrap_or_default()
    }

    /// The offer of a question whether a skill may run with the input that the router's model wrote.
    #[must_use]
    pub fn of_call(route: &Route) -> Self {
        let call = OfferedCall {
            skill: route.id.clone(),
            input: route.input.clone().unwrap_or_default(),
            about: route.about.clone(),
        };
        Self {
            call: Some(call),
            ..Self::default()
        }
    }

    /// The offer that the text of a question shows. Its tasks have no turn, so they only tell what
    /// a reply names.
    pub(super) fn of_question(agent: &AgentDefinition, question: &Message) -> Self {
        let choices =
            (question.parts.iter()).find_map(|part| part.metadata.get(CHOICES)?.as_array());
        let ids = choices.into_iter().flatten();
        let mut offer = Self::default();
        for id in ids.filter_map(|choice| choice.get("id")?.as_str()) {
            let task = || TaskId::parse(id).map(|id| OfferedTask { id, turn: 0 });
            match agent.find_skill(id) {
                Some((id, _)) => offer.skills.push(id.clone()),
                None => offer.tasks.extend(task()),
            }
        }
        offer
    }

    /// The slot of the question.
    #[must_use]
    pub fn slot(&self) -> SavedSlot {
        SavedSlot {
            version: 1,
            value: serde_json::to_value(self).unwrap_or_default(),
        }
    }

    /// The open task that a reply names, and the turn whose question it answers.
    #[must_use]
    pub fn task(&self, agent: &AgentDefinition, reply: &Message) -> Option<(TaskId, u32)> {
        match self.choice(agent, reply)? {
            Choice::Task(task) => Some((task.id, task.turn)),
            Choice::Skill(_) => None,
        }
    }

    /// What a reply names: what is offered by its number, an open task by its id, or any skill of
    /// the agent by its id or its name.
    pub(super) fn choice(&self, agent: &AgentDefinition, reply: &Message) -> Option<Choice> {
        let reply = text(reply);
        let reply = reply.trim().trim_matches(['`', '(', ')', '#']);
        let reply = Words::of(reply.trim_start_matches('/'));
        let is = |text: &str| Words::of(text).same(&reply);
        let tasks = self.tasks.iter().cloned().map(Choice::Task);
        let skills = self.skills.iter().cloned().map(Choice::Skill);
        let mut numbers = (1_usize..).zip(tasks.chain(skills));
        let by_number = numbers.find(|(number, choice)| {
            is(&number.to_string()) || matches!(choice, Choice::Task(task) if is(task.id.as_str()))
        });
        if let Some((_, choice)) = by_number {
            return Some(choice);
        }
        let mut by_id = agent.skills().filter(|(id, _)| is(id.as_str()));
        let mut by_name = agent
            .skills()
            .filter(|(_, skill)| is(skill.metadata().name));
        let (id, _) = match by_id.next() {
            Some(skill) => skill,
            None => by_name.next().filter(|_| by_name.next().is_none())?,
        };
        Some(Choice::Skill(id.clone()))
    }
}
