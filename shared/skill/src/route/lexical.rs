//! Chooses a skill by a text that the skill declares: a command, an example, or its id.

use super::{Route, Skills, only, takes_any};
use crate::media::admits;
use crate::{AgentDefinition, AnySkill, Content};
use a2a_lambda_model::task::{Message, Part, PartContent, SkillId};
use serde_json::{Map, Value};

fn text(message: &Message) -> String {
    let texts = message.parts.iter().filter_map(|part| match &part.content {
        PartContent::Text(text) => Some(text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// The skill of a text that starts with `/skill-id`, and the message without that word. An
/// unknown word after the slash is not a command. A JSON object behind the word is the input
/// of a skill that takes data.
pub(super) fn command(agent: &AgentDefinition, message: &Message) -> Option<Route> {
    let mut parts = message.parts.clone();
    let (sentence, content) = parts.iter_mut().find_map(|part| match &part.content {
        PartContent::Text(text) => Some((text.clone(), &mut part.content)),
        _ => None,
    })?;
    let rest = sentence.trim_start().strip_prefix('/')?;
    let (word, rest) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let id = SkillId::parse(word).ok()?;
    let skill = agent.skill(&id)?;
    let rest = rest.trim_start();
    *content = match arguments(&**skill, rest) {
        Some(arguments) => PartContent::Data(arguments.into()),
        None => PartContent::Text(rest.to_owned()),
    };
    Some(Route {
        content: Content::from_parts(parts),
        ..Route::to(&id, message, "command")
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

/// The skill whose id is the whole text.
pub(super) fn bare_id<'a>(agent: &'a AgentDefinition, message: &Message) -> Option<&'a SkillId> {
    let word = text(message);
    let word = word.trim().trim_matches('`').trim_start_matches('/');
    let mut skills = agent.skills().map(|(id, _)| id);
    skills.find(|id| id.as_str().eq_ignore_ascii_case(word))
}

/// The only skill that has the text as an example. Case and punctuation are ignored.
pub(super) fn example<'a>(skills: &Skills<'a>, message: &Message) -> Option<&'a SkillId> {
    let plain = |text: &str| words(text).collect::<Vec<_>>();
    let sentence = plain(&text(message));
    if sentence.is_empty() {
        return None;
    }
    only(skills, |skill| {
        let mut examples = skill.metadata().examples.iter();
        examples.any(|example| plain(example) == sentence)
    })
}

fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
}
