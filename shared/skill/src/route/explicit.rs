//! Reads explicit calls of a skill. All accepted forms are in this module, because a later
//! A2A version may standardise one. In order:
//!
//! 1. `message.metadata["a2a-lambda/skillId"]`
//! 2. `skillId`, `skill_id` or `skill` in `message.metadata`, then in the request's
//!    metadata
//! 3. a data part `{"skill" | "tool": id, "input" | "params" | "arguments": {…}}`, or
//!    `{"name": id, "arguments": {…}}` if the agent has this skill. `arguments` may be JSON
//!    text, as the OpenAI API writes it
//!
//! If a message has several, they must name the same skill.

use super::by_model::cut;
use super::decision::{Route, RouteRequest, Wrapped};
use crate::{AgentDefinition, Content};
use a2a_lambda_model::task::metadata_keys::SKILL_ID;
use a2a_lambda_model::task::{A2aError, Message, Metadata, PartContent, SkillId};
use serde_json::Value;
use std::borrow::Cow;

/// Metadata keys that other A2A clients use.
const FOREIGN_KEYS: [&str; 3] = ["skillId", "skill_id", "skill"];

/// The most bytes of a client's text that an error repeats: no id of a skill is longer.
const SHOWN: usize = 64;

/// An explicit call, and the field that contains it.
pub(super) struct ExplicitCall {
    pub(super) field: String,
    pub(super) route: Route,
}

/// A skill id, and the field that contains it.
struct NamedSkill<'a> {
    field: String,
    id: &'a str,
}

/// The explicit call of a message, if there is one.
pub(super) fn call(
    agent: &AgentDefinition,
    request: &RouteRequest<'_>,
) -> Result<Option<ExplicitCall>, A2aError> {
    let message = request.message;
    let mut skills = Vec::new();
    in_metadata(&message.metadata, "message.metadata", &mut skills)?;
    in_metadata(request.request_metadata, "metadata", &mut skills)?;
    let data_call = in_data(agent, message)?;
    let mut arguments = None;
    if let Some(call) = data_call {
        arguments = Some((call.wrapper, call.arguments));
        skills.push(call.skill);
    }

    let mut skills = skills.into_iter();
    let Some(NamedSkill { field, id }) = skills.next() else {
        return Ok(None);
    };
    if let Some(other) = skills.find(|other| other.id != id) {
        let conflict = format!("contradicts `{field}`, which names `{}`", cut(id, SHOWN));
        return Err(A2aError::invalid(other.field, conflict));
    }
    let id = known(agent, &field, id)?;
    let mut route = Route::to(&id, message, "explicit");
    if let Some((wrapper, arguments)) = arguments {
        route.content = unwrapped(message, wrapper.part, arguments.into_owned());
        route.wrapper = Some(wrapper);
    }
    Ok(Some(ExplicitCall { field, route }))
}

fn known(agent: &AgentDefinition, field: &str, id: &str) -> Result<SkillId, A2aError> {
    let result = SkillId::parse(id).ok();
    result
        .filter(|id| agent.skill(id).is_some())
        .ok_or_else(|| {
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

/// An explicit call in a data part.
struct DataCall<'a> {
    skill: NamedSkill<'a>,
    wrapper: Wrapped,
    arguments: Cow<'a, Value>,
}

/// The members that hold the arguments of a call.
const ARGUMENTS: [&str; 3] = ["input", "params", "arguments"];

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
        let text = |key| data.get(key).and_then(Value::as_str);
        // With `tool`, the member `skill` names the set.
        let (skill, tool) = (text("skill"), text("tool"));
        let name = text("name").filter(|id| has(agent, id) && data.contains_key("arguments"));
        let arguments = ARGUMENTS.iter().find_map(|member| {
            let value = object(member, data.get(*member)?)?;
            Some((*member, value))
        });
        let path = format!("message.parts[{part}].data");
        let (Some(id), Some((member, arguments))) = (tool.or(skill).or(name), arguments) else {
            if tool.or(skill).or(name).is_some_and(|id| has(agent, id))
                && data.contains_key("arguments")
            {
                let why = "must be an object, or the JSON text of one";
                return Err(A2aError::invalid(format!("{path}.arguments"), why));
            }
            continue;
        };
        if ARGUMENTS
            .iter()
            .filter(|it| data.contains_key(**it))
            .count()
            > 1
        {
            return Err(A2aError::invalid(
                path,
                "give one of `input`, `params` and `arguments`",
            ));
        }
        if data_call.is_some() {
            return Err(A2aError::invalid(
                path,
                "a message holds one call of a skill",
            ));
        }
        let names = [("tool", tool), ("skill", skill), ("name", name)];
        let key = names.iter().find(|(_, id)| id.is_some());
        let field = format!("{path}.{}", key.map_or("name", |(key, _)| key));
        if let (Some(set), Some(tool)) = (skill, tool) {
            in_set(agent, &field, set, tool)?;
        }
        data_call = Some(DataCall {
            skill: NamedSkill { field, id },
            wrapper: Wrapped { part, member },
            arguments,
        });
    }
    Ok(data_call)
}

/// The arguments of a call: an object, or in `arguments` also JSON text of one.
fn object<'a>(member: &str, value: &'a Value) -> Option<Cow<'a, Value>> {
    match value {
        Value::Object(_) => Some(Cow::Borrowed(value)),
        Value::String(text) if member == "arguments" => {
            let value: Value = serde_json::from_str(text).ok()?;
            value.is_object().then_some(Cow::Owned(value))
        }
        _ => None,
    }
}

fn has(agent: &AgentDefinition, id: &str) -> bool {
    SkillId::parse(id).is_ok_and(|id| agent.skill(&id).is_some())
}

fn in_set(agent: &AgentDefinition, field: &str, set: &str, tool: &str) -> Result<(), A2aError> {
    let id = known(agent, field, tool)?;
    if agent.set_of(&id) == Some(set) {
        return Ok(());
    }
    let set = cut(set, SHOWN);
    let description = format!("the skill `{tool}` does not belong to the set `{set}`");
    Err(A2aError::invalid(field, description))
}

/// The parts of the message, with the call replaced by its arguments.
fn unwrapped(message: &Message, call: usize, arguments: Value) -> Content {
    let mut parts = message.parts.clone();
    if let Some(part) = parts.get_mut(call) {
        part.content = PartContent::Data(arguments);
    }
    Content::from_parts(parts)
}
