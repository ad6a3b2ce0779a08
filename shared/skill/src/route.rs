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
//! From step 3 on, a pattern of the skill that gets a text reads it, whichever step decided.
//!
//! Words that a text shares with a skill decide nothing; they order what is offered.
//!
//! No step here has access to a model, so an explicit call never causes the cost of one. The
//! engine asks the model in `by_model` when the steps before it end with a question.

mod by_model;
mod decision;
mod explicit;
mod pattern;
mod text;

pub use by_model::{ModelChoice, RouterModel, Undecided};
pub use decision::{EarlierTasks, Route, RouteRequest, Routed, STEPS, Wrapped, joined};

use super::media::admits;
use super::{AgentDefinition, AnySkill, Content};
use a2a_lambda_model::task::{A2aError, Message, SavedSlot, SkillId};
use decision::{Skills, only_text, takes_any};
pub(crate) use pattern::TextPattern;
use serde_json::{Value, json};
use text::{choice, command, declared, input, order, text};

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
    let mut takers = takers(all, request.message)?;
    let reference = request.earlier.reference.as_ref();
    if let Some((id, skill)) = takers.iter().find(|(id, _)| Some(*id) == reference) {
        let route = read(id, "reference");
        if skill.decode(&route.content).is_ok() {
            return route.admitted(agent);
        }
    }
    if let Some((id, how)) = by_parts(&takers, request.message) {
        return read(id, how).admitted(agent);
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

/// Chooses the skill for the answer to [`which_skill`], which offered `offer`. An answer that
/// only names an offered skill sends the `original` message to that skill, with what it
/// carries beside its words: see [`joined`]. Any other answer is routed as a message of its
/// own.
///
/// # Errors
/// As for [`route`].
pub fn route_answer(
    agent: &AgentDefinition,
    original: &Message,
    offer: &[SkillId],
    reply: &RouteRequest<'_>,
) -> Result<Routed, A2aError> {
    let message = reply.message;
    let choice = choice(agent, offer, message);
    let answer = |id| Route::read(agent, id, &joined(original, message), "answer");
    if let Some(call) = explicit_route(agent, reply)? {
        let is_choice = text(message).trim().is_empty() || choice == Some(&call.id);
        let route = match is_choice && only_text(message) {
            true => answer(&call.id),
            false => call,
        };
        return route.admitted(agent);
    }
    match choice {
        Some(id) => answer(id).admitted(agent),
        None => Ok(match route(agent, reply)? {
            Routed::Ask { candidates, .. } => ask_with(agent, candidates, WHICH, Some(original)),
            decision => decision,
        }),
    }
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

/// The most bytes of the first message that a question shows.
const SHOWN: usize = 60;
/// How a question of the rules begins.
const WHICH: &str = "Which of these skills do you need? Answer with its number, id or name.";

/// Step 8: the question with the candidates.
fn ask(agent: &AgentDefinition, candidates: &Skills<'_>) -> Routed {
    let candidates = candidates.iter().map(|(id, _)| (*id).clone());
    ask_with(agent, candidates.collect(), WHICH, None)
}

/// A question that begins with `text`, with the candidates. If it follows a question about the
/// message `first`, it says that the skill gets that message.
pub fn ask_with(
    agent: &AgentDefinition,
    candidates: Vec<SkillId>,
    text: &str,
    first: Option<&Message>,
) -> Routed {
    let mut question = text.to_owned();
    if let (Some(first), Some(id)) = (first, candidates.first()) {
        let words = by_model::text_of(first);
        let words = by_model::cut(&words, SHOWN);
        question.push_str(&format!(
            " The skill that you choose gets your first message, \"{words}\". For another message \
             write `/{id}`, or another id, and your wish."
        ));
    }
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
