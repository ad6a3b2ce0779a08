//! Reads explicit calls of a skill in metadata and data; `text` reads the command `/skill-id`. All
//! forms in metadata and data are in this module, because a later A2A version may standardise
//! one. In order:
//!
//! 1. `message.metadata["a2a-lambda/skillId"]`
//! 2. `skillId`, `skill_id` or `skill` in `message.metadata`, then in the request's
//!    metadata
//! 3. a data part `{"skill" | "tool" | "tool_name" | "name": id, "input" | "params" | "arguments" |
//!    "tool_input": {…} | "text"}`, or as the OpenAI API writes a call:
//!    `{"type": "function", "function": {"name": id, "arguments": "{…}"}}` and
//!    `{"type": "function_call", "name": id, "arguments": "{…}"}`
//!
//! If a message has several, they must name the same skill.

use super::decision::{ArgumentsAt, Route, RouteRequest};
use super::message_text::cut;
use crate::media::admits;
use crate::{AgentDefinition, Content};
use a2a_lambda_model::task::metadata_keys::SKILL_ID;
use a2a_lambda_model::task::{A2aError, Message, Metadata, Part, PartContent, SkillId};
use serde_json::{Map, Value};
use std::borrow::Cow;

/// Metadata keys that other A2A clients use.
const FOREIGN_KEYS: [&str; 3] = ["skillId", "skill_id", "skill"];

/// The most bytes of a client's text that an error repeats: no id of a skill is longer.
const SHOWN: usize = 64;

/// A skill id, and the field that contains it.
struct NamedSkill<'a> {
    field: String,
    id: &'a str,
}

/// Steps 1 and 2. INVARIANT: no model is in scope, and no later step runs when the message
/// names a skill.
pub(super) fn explicit_route(
    agent: &AgentDefinition,
    request: &RouteRequest<'_>,
) -> Result<Option<Route>, A2aError> {
    let call = call(agent, request)?;
    let Some(id) = request.pinned else {
        return Ok(call.map(|(_, route)| route));
    };
    match call {
        Some((field, route)) if route.id != *id => Err(A2aError::invalid(
            field,
            format!("the task belongs to the skill `{id}`"),
        )),
        // The message may name the skill of its own task.
        Some((_, route)) => Ok(Some(Route {
            how: "pinned",
            ..route
        })),
        None => Ok(Some(Route::to(id, request.message, "pinned"))),
    }
}

/// The explicit call of a message, if there is one, with the field that contains it.
fn call(
    agent: &AgentDefinition,
    request: &RouteRequest<'_>,
) -> Result<Option<(String, Route)>, A2aError> {
    let message = request.message;
    let mut skills = Vec::new();
    in_metadata(&message.metadata, "message.metadata", &mut skills)?;
    in_metadata(request.request_metadata, "metadata", &mut skills)?;
    let mut arguments = None;
    if let Some((skill, wrapper, content)) = in_data(agent, message)? {
        arguments = Some((wrapper, content));
        skills.push(skill);
    }

    let mut skills = skills.into_iter();
    let Some(NamedSkill { field, id }) = skills.next() else {
        return Ok(None);
    };
    if let Some(other) = skills.find(|other| other.id != id) {
        let conflict = format!("contradicts `{field}`, which names `{}`", cut(id, SHOWN));
        return Err(A2aError::invalid(other.field, conflict));
    }
    let id = require_skill(agent, &field, id)?;
    let mut route = Route::to(id, message, "explicit");
    if let Some((wrapper, arguments)) = arguments {
        route.content = unwrap_call(message, wrapper.part, arguments);
        route.wrapper = Some(wrapper);
    }
    Ok(Some((field, route)))
}

fn require_skill<'a>(
    agent: &'a AgentDefinition,
    field: &str,
    id: &str,
) -> Result<&'a SkillId, A2aError> {
    agent.find_skill(id).map(|(id, _)| id).ok_or_else(|| {
        let ids: Vec<_> = agent.skills().map(|(id, _)| format!("`{id}`")).collect();
        let (id, names) = (cut(id, SHOWN), ids.join(", "));
        A2aError::invalid(field, format!("unknown skill `{id}`; known are {names}"))
    })
}

fn in_metadata<'a>(
    metadata: &'a Metadata,
    path: &str,
    skills: &mut Vec<NamedSkill<'a>>,
) -> Result<(), A2aError> {
    for key in [SKILL_ID].into_iter().chain(FOREIGN_KEYS) {
        let field = || match key {
            SKILL_ID => format!("{path}[\"{key}\"]"),
            _ => format!("{path}.{key}"),
        };
        match metadata.get(key) {
            // `null` names no skill.
            None | Some(Value::Null) => {}
            Some(Value::String(id)) => skills.push(NamedSkill { field: field(), id }),
            Some(_) => return Err(A2aError::invalid(field(), "a skill id is a text")),
        }
    }
    Ok(())
}

/// An explicit call in a data part: the skill, where its arguments are, and the arguments.
type DataCall<'a> = (NamedSkill<'a>, ArgumentsAt, PartContent);

