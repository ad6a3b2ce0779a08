//! Chooses the skill for a message. The first step that decides wins:
//!
//! 1. pinned: a message for an existing task goes to the skill of the task
//! 2. explicit, command: the message names a skill, or its text starts with `/skill-id`; an
//!    invalid name is an error, and no later step runs
//! 3. single: the agent has one skill
//! 4. reference: all tasks that the message refers to have one skill, which takes the parts
//! 5. media type, schema: one skill accepts all parts, or decodes the data part
//! 6. example, text: the text is, as a whole, an example or a pattern of one skill
//! 7. model: a language model chooses, if there is one. What it does not decide goes to the
//!    fallback of the agent (fallback)
//! 8. ask: the client gets a question that offers the skills that fit. A reply that names one
//!    of them sends the first message there (answer)
//!
//! Words that a text shares with a skill decide nothing; they order what is offered.
//!
//! No step here has access to a model, so an explicit call never causes the cost of one. The
//! engine asks the model in `by_model` when the steps before it end with a question.

mod by_model;
mod explicit;
mod pattern;
mod text;

pub use by_model::{ModelChoice, RouterModel, Undecided};

use super::media::{admits, check_input};
use super::{AgentDefinition, AnySkill, Content};
use crate::CallNames;
use a2a_lambda_model::task::{A2aError, Message, Metadata, Part, PartContent, SavedSlot, SkillId};
pub(crate) use pattern::TextPattern;
use serde_json::{Value, json};
use std::sync::Arc;
use text::{choice, command, declared, order};

/// The input of the routing.
#[derive(Debug, Clone)]
pub struct RouteRequest<'a> {
    /// The skill of the task that the message belongs to, if it belongs to one.
    pub pinned: Option<&'a SkillId>,
    /// The message.
    pub message: &'a Message,
    /// The metadata of the request that contains the message.
    pub request_metadata: &'a Metadata,
    /// What its conversation says about it.
    pub earlier: EarlierTasks,
}

/// The skills of earlier tasks, as far as they concern a message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EarlierTasks {
    /// The one skill of all tasks that the message refers to.
    pub reference: Option<SkillId>,
    /// The skill of the newest task in the context.
    pub last: Option<SkillId>,
}

/// The result of the routing.
#[derive(Debug, Clone, PartialEq)]
pub enum Routed {
    /// A skill that accepts every part of the message.
    Skill(Route),
    /// A question to the client.
    Ask {
        /// The candidates, in the order of the agent.
        candidates: Vec<SkillId>,
        /// The question.
        question: String,
    },
}

/// A chosen skill.
#[derive(Debug, Clone, PartialEq)]
pub struct Route {
    /// The skill.
    pub id: SkillId,
    /// The content for the skill, without the wrapper of an explicit call.
    pub content: Content,
    /// The location of the arguments, if a data part makes an explicit call.
    pub wrapper: Option<Wrapped>,
    /// The step that decided.
    pub how: &'static str,
    /// The input that a model or a pattern made of the message.
    pub input: Option<Value>,
}

/// The location of the arguments of an explicit call in a data part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wrapped {
    /// The index of the part.
    pub part: usize,
    /// The member of the part's data.
    pub member: &'static str,
}

/// The slot of the question "which skill?": what it offers.
pub fn which_skill(candidates: &[SkillId]) -> SavedSlot {
    let candidates: Vec<_> = candidates.iter().map(SkillId::as_str).collect();
    SavedSlot {
        version: 1,
        value: json!({ "candidates": candidates }),
    }
}

/// The skills that the question in a slot offers.
pub fn offer(slot: &SavedSlot) -> Vec<SkillId> {
    let candidates = slot.value.get("candidates").and_then(Value::as_array);
    let ids = candidates.into_iter().flatten().filter_map(Value::as_str);
    ids.filter_map(|id| SkillId::parse(id).ok()).collect()
}

impl Route {
    fn to(id: &SkillId, message: &Message, how: &'static str) -> Self {
        Self {
            id: id.clone(),
            content: Content::from_parts(message.parts.clone()),
            wrapper: None,
            how,
            input: None,
        }
    }

