//! What a question of the router offers, and what of it a reply names.

use super::message_text::text;
use super::pattern::Words;
use crate::AgentDefinition;
use a2a_lambda_model::task::metadata_keys::CHOICES;
use a2a_lambda_model::task::{Message, SavedSlot, SkillId, TaskId};
use serde::{Deserialize, Serialize};
use std::ops::Not;

/// An open task that a question offers, as it was then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct OfferedTask {
    pub(super) id: TaskId,
    /// The turn that asked.
    pub(super) turn: u32,
}

/// What a question of the router offers, in the order of the numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
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

    /// The offer that the text of a question shows. Its tasks have no turn, so they only tell what
    /// a reply names.
    pub(super) fn of_question(agent: &AgentDefinition, question: &Message) -> Self {
        let choices =
            (question.parts.iter()).find_map(|part| part.metadata.get(CHOICES)?.as_array());
        let ids = choices.into_iter().flatten();
        let mut offer = Self::default();
        for id in ids.filter_map(|choice| choice.get("id")?.as_str()) {
            match SkillId::parse(id)
                .ok()
                .filter(|id| agent.skill(id).is_some())
            {
                Some(id) => offer.skills.push(id),
                None => offer
                    .tasks
                    .extend(TaskId::parse(id).ok().map(|id| OfferedTask { id, turn: 0 })),
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
