//! Which skill answers a message. The first decision wins:
//!
//! 1. pinned: a message for an existing task goes to its skill
//! 2. explicit: the message names a skill; never falls through
//! 3. single: the agent has one skill
//! 4. media type: one skill takes all parts
//! 5. schema: the data part is the input of exactly one skill
//! 6. lexical: `/skill-id`, an example, or the words of one skill
//! 7. model: not offered yet
//! 8. ask
//!
//! Nothing here can see a model, so an explicit call can never cost one.

mod explicit;
mod lexical;

use super::media::{admits, check_input};
use super::{AgentDefinition, AnySkill, Content};
use crate::task::{Message, Metadata, PartContent, Refusal, SavedSlot, SkillId};
use serde_json::{Value, json};
use std::sync::Arc;

/// What routing looks at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RouteRequest<'a> {
    /// The skill of the task the message belongs to.
    pub(crate) pinned: Option<&'a SkillId>,
    /// The message.
    pub(crate) message: &'a Message,
    /// The metadata of the request around it.
    pub(crate) request_metadata: &'a Metadata,
}

/// Where a message goes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Routed {
    /// To this skill, which takes every part of it.
    Skill {
        /// The skill.
        id: SkillId,
        /// What the skill gets: without the wrapping of an explicit call.
        content: Content,
        /// Where the arguments stood in the data part that spells the call.
        wrapped: Option<Wrapped>,
        /// Which step decided.
        how: &'static str,
    },
    /// Back to the client, with a question.
    Ask {
        /// The skills in question, the likeliest first.
        candidates: Vec<SkillId>,
        /// The question.
        question: String,
    },
}

/// The place of arguments inside a call that a data part spells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wrapped {
    /// The part.
    pub(crate) part: usize,
    /// The member of its data.
    pub(crate) member: &'static str,
}

/// The slot of the question which skill is meant. Nothing reads it back: a
/// task without a skill is one that has asked this.
pub(crate) fn which_skill(candidates: &[SkillId]) -> SavedSlot {
    let candidates: Vec<_> = candidates.iter().map(SkillId::as_str).collect();
    SavedSlot {
        version: 1,
        value: json!({ "candidates": candidates }),
    }
}

/// A decision, before it is known whether the skill takes every part.
struct Route {
    id: SkillId,
    content: Content,
    wrapped: Option<Wrapped>,
    how: &'static str,
}

impl Route {
    fn to(id: &SkillId, message: &Message, how: &'static str) -> Self {
        Self {
            id: id.clone(),
            content: Content::from_parts(message.parts.clone()),
            wrapped: None,
            how,
        }
    }

    fn admitted(self, agent: &AgentDefinition) -> Result<Routed, Refusal> {
        let Self {
            id,
            content,
            wrapped,
            how,
        } = self;
        let skill = agent.skill(&id).ok_or(Refusal::UnsupportedOperation {
            why: "the skill of this task is not offered any more",
        })?;
        check_input(skill.metadata(), content.parts())?;
        Ok(Routed::Skill {
            id,
            content,
            wrapped,
            how,
        })
    }
}

/// Routes a message.
pub(crate) fn route(
    agent: &AgentDefinition,
    request: &RouteRequest<'_>,
) -> Result<Routed, Refusal> {
    if let Some(route) = explicit_route(agent, request)? {
        return route.admitted(agent);
    }
    match implied_route(agent, request.message)? {
        Implied::One(route) => route.admitted(agent),
        // Step 7 goes here: a model would get the candidates and the text.
        Implied::Ambiguous(candidates) => Ok(ask(agent, candidates)),
    }
}

/// Routes the answer to [`which_skill`]. One that only names a skill sends the
/// `original` message there; any other is taken as the request itself.
pub(crate) fn route_answer(
    agent: &AgentDefinition,
    original: &Message,
    answer: &RouteRequest<'_>,
) -> Result<Routed, Refusal> {
    if let Some(mut route) = explicit_route(agent, answer)? {
        if only_text(answer.message) {
            route.content = Content::from_parts(original.parts.clone());
            route.wrapped = None;
        }
        return route.admitted(agent);
    }
    match lexical::bare_id(agent, answer.message) {
        Some(id) => Route::to(id, original, "explicit").admitted(agent),
        None => route(agent, answer),
    }
}

