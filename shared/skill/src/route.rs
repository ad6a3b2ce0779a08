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
mod decision;
mod explicit;
mod message_text;
mod offer;
mod pattern;
mod prior_tasks;
mod text;

pub use by_model::{ModelChoice, RouterModel, RoutingQuestion};
pub use decision::{
    ArgumentsAt, Decision, Route, RouteRequest, Routed, STEPS, join_messages, with_line,
};
pub use message_text::{drop_command, text_of};
pub use offer::Offer;
pub use prior_tasks::PriorTasks;

use super::media::admits;
use super::{AgentDefinition, AnySkill, Content};
use a2a_lambda_model::task::metadata_keys::CHOICES;
use a2a_lambda_model::task::{A2aError, Message, Part, Role, SkillId, TaskRecord, TaskState};
use decision::{Skills, takers, takes_any};
use explicit::explicit_route;
use message_text::{cut, only_text, text};
use offer::{Choice, OfferedTask};
pub(crate) use pattern::TextPattern;
use pattern::Words;
use prior_tasks::{Answer, answers_consent};
use serde_json::{Value, json};
use text::{command, input, match_text, order};

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
        return route.admit(agent);
    }
    if let Some(route) = command(agent, request.message) {
        return route.admit(agent);
    }
    let read = |id, how| Route::read(agent, id, request.message, how);
    let all: Skills<'_> = agent.skills().collect();
    if let [(only, _)] = all.as_slice() {
        return read(only, "single").admit(agent);
    }
    let takers = takers(agent, request.message)?;
    if let Some((id, how)) = by_parts(&takers, request.message) {
        return read(id, how).admit(agent);
    }
    let mut routes = match_text(&takers, request.message).into_iter();
    match (routes.next(), routes.next()) {
        (Some(route), None) => route.admit(agent),
        _ => Ok(question(agent, &[], takers, None, None)),
    }
}

/// Whether the conversation of a message may change the `decision`: if that is a question, or if
/// the agent answers by context and only the parts of the message decided.
#[must_use]
pub fn may_yield_to_context(agent: &AgentDefinition, decision: &Routed, message: &Message) -> bool {
    const BY_PARTS: [&str; 3] = ["single", "media_type", "schema"];
    match decision {
        Routed::Ask { .. } => true,
        Routed::Skill(route) => {
            agent.answers_by_context
                && BY_PARTS.contains(&route.how)
                // A text that exactly one skill declares begins a task of it, whatever waits.
                && match_text(&agent.skills().collect(), message).len() != 1
        }
    }
}

/// What a message without a task does by its context, whatever a model says; `None` if a model is
/// to be asked.
///
/// # Errors
/// When the newest question asks for credentials, or no skill takes the parts.
pub fn by_context(
    agent: &AgentDefinition,
    case: &RoutingQuestion<'_>,
    decision: Routed,
) -> Result<Option<Decision>, A2aError> {
    case.prior.check_credentials()?;
    if let Some(task) = case.prior.named_consent(case.message) {
        return Ok(Some(Decision::Continue(task.clone().into(), None)));
    }
    let question = case.prior.question();
    if let Some(question) = question.filter(|it| !case.prior.said_since(it)) {
        let offer = question.saved.slot.as_ref().map(Offer::of);
        let offer = offer.unwrap_or_default();
        let is_reply = offer.choice(agent, case.message).is_some()
            || lacking(agent, &offer, case.message).is_some()
            || cancels(agent, None, case.message)
            || (offer.call.is_some() && answers_consent(question, case.message));
        if is_reply {
            return Ok(Some(Decision::Continue(question.clone().into(), None)));
        }
    }
    match (decision, case.prior.answer(agent, case.message)) {
        // A model has no say in a consent: it might take the word for a new wish.
        (Routed::Ask { .. }, Some(Answer::To(task))) if answers_consent(task, case.message) => {
            Ok(Some(Decision::Continue(task.clone().into(), None)))
        }
        (Routed::Ask { .. }, _) => Ok(None),
        (_, Some(answer)) => apply_answer(agent, case, answer).map(Some),
        (decision, None) => Ok(Some(Decision::Route(decision))),
    }
}

