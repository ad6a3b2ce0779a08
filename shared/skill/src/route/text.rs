//! Chooses a skill by a text that the skill declares: a command, an example or a pattern.

use super::decision::{Route, Skills, takes_any};
use super::message_text::{command_of, cut, only_text, text};
use super::pattern::{TextPattern, Words, value};
use crate::media::admits;
use crate::{AgentDefinition, AnySkill, Content, SkillMetadata};
use a2a_lambda_model::task::{Message, Part, PartContent};
use serde_json::{Map, Value};
use std::cmp::Reverse;

/// The longest text that is compared with what skills declare, in bytes.
const TEXT_MAX: usize = 64 * 1024;

/// The skill of a text that starts with `/skill-id`, and the message without that word. An
/// unknown word after the slash is not a command. A JSON object behind the word is the input
/// of a skill that takes data.
pub(super) fn command(agent: &AgentDefinition, message: &Message) -> Option<Route> {
    let mut parts = message.parts.clone();
    let (sentence, content) = parts.iter_mut().find_map(|part| match &part.content {
        PartContent::Text(text) => Some((text.clone(), &mut part.content)),
        _ => None,
    })?;
    let (word, rest) = command_of(&sentence)?;
    let (id, skill) = agent.find_skill(word)?;
    *content = match arguments(&**skill, rest) {
        Some(arguments) => PartContent::Data(arguments.into()),
        None => PartContent::Text(rest.to_owned()),
    };
    Some(Route {
        content: Content::from_parts(parts),
        ..Route::to(id, message, "command")
    })
}

/// The text as the input of a skill that takes data: a JSON object, or nothing at all for a
/// skill that takes no text.
fn arguments(skill: &dyn AnySkill, text: &str) -> Option<Map<String, Value>> {
    let is_admitted = |part| admits(skill.metadata(), &[part]);
    if takes_any(skill.input_schema()) || !is_admitted(Part::data(Value::Null)) {
        return None;
    }
    match text {
        "" if !is_admitted(Part::text("")) => Some(Map::new()),
        text => serde_json::from_str(text).ok(),
    }
}

/// The skills that declare the text of a message and can read it. A pattern also reads an
/// example.
pub(super) fn match_text(skills: &Skills<'_>, message: &Message) -> Vec<Route> {
    let text = text(message);
    if text.len() > TEXT_MAX {
        return Vec::new();
    }
    let text = Words::of(&text);
    if text.is_empty() {
        return Vec::new();
    }
    let routes = skills.iter().filter_map(|(id, skill)| {
        let mut examples = skill.metadata().examples.iter();
        let is_example = examples.any(|example| Words::of(example).same(&text));
        let how = if is_example { "example" } else { "text" };
        let route = Route::with_input(id, message, how, input(&***skill, message));
        let is_declared = is_example || route.input.is_some();
        (is_declared && skill.decode(&route.content).is_ok()).then_some(route)
    });
    routes.collect()
}

/// The input that a pattern of the skill reads in a message of text, and that the skill
/// decodes.
pub(super) fn input(skill: &dyn AnySkill, message: &Message) -> Option<Value> {
    let (text, mut patterns) = (text(message), skill.metadata().text.iter());
    if patterns.len() == 0 || !only_text(message) || text.len() > TEXT_MAX {
        return None;
    }
    let (text, schema) = (Words::of(&text), skill.input_schema());
    // The place of a skill that takes a text, and no fields, is that text.
    let has_fields = schema.get("properties").is_some();
    let fits = |field: &str, text: &str| !has_fields || value(schema, field, text).is_some();
    let decode = |places: &[(&str, &str)]| {
        if let ([(_, text)], false) = (places, has_fields) {
            return Some(Value::from(*text));
        }
        let values = places.iter().map(|(field, text)| {
            let value = value(schema, field, text)?;
            Some(((*field).to_owned(), value))
        });
        let input = Value::Object(values.collect::<Option<_>>()?);
        let content = Content::from_parts(vec![Part::data(input.clone())]);
        skill.decode(&content).is_ok().then_some(input)
    };
    patterns.find_map(|pattern| {
        let pattern = TextPattern::parse(pattern).ok()?;
        pattern.read(&text, &fits, &decode)
    })
}

/// Puts the skills that share words with a message first, those that share most before the
/// others. It decides nothing: it orders an offer.
pub(super) fn order(skills: &mut Skills<'_>, message: &Message) {
    let text = text(message);
    let text = Words::of(cut(&text, TEXT_MAX));
    let text = text.long();
    skills.sort_by_cached_key(|(_, skill)| {
        let metadata = skill.metadata();
        let mut description = format!("{} {}", metadata.name, metadata.description);
        for word in metadata.tags.iter().chain(metadata.examples) {
            description.push(' ');
            description.push_str(word);
        }
        Reverse(Words::of(&description).long().intersection(&text).count())
    });
}

/// Whether a message is a text that refines the results of the skill. A place takes any text.
pub(super) fn refines(skill: &SkillMetadata, message: &Message) -> bool {
    let text = text(message);
    if !only_text(message) || text.len() > TEXT_MAX {
        return false;
    }
    let text = Words::of(&text);
    let mut patterns = (skill.refines.iter()).filter_map(|it| TextPattern::parse(it).ok());
    patterns.any(|pattern| {
        let input = pattern.read(&text, &|_, _| true, &|_| Some(Value::Null));
        input.is_some()
    })
}