fn only_text(message: &Message) -> bool {
    let text = |content: &PartContent| matches!(content, PartContent::Text(_));
    message.parts.iter().all(|part| text(&part.content))
}

/// Steps 1 and 2. INVARIANT: no model is in scope, and no later step is tried
/// when the message names a skill.
fn explicit_route(
    agent: &AgentDefinition,
    request: &RouteRequest<'_>,
) -> Result<Option<Route>, Refusal> {
    let call = explicit::call(agent, request)?;
    let Some(pinned) = request.pinned else {
        return Ok(call.map(|call| call.route));
    };
    match call {
        Some(call) if call.route.id != *pinned => Err(Refusal::invalid(
            call.field,
            format!("the task belongs to the skill `{pinned}`"),
        )),
        Some(call) => Ok(Some(Route {
            how: "pinned",
            ..call.route
        })),
        None => Ok(Some(Route::to(pinned, request.message, "pinned"))),
    }
}

enum Implied {
    One(Route),
    Ambiguous(Vec<SkillId>),
}

type Skills<'a> = Vec<(&'a SkillId, &'a Arc<dyn AnySkill>)>;

/// Steps 3 to 6, for a message that names no skill.
fn implied_route(agent: &AgentDefinition, message: &Message) -> Result<Implied, Refusal> {
    let one = |id: &SkillId, how| Ok(Implied::One(Route::to(id, message, how)));
    let all: Skills<'_> = agent.skills().collect();
    if let [(only, _)] = all.as_slice() {
        return one(only, "single");
    }
    let takers = takers(&all, message)?;
    if let [(only, _)] = takers.as_slice() {
        return one(only, "media_type");
    }
    if let Some(id) = by_schema(&takers, message) {
        return one(id, "schema");
    }
    if let Some((id, content)) = lexical::command(agent, message) {
        return Ok(Implied::One(Route {
            id,
            content,
            wrapped: None,
            how: "command",
        }));
    }
    if let Some(id) = lexical::example(&takers, message) {
        return one(id, "example");
    }
    let ranking = lexical::rank(&takers, message);
    match ranking.winner() {
        Some(id) => one(id, "lexical"),
        None => Ok(Implied::Ambiguous(ranking.candidates())),
    }
}

/// Step 4: the skills that take every part.
fn takers<'a>(all: &Skills<'a>, message: &Message) -> Result<Skills<'a>, Refusal> {
    let admitting = |skill: &dyn AnySkill| admits(skill.metadata(), &message.parts);
    let takers: Skills<'_> = (all.iter().copied())
        .filter(|(_, skill)| admitting(&***skill))
        .collect();
    if takers.is_empty() {
        let types: Vec<_> = (message.parts.iter())
            .map(|part| format!("`{}`", part.effective_media_type()))
            .collect();
        return Err(Refusal::ContentTypeNotSupported {
            detail: format!("no skill takes {} together", types.join(", ")),
        });
    }
    Ok(takers)
}

/// Step 5: the one skill whose input the data part is. A skill that takes
/// anything says nothing about the data.
fn by_schema<'a>(takers: &Skills<'a>, message: &Message) -> Option<&'a SkillId> {
    let content = Content::from_parts(message.parts.clone());
    content.first_data()?;
    let reads = |skill: &dyn AnySkill| {
        let typed = !matches!(skill.input_schema(), Value::Object(any) if any.is_empty());
        typed && skill.input_schema() != &Value::Bool(true) && skill.decode(&content).is_ok()
    };
    let mut readers = takers.iter().filter(|(_, skill)| reads(&***skill));
    match (readers.next(), readers.next()) {
        (Some((id, _)), None) => Some(id),
        _ => None,
    }
}

/// Step 8.
fn ask(agent: &AgentDefinition, candidates: Vec<SkillId>) -> Routed {
    let mut question = "Which of these skills do you need? Answer with its id.".to_owned();
    for id in &candidates {
        if let Some(skill) = agent.skill(id) {
            question.push_str(&format!("\n- `{id}`: {}", skill.metadata().description));
        }
    }
    Routed::Ask {
        candidates,
        question,
    }
}

#[cfg(test)]
mod tests;