/// What a message does that no rule decides: what the model says, else its conversation, the
/// fallback of an agent with a model, or a question. A reply to the router answers no other task.
///
/// # Errors
/// When the newest question asks for credentials, or no skill takes the parts.
pub fn conclude(
    agent: &AgentDefinition,
    case: &RoutingQuestion<'_>,
    choice: Option<ModelChoice>,
    has_model: bool,
) -> Result<Decision, A2aError> {
    case.prior.check_credentials()?;
    let mut text = None;
    let answer = match choice {
        Some(ModelChoice::Skill(route)) => return route.admit(agent).map(Decision::Route),
        Some(ModelChoice::Answer(id)) => case.prior.answer_to(agent, case.message, &id),
        Some(ModelChoice::Ask(question)) => {
            text = question;
            None
        }
        None => match case.prior.refinement(agent, case.message) {
            Some(route) => return route.admit(agent).map(Decision::Route),
            None if case.first.is_none() => case.prior.answer(agent, case.message),
            None => None,
        },
    };
    if let Some(answer) = answer {
        return apply_answer(agent, case, answer);
    }
    let fallback = agent.fallback().filter(|_| has_model);
    let fallback = fallback.map(|id| Route::to(id, case.message, "fallback").admit(agent));
    match fallback {
        Some(Ok(decision)) => Ok(Decision::Route(decision)),
        _ => {
            // The question that the message answers offers its open tasks again, if they still wait.
            let offer = case.offer.map_or(&[][..], |offer| &offer.tasks);
            let is_offered = |task: &TaskRecord| offer.iter().any(|it| it.id == task.id);
            let waits = |task: &TaskRecord| task.state() == TaskState::InputRequired;
            let tasks = (case.prior.tasks.iter()).filter(|it| waits(it) && is_offered(it));
            ask(agent, case, &tasks.collect::<Vec<_>>(), text.as_deref())
        }
    }
}

/// What a client has said to the router, without what chose something: the id or name of a skill,
/// or what the question before it offers.
#[must_use]
pub fn said_to_router<'m>(agent: &AgentDefinition, history: &'m [Message]) -> Vec<&'m Message> {
    let mut offer = Offer::default();
    let mut messages = Vec::new();
    for message in history {
        if message.role == Role::Agent {
            offer = Offer::of_question(agent, message);
        } else if messages.is_empty() || offer.choice(agent, message).is_none() {
            messages.push(message);
        }
    }
    messages
}

fn apply_answer(
    agent: &AgentDefinition,
    case: &RoutingQuestion<'_>,
    answer: Answer<'_>,
) -> Result<Decision, A2aError> {
    match answer {
        Answer::To(task) => Ok(Decision::Continue(task.clone().into(), None)),
        Answer::Unclear(tasks) => ask(agent, case, &tasks, None),
    }
}

/// Chooses the skill for the reply to a question of the router. A reply that only names an
/// offered skill sends the `original` message to that skill, with what it carries beside its
/// words: see [`join_messages`]. Any other reply is routed as a message of its own; `None` if no rule
/// decides.
///
/// # Errors
/// As for [`route`].
pub fn route_answer(
    agent: &AgentDefinition,
    original: &Message,
    offer: &Offer,
    reply: &RouteRequest<'_>,
) -> Result<Option<Routed>, A2aError> {
    let message = reply.message;
    let choice = offer.choice(agent, message);
    let answer = |id| Route::read(agent, id, &join_messages(original, message), "answer");
    if let Some(call) = explicit_route(agent, reply)? {
        let is_named = matches!(&choice, Some(Choice::Skill(id)) if *id == call.id);
        let is_choice = text(message).trim().is_empty() || is_named;
        let route = match is_choice && only_text(message) {
            true => answer(&call.id),
            false => call,
        };
        return route.admit(agent).map(Some);
    }
    let decision = match (choice, lacking(agent, offer, message)) {
        (Some(Choice::Skill(id)), _) => {
            let route = answer(&id);
            match agent.skill(&id) {
                Some(skill) if !reads(&**skill, &route) => ask_for_input(&id, &**skill),
                _ => route.admit(agent)?,
            }
        }
        (_, Some(route)) => route.admit(agent)?,
        _ => match route(agent, reply)? {
            Routed::Ask { .. } => return Ok(None),
            decision => decision,
        },
    };
    Ok(Some(decision))
}

