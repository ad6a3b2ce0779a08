//! Chooses a skill by the text: a command, an example, or the best match of words (BM25).

use super::{Skills, takes_any};
use crate::media::admits;
use crate::{AgentDefinition, AnySkill, Content, SkillMetadata};
use a2a_lambda_model::task::{Message, Part, PartContent, SkillId};
use serde_json::{Map, Value};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

/// BM25 parameters with their usual values: saturation of repeated words (`K1`) and
/// discount for long texts (`B`).
const K1: f64 = 1.2;
const B: f64 = 0.75;
/// The lowest score that decides. A word that only one of two skills has scores about 0.7.
const FLOOR: f64 = 0.5;
/// The factor by which the best score must exceed the second.
const MARGIN: f64 = 1.5;

/// Words that are too common to indicate a skill.
const STOP_WORDS: [&str; 68] = [
    "a", "about", "am", "an", "and", "any", "are", "as", "at", "be", "been", "but", "by", "can",
    "could", "did", "do", "does", "for", "from", "give", "had", "has", "have", "help", "how", "i",
    "if", "in", "is", "it", "its", "like", "me", "my", "need", "not", "of", "on", "or", "our",
    "please", "should", "so", "that", "the", "them", "there", "these", "they", "this", "those",
    "to", "us", "want", "was", "we", "were", "what", "when", "where", "which", "who", "will",
    "with", "would", "you", "your",
];

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
pub(super) fn command(agent: &AgentDefinition, message: &Message) -> Option<(SkillId, Content)> {
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
    Some((id, Content::from_parts(parts)))
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
    let has = |metadata: &SkillMetadata| metadata.examples.iter().any(|one| plain(one) == sentence);
    let mut matching = skills.iter().filter(|(_, skill)| has(skill.metadata()));
    match (matching.next(), matching.next()) {
        (Some((id, _)), None) => Some(id),
        _ => None,
    }
}

/// Skills by score, the best first; equal scores in the order in which the skills were
/// added.
pub(super) struct Ranking<'a> {
    scores: Vec<(&'a SkillId, f64)>,
}

impl<'a> Ranking<'a> {
    /// The best skill, if its score reaches [`FLOOR`] and exceeds the second by [`MARGIN`].
    pub(super) fn winner(&self) -> Option<(&'a SkillId, f64)> {
        let mut scores = self.scores.iter();
        let (id, best) = scores.next()?;
        let second = scores.next().map_or(0.0, |(_, score)| *score);
        (*best >= FLOOR && *best >= second * MARGIN).then_some((*id, *best))
    }

    /// The skills with a score above 0, or all skills if there are none.
    pub(super) fn candidates(&self) -> Vec<SkillId> {
        let matches = self.scores.iter().filter(|(_, score)| *score > 0.0);
        let matching: Vec<SkillId> = matches.map(|(id, _)| (*id).clone()).collect();
        if matching.is_empty() {
            return self.scores.iter().map(|(id, _)| (*id).clone()).collect();
        }
        matching
    }
}

/// Ranks the skills by the text of the message.
pub(super) fn rank<'a>(skills: &Skills<'a>, message: &Message) -> Ranking<'a> {
    let documents: Vec<SkillTerms> = skills
        .iter()
        .map(|(_, skill)| SkillTerms::of(skill.metadata()))
        .collect();
    let terms: BTreeSet<String> = terms(&text(message)).collect();
    let corpus = Corpus::of(&documents);
    let scores = documents.iter().map(|document| {
        let score = |term: &String| corpus.score(document, term);
        terms.iter().map(score).sum::<f64>()
    });
    let mut scores: Vec<_> = skills.iter().map(|(id, _)| *id).zip(scores).collect();
    scores.sort_by(|(_, a), (_, b)| b.partial_cmp(a).unwrap_or(Ordering::Equal));
    Ranking { scores }
}

/// The words of a skill with the sum of their weights.
struct SkillTerms {
    weights: BTreeMap<String, f64>,
    length: f64,
}

impl SkillTerms {
    fn of(skill: &SkillMetadata) -> Self {
        let mut weights = BTreeMap::new();
        let mut add = |text: &str, weight: f64| {
            for term in terms(text) {
                *weights.entry(term).or_insert(0.0) += weight;
            }
        };
        // Id and name weigh double: they describe a skill better than running text does.
        add(skill.id, 2.0);
        if skill.name != skill.id {
            add(skill.name, 2.0);
        }
        add(skill.description, 1.0);
        skill.examples.iter().for_each(|text| add(text, 1.0));
        skill.tags.iter().for_each(|text| add(text, 1.0));
        let length = weights.values().sum();
        Self { weights, length }
    }
}

struct Corpus<'a> {
    documents: &'a [SkillTerms],
    count: f64,
    average: f64,
}

impl<'a> Corpus<'a> {
    fn of(documents: &'a [SkillTerms]) -> Self {
        let count = documents.iter().map(|_| 1.0).sum::<f64>();
        let total = documents
            .iter()
            .map(|document| document.length)
            .sum::<f64>();
        Self {
            documents,
            count,
            // At least 1, since it is a divisor and the skills may have no words.
            average: (total / count).max(1.0),
        }
    }

    fn score(&self, document: &SkillTerms, term: &str) -> f64 {
        let Some(weight) = document.weights.get(term) else {
            return 0.0;
        };
        let with = |document: &&SkillTerms| document.weights.contains_key(term);
        let having = self.documents.iter().filter(with).map(|_| 1.0).sum::<f64>();
        let rarity = (1.0 + (self.count - having + 0.5) / (having + 0.5)).ln();
        let damping = K1 * (1.0 - B + B * document.length / self.average);
        rarity * weight * (K1 + 1.0) / (weight + damping)
    }
}

fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
}

/// The words of a text without stop words and without a plural `s`.
fn terms(text: &str) -> impl Iterator<Item = String> {
    words(text)
        .filter(|word| !STOP_WORDS.contains(&word.as_str()))
        .map(|word| match word.strip_suffix('s') {
            // Short words and words like `class` keep their `s`.
            Some(stem) if stem.len() > 2 && !stem.ends_with('s') => stem.to_owned(),
            _ => word,
        })
}