    /// The same, with the input that a model or a pattern made of the message.
    fn with_input(
        id: &SkillId,
        message: &Message,
        how: &'static str,
        input: Option<Value>,
    ) -> Self {
        let mut route = Self::to(id, message, how);
        if let Some(input) = &input {
            route.content = Content::from_parts(vec![Part::data(input.clone())]);
        }
        route.input = input;
        route
    }

    /// Checks that the skill accepts every part.
    fn admitted(self, agent: &AgentDefinition) -> Result<Routed, A2aError> {
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

/// Whether the message names its skill, or needs none to be named.
///
/// # Errors
/// When it names an unknown skill.
pub fn is_named(agent: &AgentDefinition, request: &RouteRequest<'_>) -> Result<bool, A2aError> {
    let is_single = agent.skills().nth(1).is_none();
    Ok(is_single
        || explicit_route(agent, request)?.is_some()
        || command(agent, request.message).is_some())
}

/// Chooses the skill for a message.
///
/// # Errors
/// When it names an unknown skill, or no skill takes its parts.
pub fn route(agent: &AgentDefinition, request: &RouteRequest<'_>) -> Result<Routed, A2aError> {
    if let Some(route) = explicit_route(agent, request)? {
        return route.admitted(agent);
    }
    let all: Skills<'_> = agent.skills().collect();
    if let [(only, _)] = all.as_slice() {
        return Route::to(only, request.message, "single").admitted(agent);
    }
    if let Some(route) = command(agent, request.message) {
        return route.admitted(agent);
    }
    let mut takers = takers(all, request.message)?;
    let reference = request.earlier.reference.as_ref();
    if let Some(id) = reference.filter(|id| takers.iter().any(|(taker, _)| taker == id)) {
        return Route::to(id, request.message, "reference").admitted(agent);
    }
    if let Some((id, how)) = by_parts(&takers, request.message) {
        return Route::to(id, request.message, how).admitted(agent);
    }
    let mut routes = declared(&takers, request.message).into_iter();
    if let (Some(route), None) = (routes.next(), routes.next()) {
        return route.admitted(agent);
    }
    order(&mut takers, request.message);
    if let Some(last) = &request.earlier.last {
        takers.sort_by_key(|(id, _)| *id != last);
    }
    Ok(ask(agent, &takers))
}

/// The skill `id`, which the step `how` decided, with the input that it made of the message.
///
/// # Errors
/// When the skill is gone or does not take the parts.
pub fn route_to(
    agent: &AgentDefinition,
    id: &SkillId,
    message: &Message,
    how: &'static str,
    input: Option<Value>,
) -> Result<Routed, A2aError> {
    Route::with_input(id, message, how, input).admitted(agent)
}

/// The input of the skill `id` in the first message of its task, when a later run of the turn
/// reads the message again.
///
/// # Errors
/// As for [`route`].
pub fn route_again(
    agent: &AgentDefinition,
    id: &SkillId,
    request: &RouteRequest<'_>,
) -> Result<Routed, A2aError> {
    let is_call = explicit::call(agent, request)?.is_some();
    match command(agent, request.message) {
        // An explicit call has priority over a text that looks like a command, and the only
        // skill of an agent gets every text.
        Some(route) if route.id == *id && !is_call && agent.skills().count() > 1 => {
            route.admitted(agent)
        }
        _ => route(agent, request),
    }
}

/// Chooses the skill for the answer to [`which_skill`], which offered `offer`. An answer that
/// only names an offered skill sends the `original` message to that skill. Any other answer is
/// routed as a message of its own.
///
/// # Errors
/// As for [`route`].
pub fn route_answer(
    agent: &AgentDefinition,
    original: &Message,
    offer: &[SkillId],
    reply: &RouteRequest<'_>,
) -> Result<Routed, A2aError> {
    if let Some(call) = explicit_route(agent, reply)? {
        let route = match only_text(reply.message) {
            true => original_route(agent, &call.id, original),
            false => call,
        };
        return route.admitted(agent);
    }
    match choice(agent, offer, reply.message) {
        Some(id) => original_route(agent, id, original).admitted(agent),
        None => route(agent, reply),
    }
}

/// The original message for the skill that the reply chose. A pattern of that skill reads it.
fn original_route(agent: &AgentDefinition, id: &SkillId, original: &Message) -> Route {
    let skills = agent.skills().filter(|(other, _)| *other == id).collect();
    let input = declared(&skills, original).pop().and_then(|it| it.input);
    Route::with_input(id, original, "answer", input)
}

fn only_text(message: &Message) -> bool {
    let text = |content: &PartContent| matches!(content, PartContent::Text(_));
    message.parts.iter().all(|part| text(&part.content))
}

/// Steps 1 and 2. INVARIANT: no model is in scope, and no later step runs when the message
/// names a skill.
fn explicit_route(
    agent: &AgentDefinition,
    request: &RouteRequest<'_>,
) -> Result<Option<Route>, A2aError> {
    let call = explicit::call(agent, request)?;
    let Some(id) = request.pinned else {
        return Ok(call.map(|call| call.route));
    };
    match call {
        Some(call) if call.route.id != *id => Err(A2aError::invalid(
            call.field,
            format!("the task belongs to the skill `{id}`"),
        )),
        // The message may name the skill of its own task.
        Some(call) => Ok(Some(Route {
            how: "pinned",
            ..call.route
        })),
        None => Ok(Some(Route::to(id, request.message, "pinned"))),
    }
}

type Skills<'a> = Vec<(&'a SkillId, &'a Arc<dyn AnySkill>)>;

/// Step 5: the skills that accept every part.
fn takers<'a>(all: Skills<'a>, message: &Message) -> Result<Skills<'a>, A2aError> {
    let takers: Skills<'_> = (all.into_iter())
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

/// Step 5: the one of `takers` that alone takes the parts or decodes the data part.
fn by_parts<'a>(takers: &Skills<'a>, message: &Message) -> Option<(&'a SkillId, &'static str)> {
    if let [(only, _)] = takers.as_slice() {
        return Some((only, "media_type"));
    }
    by_schema(takers, message).map(|id| (id, "schema"))
}