/// Whether a skill takes the parts of a message and can decode them.
fn reads(skill: &dyn AnySkill, route: &Route) -> bool {
    let parts = route.content.parts();
    admits(skill.metadata(), parts) && skill.decode(&route.content).is_ok()
}

/// The input of the skill that the client has chosen and that could not read what was said before:
/// data, its JSON text, or what else the skill reads.
fn lacking(agent: &AgentDefinition, offer: &Offer, message: &Message) -> Option<Route> {
    let is_open = offer.lacks && command(agent, message).is_none();
    let id = offer.skills.first().filter(|_| is_open)?;
    let json = serde_json::from_str(&text(message)).ok();
    let route = match json.filter(Value::is_object) {
        Some(input) => Route::with_input(id, message, "text", Some(input)),
        None => Route::read(agent, id, message, "text"),
    };
    reads(&**agent.skill(id)?, &route).then_some(route)
}

/// The question for what a chosen skill lacks: its required members, or its media types.
fn ask_for_input(id: &SkillId, skill: &dyn AnySkill) -> Routed {
    let (metadata, schema) = (skill.metadata(), skill.input_schema());
    let names = schema.get("required").and_then(Value::as_array);
    let names = names.into_iter().flatten().filter_map(Value::as_str);
    let members = names.map(|name| {
        let kind = schema.pointer(&format!("/properties/{name}/type"));
        (name.to_owned(), kind.cloned().unwrap_or_default())
    });
    let members: serde_json::Map<_, _> = members.collect();
    let input = match members.is_empty() {
        true => metadata.input_modes.join(" or "),
        false => format!("data, as {}", Value::from(members)),
    };
    let offer = Offer {
        skills: vec![id.clone()],
        lacks: true,
        ..Offer::default()
    };
    Routed::Ask {
        slot: offer.slot(),
        question: vec![Part::text(format!(
            "{} (`{id}`) needs {input}.",
            metadata.name
        ))],
    }
}

/// Whether a message is a word that cancels the open question of `skill`, or of the router.
#[must_use]
pub fn cancels(agent: &AgentDefinition, skill: Option<&SkillId>, message: &Message) -> bool {
    let skill = skill.map(|id| agent.skill(id));
    let has_words = skill.is_none_or(|it| it.is_some_and(|it| it.metadata().cancel_words));
    let text = text(message);
    let is = |word: &str| Words::of(word).same(&Words::of(&text));
    let mut skills = agent.skills();
    let is_skill = skills.any(|(id, skill)| is(id.as_str()) || is(skill.metadata().name));
    has_words && only_text(message) && !is_skill && (is("cancel") || is("never mind"))
}

/// Step 9: the question, in the open one of the context if there is one. Of the skills that fit it
/// offers those first that declare the text, then that of the task that spoke last, then those
/// that share most words with the message.
fn ask(
    agent: &AgentDefinition,
    case: &RoutingQuestion<'_>,
    tasks: &[&TaskRecord],
    text: Option<&str>,
) -> Result<Decision, A2aError> {
    let mut skills = takers(agent, case.message)?;
    order(&mut skills, case.message);
    if let Some(last) = case.prior.last().and_then(|task| task.skill.as_ref()) {
        skills.sort_by_key(|(id, _)| *id != last);
    }
    let routes = match_text(&skills, case.message);
    skills.sort_by_key(|(id, _)| routes.iter().all(|route| route.id != **id));
    let is_choice = (case.offer).is_some_and(|it| it.choice(agent, case.message).is_some());
    let first = case.first.cloned().map(|first| match is_choice {
        true => first,
        false => with_line(first, case.message),
    });
    let asks = question(agent, tasks, skills, text, first.as_ref());
    let open = case.prior.question().filter(|_| case.first.is_none());
    Ok(match open {
        Some(question) => Decision::Continue(question.clone().into(), Some(asks)),
        None => Decision::Route(asks),
    })
}

