//! Finds memories by their words, over a list that fits in memory.
//!
//! The score is the share of the best possible score for the query, so it is between 0 and 1
//! and means the same for every list. A memory of average length that has each word of the
//! query once has about 0.43. A memory with one of two equally rare words has half of it.

#[cfg(test)]
mod tests;

use super::ranking::{WordMatch, rank};
use super::store::Memory;
use crate::content::check_count;
use crate::layer::Layer;
use crate::pages::limit;
use crate::words::{fold, words};
use a2a_lambda::skill::{AgentError, AgentResult};
use schemars::JsonSchema;
use serde::Deserialize;
use std::cmp::Ordering;
use std::collections::{BTreeSet, HashSet};

/// The most bytes of a query.
pub(crate) const QUERY_MAX: usize = 1_024;
/// A word in a tag counts like this many occurrences in the content.
const TAG_WEIGHT: f64 = 2.0;
/// The part of the score that the importance decides.
const IMPORTANCE_WEIGHT: f64 = 0.1;

/// A search.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct MemorySearch {
    /// The words to find, 1 to 1,024 bytes.
    pub(super) query: String,
    /// The layers to search; all that the caller has by default.
    #[serde(default)]
    pub(super) layers: Vec<Layer>,
    /// A memory needs one of these tags.
    #[serde(default)]
    pub(super) tags: Vec<String>,
    /// The most results, 1 to 50; 10 by default.
    #[serde(default)]
    pub(super) limit: Option<usize>,
    /// The smallest score of a result, 0 to 1.
    #[serde(default)]
    pub(super) threshold: Option<f64>,
}

/// One result.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hit<'a> {
    pub(super) memory: &'a Memory,
    /// How well it matches, above 0 and below 1.
    pub(super) score: f64,
}

/// The results of a search.
#[derive(Debug)]
pub(super) struct Hits<'a> {
    /// The best results: narrow layers first, then high scores, new memories, small ids.
    pub(super) hits: Vec<Hit<'a>>,
    /// How many memories match, without duplicates.
    pub(super) total: usize,
}

/// Finds the memories that contain words of the query. Of memories with the same words the
/// first in the order stays, which is that of the narrowest layer.
///
/// # Errors
/// `INVALID_INPUT` names the argument that is out of range.
pub(super) fn search<'a>(memories: &'a [Memory], search: &MemorySearch) -> AgentResult<Hits<'a>> {
    let (limit, threshold) = search.check()?;
    let query: BTreeSet<String> = words(&search.query).into_iter().collect();
    let query: Vec<String> = query.into_iter().collect();
    let tags: HashSet<String> = search.tags.iter().map(|tag| fold(tag)).collect();
    let has_tag = |memory: &Memory| {
        memory
            .record
            .tags
            .iter()
            .any(|tag| tags.contains(&fold(tag)))
    };
    let texts: Vec<WordMatch> = memories
        .iter()
        .map(|memory| match_words(memory, &query))
        .collect();
    let ranking = rank(&texts);
    let scores = memories.iter().zip(ranking.scores);
    let mut hits: Vec<Hit<'a>> = scores
        .filter(|(memory, _)| tags.is_empty() || has_tag(memory))
        .map(|(memory, score)| Hit {
            memory,
            score: score / ranking.best * weight(memory.record.importance),
        })
        .filter(|hit| hit.score > 0.0 && hit.score >= threshold)
        .collect();
    hits.sort_by(precedence);
    let mut contents = HashSet::new();
    hits.retain(|hit| contents.insert(without_order(&hit.memory.record.content)));
    let total = hits.len();
    hits.truncate(limit);
    Ok(Hits { hits, total })
}

impl MemorySearch {
    /// The limit and the threshold, if all arguments are in their range.
    fn check(&self) -> AgentResult<(usize, f64)> {
        let limit = limit(self.limit)?;
        check_count("query", "bytes", self.query.len(), 1..=QUERY_MAX)?;
        let threshold = self.threshold.unwrap_or(0.0);
        // NaN is in no range.
        if !(0.0..=1.0).contains(&threshold) {
            let text = format!("`threshold` is {threshold}, expected 0 to 1");
            return Err(AgentError::invalid_input(text));
        }
        Ok((limit, threshold))
    }
}

/// What a memory has of the words of a query, which are sorted.
fn match_words(memory: &Memory, query: &[String]) -> WordMatch {
    let content = words(&memory.record.content);
    let mut text = WordMatch::new(query.len(), content.len());
    content.iter().for_each(|word| text.add(query, word, 1.0));
    let tags = memory.record.tags.iter().flat_map(|tag| words(tag));
    let tags: BTreeSet<String> = tags.collect();
    tags.iter()
        .for_each(|word| text.add(query, word, TAG_WEIGHT));
    text
}

/// The different words of a text, so that their order and number do not count; the text itself
/// if it has no words.
fn without_order(text: &str) -> String {
    let set: BTreeSet<String> = words(text).into_iter().collect();
    if set.is_empty() {
        return text.to_owned();
    }
    set.into_iter().collect::<Vec<_>>().join(" ")
}

/// What the importance leaves of a score.
fn weight(importance: f64) -> f64 {
    IMPORTANCE_WEIGHT.mul_add(importance - 1.0, 1.0)
}

/// A total order: narrow layer, high score, new, small id, small scope.
fn precedence(a: &Hit<'_>, b: &Hit<'_>) -> Ordering {
    let (first, second) = (a.memory, b.memory);
    first
        .layer
        .cmp(&second.layer)
        .then_with(|| b.score.total_cmp(&a.score))
        .then_with(|| second.record.created_at.cmp(&first.record.created_at))
        .then_with(|| first.id.cmp(&second.id))
        .then_with(|| first.scope_id.cmp(&second.scope_id))
}