/// Step 5: the only skill that can decode the data part. Skills that accept every value do
/// not count, since they would match any data.
fn by_schema<'a>(takers: &Skills<'a>, message: &Message) -> Option<&'a SkillId> {
    let content = Content::from_parts(message.parts.clone());
    content.first_data()?;
    only(takers, |skill| {
        !takes_any(skill.input_schema()) && skill.decode(&content).is_ok()
    })
}

/// The only skill that `fits`.
fn only<'a>(skills: &Skills<'a>, fits: impl Fn(&dyn AnySkill) -> bool) -> Option<&'a SkillId> {
    let mut fitting = skills.iter().filter(|(_, skill)| fits(&***skill));
    match (fitting.next(), fitting.next()) {
        (Some((id, _)), None) => Some(id),
        _ => None,
    }
}

/// Whether a schema admits every value.
fn takes_any(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => members.is_empty(),
        schema => *schema == Value::Bool(true),
    }
}

/// Step 8: the question with the candidates.
fn ask(agent: &AgentDefinition, candidates: &Skills<'_>) -> Routed {
    let text = "Which of these skills do you need? Answer with its number, id or name.";
    let candidates = candidates.iter().map(|(id, _)| (*id).clone());
    ask_with(agent, candidates.collect(), text)
}

/// A question that begins with `text`, with the candidates.
pub fn ask_with(agent: &AgentDefinition, candidates: Vec<SkillId>, text: &str) -> Routed {
    let mut question = text.to_owned();
    for (index, id) in candidates.iter().enumerate() {
        if let Some(skill) = agent.skill(id) {
            let (number, metadata) = (index + 1, skill.metadata());
            let (name, description) = (metadata.name, metadata.description);
            question.push_str(&format!("\n{number}. {name} (`{id}`): {description}"));
        }
    }
    Routed::Ask {
        candidates,
        question,
    }
}

#[cfg(test)]
mod tests;