/// The most skills that a question offers.
const OFFERED: usize = 5;
/// The most bytes of a text that a question shows.
const SHOWN: usize = 60;
/// How a question of the rules begins.
const WHICH: &str = "Which of these skills do you need? Answer with its number, id or name.";
/// The same with tasks that wait.
const WAITING: &str = "Which of these do you mean? Answer with its number.";
const ANY: &str = "For any other skill answer with its id or name, or write `/id` and your wish.";

/// The question that offers these tasks and skills. It begins with `text`, if a model asks. `first`
/// is what the client wrote before and now, which the skill gets.
fn question(
    agent: &AgentDefinition,
    tasks: &[&TaskRecord],
    mut skills: Skills<'_>,
    text: Option<&str>,
    first: Option<&Message>,
) -> Routed {
    skills.truncate(OFFERED);
    let which = if tasks.is_empty() { WHICH } else { WAITING };
    let mut question = text.unwrap_or(which).to_owned();
    if let Some(first) = first.map(text_of) {
        let words = cut(&first, SHOWN);
        question.push_str(&format!(" The skill that you choose gets \"{words}\"."));
    }
    let mut choices = Vec::new();
    let mut offer = |id: Value, name: &str, description: &str, line: &str| {
        choices.push(json!({ "id": id, "name": name, "description": description }));
        question.push_str(&format!("\n{}. {line}", choices.len()));
    };
    for task in tasks {
        let skill = task.skill.as_ref().and_then(|id| agent.skill(id));
        let name = skill.map_or("", |skill| skill.metadata().name);
        let words = task.status.message.as_ref().map(text_of);
        let words = words.unwrap_or_default();
        let words = format!("waits for the answer to \"{}\"", cut(&words, SHOWN));
        offer(json!(&task.id), name, &words, &format!("{name} {words}"));
    }
    for (id, skill) in &skills {
        let (name, description) = (skill.metadata().name, skill.metadata().description);
        let line = format!("{name} (`{id}`): {description}");
        offer(json!(id), name, description, &line);
    }
    question.push_str(&format!("\n{ANY}"));
    let mut question = Part::text(question);
    question.metadata.insert(CHOICES.to_owned(), choices.into());
    let tasks = tasks.iter().map(|task| OfferedTask {
        id: task.id.clone(),
        turn: task.turn,
    });
    let tasks = tasks.collect();
    let skills = skills.iter().map(|(id, _)| (*id).clone()).collect();
    let offer = Offer {
        tasks,
        skills,
        ..Offer::default()
    };
    Routed::Ask {
        slot: offer.slot(),
        question: vec![question],
    }
}

/// Step 4: the one of `takers` that alone takes the parts, or alone decodes the data part. Skills
/// that accept every value do not count then, since they would match any data.
fn by_parts<'a>(takers: &Skills<'a>, message: &Message) -> Option<(&'a SkillId, &'static str)> {
    if let [(only, _)] = takers.as_slice() {
        return Some((only, "media_type"));
    }
    let content = Content::from_parts(message.parts.clone());
    content.first_data()?;
    let mut fitting = (takers.iter())
        .filter(|(_, skill)| !takes_any(skill.input_schema()) && skill.decode(&content).is_ok());
    match (fitting.next(), fitting.next()) {
        (Some((id, _)), None) => Some((id, "schema")),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
