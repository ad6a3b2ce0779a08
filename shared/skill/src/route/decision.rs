//! What the routing gets, and the skill or the question that it decides on.

use super::message_text::{drop_command, is_text, text};
use crate::media::{admits, check_input};
use crate::{AgentDefinition, AnySkill, CallNames, Content};
use a2a_lambda_model::task::{
    A2aError, InputWriter, Message, Metadata, Part, PartContent, SavedSlot, SkillId, TaskId,
    TaskRecord,
};
use serde_json::Value;
use std::sync::Arc;

/// The steps that decide, as they are named in logs and data sets; `ask` leaves it to the client.
pub const STEPS: [&str; 14] = [
    "command",
    "explicit",
    "pinned",
    "answer",
    "media_type",
    "schema",
    "example",
    "text",
    "single",
    "model",
    "refines",
    "context",
    "fallback",
    "ask",
];

/// Skills that a message may go to, with their ids.
pub(super) type Skills<'a> = Vec<(&'a SkillId, &'a Arc<dyn AnySkill>)>;

/// Step 4: the skills that accept every part.
pub(super) fn takers<'a>(
    agent: &'a AgentDefinition,
    message: &Message,
) -> Result<Skills<'a>, A2aError> {
    let takers: Skills<'_> = (agent.skills())
        .filter(|(_, skill)| admits(skill.metadata(), &message.parts))
        .collect();
    if takers.is_empty() {
        let types: Vec<_> = (message.parts.iter())
            .filter_map(|part| part.known_media_type())
            .map(|media_type| format!("`{media_type}`"))
            .collect();
        let together = if types.len() > 1 { " together" } else { "" };
        return Err(A2aError::ContentTypeNotSupported {
            detail: format!("no skill takes {}{together}", types.join(", ")),
        });
    }
    Ok(takers)
}

/// The input of the routing.
#[derive(Debug, Clone)]
pub struct RouteRequest<'a> {
    /// The skill of the task that the message belongs to, if it belongs to one.
    pub pinned: Option<&'a SkillId>,
    /// The message.
    pub message: &'a Message,
    /// The metadata of the request that contains the message.
    pub request_metadata: &'a Metadata,
}

/// The result of the routing.
#[derive(Debug, Clone, PartialEq)]
pub enum Routed {
    /// A skill that accepts every part of the message.
    Skill(Route),
    /// A question to the client.
    Ask {
        /// What it offers, or what the skill that asked has kept.
        slot: SavedSlot,
        /// The parts of the question.
        question: Vec<Part>,
    },
}

/// What a message does.
#[derive(Debug)]
pub enum Decision {
    /// It begins a task, or its task goes on, with a skill or with a question.
    Route(Routed),
    /// It is a message to this open task: its answer, or one more that the router asks about.
    Continue(Box<TaskRecord>, Option<Routed>),
}

/// A chosen skill.
#[derive(Debug, Clone, PartialEq)]
pub struct Route {
    /// The skill.
    pub id: SkillId,
    /// The content for the skill, without the wrapper of an explicit call.
    pub content: Content,
    /// The location of the arguments, if a data part makes an explicit call.
    pub wrapper: Option<ArgumentsAt>,
    /// The step that decided.
    pub how: &'static str,
    /// The input that a model or a pattern made of the message.
    pub input: Option<Value>,
    /// Who wrote the input.
    pub writer: InputWriter,
    /// The earlier task that the message is about, if its conversation or a model says so.
    pub about: Option<TaskId>,
}

/// The location of the arguments of an explicit call in a data part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArgumentsAt {
    /// The index of the part.
    pub part: usize,
    /// The member of the part's data.
    pub member: &'static str,
}

impl Route {
    pub(super) fn to(id: &SkillId, message: &Message, how: &'static str) -> Self {
        let mut message = message.clone();
        drop_command(id.as_str(), &mut message.parts);
        Self {
            id: id.clone(),
            content: Content::of_message(&message),
            wrapper: None,
            how,
            input: None,
            writer: InputWriter::Caller,
            about: None,
        }
    }

    /// The message for the skill `id`, which the step `how` decided, with the input that a model or
    /// a pattern made of it.
    #[must_use]
    pub fn with_input(
        id: &SkillId,
        message: &Message,
        how: &'static str,
        input: Option<Value>,
    ) -> Self {
        let mut route = Self::to(id, message, how);
        if let Some(input) = &input {
            route.content = match input {
                Value::String(text) => Content::from_text(text.as_str()),
                input => Content::from_parts(vec![Part::data(input.clone())]),
            };
        }
        route.input = input;
        route
    }

    /// Checks that the skill accepts every part.
    ///
    /// # Errors
    /// When the skill is gone or does not take the parts.
    pub fn admit(self, agent: &AgentDefinition) -> Result<Routed, A2aError> {
        // Also for the line of a refusal.
        CallNames::note(|names| &names.skill, self.id.as_str());
        let skill = agent
            .skill(&self.id)
            .ok_or(A2aError::UnsupportedOperation {
                why: "the skill of this task is not offered any more",
            })?;
        check_input(skill.metadata(), self.content.parts())?;
        Ok(Routed::Skill(self))
    }
}

/// The message for the skill that a reply to the router chose: the first message with the files
/// and data of the reply, and with the references of both. It has the id of the reply.
pub fn join_messages(first: &Message, reply: &Message) -> Message {
    let mut message = reply.clone();
    message.parts.retain(|part| !is_text(part));
    message.parts.splice(..0, first.parts.iter().cloned());
    let references = &mut message.reference_task_ids;
    references.retain(|id| !first.reference_task_ids.contains(id));
    references.splice(..0, first.reference_task_ids.iter().cloned());
    message
}

/// The first message with the text of the next one as its last line, and with the rest of that. A
/// small whole number is no line: it was to choose what the question does not offer.
#[must_use]
pub fn with_line(mut first: Message, next: &Message) -> Message {
    let line = text(next);
    let is_line = line.trim().parse::<i8>().is_err();
    match first.parts.iter_mut().find(|part| is_text(part)) {
        Some(Part {
            content: PartContent::Text(before),
            ..
        }) if is_line => *before = format!("{before}\n{line}"),
        None => first.parts.push(Part::text(line)),
        Some(_) => {}
    }
    let both = join_messages(&first, next);
    Message {
        parts: both.parts,
        reference_task_ids: both.reference_task_ids,
        ..first
    }
}

/// Whether a schema admits every value.
pub(super) fn takes_any(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => members.is_empty(),
        schema => *schema == Value::Bool(true),
    }
}