/// The members that name the skill of a call. With one of the first two, `skill` names the set.
const NAMES: [&str; 4] = ["tool_name", "tool", "skill", "name"];
/// The members that hold the arguments of a call.
const ARGUMENTS: [&str; 4] = ["input", "params", "arguments", "tool_input"];

/// Form 3. It needs both members, so that ordinary data with a member `skill` is not a
/// call.
fn in_data<'a>(
    agent: &AgentDefinition,
    message: &'a Message,
) -> Result<Option<DataCall<'a>>, A2aError> {
    let mut data_call: Option<DataCall<'_>> = None;
    for (part, content) in message.parts.iter().map(|part| &part.content).enumerate() {
        let PartContent::Data(Value::Object(data)) = content else {
            continue;
        };
        let path = format!("message.parts[{part}].data");
        let kind = data.get("type").and_then(Value::as_str);
        let call = match (kind, data.get("function")) {
            (Some("function"), Some(Value::Object(function))) => {
                in_object(agent, &format!("{path}.function"), part, function)?
            }
            _ => in_object(agent, &path, part, data)?,
        };
        if call.is_some() && data_call.is_some() {
            let why = "a message holds one call of a skill";
            return Err(A2aError::invalid(path, why));
        }
        data_call = data_call.or(call);
    }
    Ok(data_call)
}

/// The call in an object at `path`. A text is the input of a skill of this agent that takes text.
/// The member `name` is ordinary data unless it names a skill of this agent, also beside a text in
/// a member that is not only for calls.
fn in_object<'a>(
    agent: &AgentDefinition,
    path: &str,
    part: usize,
    data: &'a Map<String, Value>,
) -> Result<Option<DataCall<'a>>, A2aError> {
    let text = |key: &&'static str| Some((*key, data.get(*key)?.as_str()?));
    let mut members = ARGUMENTS.into_iter().filter(|it| data.contains_key(*it));
    let call = NAMES.iter().find_map(text).zip(members.next());
    let Some(((key, id), member)) = call else {
        return Ok(None);
    };
    let value = arguments(member, data.get(member).unwrap_or(&Value::Null));
    let skill = agent.find_skill(id).map(|(_, skill)| skill);
    let is_known = skill.is_some();
    let is_call = match &*value {
        Value::Object(_) => is_known || key != "name",
        Value::String(_) if key == "name" => {
            is_known && ["arguments", "tool_input"].contains(&member)
        }
        _ => is_known,
    };
    if !is_call {
        return Ok(None);
    }
    if members.next().is_some() {
        let why = "give one of `input`, `params`, `arguments` and `tool_input`";
        return Err(A2aError::invalid(path, why));
    }
    let field = format!("{path}.{key}");
    if let (Some((_, set)), "tool" | "tool_name") = (text(&"skill"), key) {
        in_set(agent, &field, set, id)?;
    }
    let takes_text = skill.is_some_and(|it| admits(it.metadata(), &[Part::text("")]));
    let content = match value.into_owned() {
        value @ Value::Object(_) => PartContent::Data(value),
        Value::String(text) if takes_text => PartContent::Text(text),
        _ => {
            let or_text = if takes_text { " or a text" } else { "" };
            let why = format!("the input of the skill `{id}` is a JSON object{or_text}");
            return Err(A2aError::invalid(format!("{path}.{member}"), why));
        }
    };
    let member = match path.ends_with(".function") {
        true => "function.arguments",
        false => member,
    };
    let wrapper = ArgumentsAt { part, member };
    Ok(Some((NamedSkill { field, id }, wrapper, content)))
}

/// The value of a member. The OpenAI API writes `arguments` as the JSON text of an object; a text
/// that begins as JSON and is no object is no value.
fn arguments<'a>(member: &str, value: &'a Value) -> Cow<'a, Value> {
    let Some(text) = value.as_str().filter(|_| member == "arguments") else {
        return Cow::Borrowed(value);
    };
    match serde_json::from_str(text) {
        Ok(json @ Value::Object(_)) => Cow::Owned(json),
        _ if text.trim_start().starts_with(['{', '[']) => Cow::Owned(Value::Null),
        _ => Cow::Borrowed(value),
    }
}

fn in_set(agent: &AgentDefinition, field: &str, set: &str, tool: &str) -> Result<(), A2aError> {
    let id = require_skill(agent, field, tool)?;
    if agent.set_of(id) == Some(set) {
        return Ok(());
    }
    let set = cut(set, SHOWN);
    let description = format!("the skill `{tool}` does not belong to the set `{set}`");
    Err(A2aError::invalid(field, description))
}

/// The parts of the message, with the call replaced by its arguments.
fn unwrap_call(message: &Message, call: usize, arguments: PartContent) -> Content {
    let mut parts = message.parts.clone();
    if let Some(part) = parts.get_mut(call) {
        // The call may name its own media type.
        part.media_type
            .take_if(|_| matches!(arguments, PartContent::Text(_)));
        part.content = arguments;
    }
    Content::from_parts(parts)
}
