//! The question of the router, what it offers, and which of that a reply names.

use super::by_model::{cut, text_of};
use super::decision::{Routed, Skills};
use super::pattern::Words;
use super::text::text;
use crate::AgentDefinition;
use a2a_lambda_model::task::{Message, SavedSlot, SkillId, TaskId, TaskRecord};
use serde::{Deserialize, Serialize};

/// The most bytes of a message that a question shows.
const SHOWN: usize = 60;
/// How a question of the rules begins.
pub(super) const WHICH: &str =
    "Which of these skills do you need? Answer with its number, id or name.";
/// The same with tasks that wait.
const OPEN: &str = "Which of these do you mean? Answer with its number.";

/// What a question of the router offers, in the order of the numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offer {
    /// Tasks that wait for an answer: the one that the client chooses gets the message.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<TaskId>,
    /// The skills.
    #[serde(default, rename = "candidates")]
    pub skills: Vec<SkillId>,
}

/// What a reply chooses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice {
    /// An open task.
    Task(TaskId),
    /// A skill.
    Skill(SkillId),
}

impl Offer {
    /// The offer in the slot of a question.
    #[must_use]
    pub fn of(slot: &SavedSlot) -> Self {
        Self::deserialize(&slot.value).unwrap_or_default()
    }

    /// The slot of the question.
    #[must_use]
    pub fn slot(&self) -> SavedSlot {
        SavedSlot {
            version: 1,
            value: serde_json::to_value(self).unwrap_or_default(),
        }
    }

    /// What a reply names: an offered task by its number, or a skill by its number, its id or its
    /// name.
    #[must_use]
    pub fn choice(&self, agent: &AgentDefinition, reply: &Message) -> Option<Choice> {
        let reply = text(reply);
        let reply = reply.trim().trim_matches(['`', '(', ')', '#']);
        let reply = Words::of(reply.trim_start_matches('/'));
        let is = |text: &str| Words::of(text).same(&reply);
        let tasks = self.tasks.iter().cloned().map(Choice::Task);
        let skills = self.skills.iter().cloned().map(Choice::Skill);
        let mut numbers = (1..).zip(tasks.chain(skills));
        let by_number = numbers.find(|(number, _): &(usize, _)| is(&number.to_string()));
        if let Some((_, choice)) = by_number {
            return Some(choice);
        }
        let mut by_id = self.skills.iter().filter(|id| is(id.as_str()));
        let has_name = |id: &&SkillId| {
            let skill = agent.skill(id);
            skill.is_some_and(|skill| is(skill.metadata().name))
        };
        let mut by_name = self.skills.iter().filter(has_name);
        let id = match by_id.next() {
            Some(id) => id,
            None => by_name.next().filter(|_| by_name.next().is_none())?,
        };
        Some(Choice::Skill(id.clone()))
    }
}

/// The question that offers these tasks and skills. It begins with `text`, if a model asks. If it
/// follows a question about the message `first`, it says that the skill gets that message.
pub(super) fn ask(
    agent: &AgentDefinition,
    tasks: &[&TaskRecord],
    skills: &Skills<'_>,
    text: Option<&str>,
    first: Option<&Message>,
) -> Routed {
    let mut question = text
        .unwrap_or(if tasks.is_empty() { WHICH } else { OPEN })
        .to_owned();
    if let (Some(first), Some((id, _))) = (first, skills.first()) {
        let words = text_of(first);
        let words = cut(&words, SHOWN);
        question.push_str(&format!(
            " The skill that you choose gets your first message, \"{words}\". For another message \
             write `/{id}`, or another id, and your wish."
        ));
    }
    let name = |id| agent.skill(id).map(|skill| skill.metadata().name);
    let open = tasks.iter().map(|task| {
        let asked = task.status().message.as_ref().map(text_of);
        let (asked, name) = (asked.unwrap_or_default(), task.skill().and_then(name));
        let (asked, name) = (cut(&asked, SHOWN), name.unwrap_or_default());
        format!("{name} waits for an answer: \"{asked}\"")
    });
    let skills_lines = skills.iter().map(|(id, skill)| {
        let (name, description) = (skill.metadata().name, skill.metadata().description);
        format!("{name} (`{id}`): {description}")
    });
    for (number, line) in (1..).zip(open.chain(skills_lines)) {
        let number: usize = number;
        question.push_str(&format!("\n{number}. {line}"));
    }
    Routed::Ask {
        offer: Offer {
            tasks: tasks.iter().map(|task| task.id().clone()).collect(),
            skills: skills.iter().map(|(id, _)| (*id).clone()).collect(),
        },
        question,
    }
}
