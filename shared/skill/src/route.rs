//! Chooses the skill for a message. The first step that decides wins:
//!
//! 1. pinned: a message for an existing task goes to the skill of the task
//! 2. explicit, command: the message names a skill, or its text starts with `/skill-id`; an
//!    invalid name is an error, and no later step runs
//! 3. single: the agent has one skill
//! 4. media type, schema: one skill accepts all parts, or decodes the data part
//! 5. example, text: the text is, as a whole, an example or a pattern of one skill
//! 6. model: a language model chooses, if there is one and it answers in time
//! 7. conversation, without the answer of a model: the text refines what spoke last (refines), or
//!    answers what waits (context)
//! 8. fallback: the skill for what a model does not decide
//! 9. ask: the client gets a question that offers the skills that fit. A reply that names one
//!    of them sends the first message there (answer)
//!
//! An agent that answers by context looks at step 5 and then at what waits before step 3.
//!
//! From step 3 on, a pattern of the skill that gets a text reads it, whichever step decided.
//!
//! Words that a text shares with a skill decide nothing; they order what is offered. Nor does a
//! reference to a task.
//!
//! No step here has access to a model, so an explicit call never causes the cost of one. The
//! engine asks the model in `by_model` when the steps before it end with a question.

mod by_model;
mod conversation;
mod decision;
mod explicit;
mod offer;
mod pattern;
mod text;

pub use by_model::{ModelChoice, RouterModel, Undecided};
pub use conversation::{Answer, Conversation};
pub use decision::{Route, RouteRequest, Routed, STEPS, Wrapped, joined, with_line};
pub use offer::{Choice, Offer};

use super::media::admits;
use super::{AgentDefinition, AnySkill, Content};
use a2a_lambda_model::task::{A2aError, Message, SkillId, TaskRecord};
use decision::{Skills, only_text, takes_any};
pub(crate) use pattern::TextPattern;
use serde_json::Value;
use text::{command, declared, input, order, text};

impl Route {
    /// The message for the skill `id`, which the step `how` decided. A pattern of that skill
    /// reads it.
    fn read(agent: &AgentDefinition, id: &SkillId, message: &Message, how: &'static str) -> Self {
        let skill = agent.skill(id);
        let input = skill.and_then(|skill| input(&**skill, message));
        Self::with_input(id, message, how, input)
    }
}

/// Chooses the skill for a message.
///
/// # Errors
/// When it names an unknown skill, or no skill takes its parts.
pub fn route(agent: &AgentDefinition, request: &RouteRequest<'_>) -> Result<Routed, A2aError> {
    if let Some(route) = explicit_route(agent, request)? {
        return route.admitted(agent);
    }
    if let Some(route) = command(agent, request.message) {
        return route.admitted(agent);
    }
    let read = |id, how| Route::read(agent, id, request.message, how);
    let all: Skills<'_> = agent.skills().collect();
    if let [(only, _)] = all.as_slice() {
        return read(only, "single").admitted(agent);
    }
    let takers = takers(all, request.message)?;
    if let Some((id, how)) = by_parts(&takers, request.message) {
        return read(id, how).admitted(agent);
    }
    match declared_by_one(&takers, request.message) {
        Some(route) => route.admitted(agent),
        None => Ok(offer::ask(agent, &[], &takers, None, None)),
    }
}

/// The only skill that declares the text, for an agent that answers by context: its conversation
/// comes before what only the parts of a message decide. `None`: another step decides.
///
/// # Errors
/// When the skill does not take the parts.
pub fn before_parts(
    agent: &AgentDefinition,
    routed: Routed,
    message: &Message,
) -> Result<Option<Routed>, A2aError> {
    let by_parts = ["single", "media_type", "schema"];
    match routed {
        Routed::Skill(route) if by_parts.contains(&route.how) => {
            let route = declared_by_one(&agent.skills().collect(), message);
            route.map(|route| route.admitted(agent)).transpose()
        }
        routed => Ok(Some(routed)),
    }
}

fn declared_by_one(skills: &Skills<'_>, message: &Message) -> Option<Route> {
    let mut routes = declared(skills, message).into_iter();
    routes.next().filter(|_| routes.next().is_none())
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

/// Chooses the skill for the reply to a question of the router. A reply that only names an
/// offered skill sends the `original` message to that skill, with what it carries beside its
/// words: see [`joined`]. Any other reply is routed as a message of its own.
///
/// # Errors
/// As for [`route`].
pub fn route_answer(
    agent: &AgentDefinition,
    original: &Message,
    offer: &Offer,
    reply: &RouteRequest<'_>,
) -> Result<Routed, A2aError> {
    let message = reply.message;
    let choice = offer.choice(agent, message);
    let answer = |id| Route::read(agent, id, &joined(original, message), "answer");
    if let Some(call) = explicit_route(agent, reply)? {
        let is_named = matches!(&choice, Some(Choice::Skill(id)) if *id == call.id);
        let is_choice = text(message).trim().is_empty() || is_named;
        let route = match is_choice && only_text(message) {
            true => answer(&call.id),
            false => call,
        };
        return route.admitted(agent);
    }
    match choice {
        Some(Choice::Skill(id)) => answer(&id).admitted(agent),
        _ => route(agent, reply),
    }
}

/// Step 9: the question, which offers the tasks that may get the message, and the skills that fit:
/// that of the task that spoke last first, then those that share most words with the message.
/// `text` begins the question, if a model asks it.
///
/// # Errors
/// When no skill takes the parts.
pub fn ask(
    agent: &AgentDefinition,
    case: &Undecided<'_>,
    tasks: &[&TaskRecord],
    text: Option<&str>,
) -> Result<Routed, A2aError> {
    let mut skills = takers(agent.skills().collect(), case.message)?;
    order(&mut skills, case.message);
    if let Some(last) = case.conversation.last().and_then(|task| task.skill()) {
        skills.sort_by_key(|(id, _)| *id != last);
    }
    Ok(offer::ask(agent, tasks, &skills, text, case.first))
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

/// Step 4: the skills that accept every part.
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

/// Step 4: the one of `takers` that alone takes the parts or decodes the data part.
fn by_parts<'a>(takers: &Skills<'a>, message: &Message) -> Option<(&'a SkillId, &'static str)> {
    if let [(only, _)] = takers.as_slice() {
        return Some((only, "media_type"));
    }
    by_schema(takers, message).map(|id| (id, "schema"))
}

/// Step 4: the only skill that can decode the data part. Skills that accept every value do
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

#[cfg(test)]
mod tests;
