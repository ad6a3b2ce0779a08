//! Finds memories by their words, with BM25 over a list that fits in memory.
//!
//! The score is the share of the best possible score for the query, so it is between 0 and 1
//! and means the same for every list. A memory of average length that has each word of the
//! query once has about 0.43. A memory with one of two equally rare words has half of it.

mod words;

#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use words::{fold, words};

/// The most memories that one search reads.
pub(crate) const MEMORIES_MAX: usize = 2_000;
/// The most bytes of a query.
pub(crate) const QUERY_MAX: usize = 1_024;
/// The most results of a search.
pub(crate) const LIMIT_MAX: usize = 50;
/// The results of a search that names no limit.
const LIMIT: usize = 10;

/// How fast repetitions of a word stop to count: the usual value of BM25.
const K1: f64 = 1.2;
/// How much long memories lose against short ones: the usual value of BM25.
const B: f64 = 0.75;
/// A word in a tag counts like this many occurrences in the content.
const TAG_WEIGHT: f64 = 2.0;
/// The part of the score that the importance decides.
const IMPORTANCE_WEIGHT: f64 = 0.1;

/// How important a memory is: a number from 0 to 1, and never NaN.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Importance(f64);

impl Importance {
    /// `None` for a number outside of 0 to 1, and for NaN.
    pub(crate) fn new(value: f64) -> Option<Self> {
        (0.0..=1.0).contains(&value).then_some(Self(value))
    }

    /// The number.
    pub(crate) const fn get(self) -> f64 {
        self.0
    }
}

impl Default for Importance {
    /// The middle, for a memory without an importance.
    fn default() -> Self {
        Self(0.5)
    }
}

/// A memory as the search sees it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MemoryEntry {
    /// The id, unique in its layer and scope.
    pub(crate) id: String,
    /// The text.
    pub(crate) content: String,
    /// The rank of its layer: 0 is the narrowest.
    pub(crate) layer: u8,
    /// The id of the user, session, project and so on that it belongs to.
    pub(crate) scope_id: String,
    /// Its tags.
    pub(crate) tags: Vec<String>,
    /// When it was added, in milliseconds since 1970.
    pub(crate) created_at_ms: u64,
    /// How important it is.
    pub(crate) importance: Importance,
}

/// What to search for.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct MemoryQuery<'a> {
    /// The words, 1 to 1,024 bytes.
    pub(crate) text: &'a str,
    /// The ranks of the layers to search. Empty means all.
    pub(crate) layers: &'a [u8],
    /// A memory needs one of these tags, in any case of letters. Empty means no condition.
    pub(crate) tags: &'a [String],
    /// The most results, 1 to 50. `None` means 10.
    pub(crate) limit: Option<usize>,
    /// The smallest score of a result, 0 to 1. `None` means 0.
    pub(crate) threshold: Option<f64>,
}

/// One result.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Hit<'a> {
    /// The memory.
    pub(crate) memory: &'a MemoryEntry,
    /// How well it matches, above 0 and below 1.
    pub(crate) score: f64,
}

/// The results of a search.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Hits<'a> {
    /// The best results: narrow layers first, then high scores, new memories, small ids.
    pub(crate) hits: Vec<Hit<'a>>,
    /// How many memories match, without duplicates.
    pub(crate) total: usize,
}

/// The query cannot be run.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub(crate) enum SearchError {
    /// The text is empty or too long.
    #[error("`query` has {0} bytes, expected 1 to {QUERY_MAX}")]
    Query(usize),
    /// The limit is 0 or too large.
    #[error("`limit` is {0}, expected 1 to {LIMIT_MAX}")]
    Limit(usize),
    /// The threshold is outside of its range, or not a number.
    #[error("`threshold` is {0}, expected 0 to 1")]
    Threshold(f64),
    /// The caller gave more memories than one search reads.
    #[error("{0} memories to search, expected at most {MEMORIES_MAX}")]
    TooMany(usize),
}

/// Finds the memories that contain words of the query.
///
/// Two memories are duplicates if the larger of their word sets and the smaller one have at
/// least 95 % of their words in common (Jaccard). The one that is earlier in the order stays,
/// which is the one of the narrowest layer. Order and number of words do not count.
///
/// # Errors
/// [`SearchError`] names the argument that is out of range.
pub(crate) fn search<'a>(
    memories: &'a [MemoryEntry],
    query: &MemoryQuery<'_>,
) -> Result<Hits<'a>, SearchError> {
    let (limit, threshold) = check(memories, query)?;
    let index = Index::new(memories);
    let tags: HashSet<String> = query.tags.iter().map(|tag| fold(tag)).collect();
    let admits = |memory: &MemoryEntry| {
        let layer = query.layers.is_empty() || query.layers.contains(&memory.layer);
        let has_tag = || memory.tags.iter().any(|tag| tags.contains(&fold(tag)));
        layer && (tags.is_empty() || has_tag())
    };
    let terms = index.terms(query.text);
    let mut matches: Vec<(Hit<'a>, &Document)> = memories
        .iter()
        .zip(&index.documents)
        .filter(|(memory, _)| admits(memory))
        .map(|(memory, document)| {
            let score = index.score(&terms, document) * weight(memory.importance);
            (Hit { memory, score }, document)
        })
        .filter(|(hit, _)| hit.score > 0.0 && hit.score >= threshold)
        .collect();
    matches.sort_by(|(a, _), (b, _)| precedence(a, b));
    let distinct = without_duplicates(&index, matches);
    let total = distinct.len();
    let hits = distinct.into_iter().take(limit).collect();
    Ok(Hits { hits, total })
}

/// The limit and the threshold, if all arguments are in their range.
fn check(memories: &[MemoryEntry], query: &MemoryQuery<'_>) -> Result<(usize, f64), SearchError> {
    if query.text.is_empty() || query.text.len() > QUERY_MAX {
        return Err(SearchError::Query(query.text.len()));
    }
    let limit = query.limit.unwrap_or(LIMIT);
    if limit == 0 || limit > LIMIT_MAX {
        return Err(SearchError::Limit(limit));
    }
    // NaN is in no range.
    let threshold = query.threshold.unwrap_or(0.0);
    if !(0.0..=1.0).contains(&threshold) {
        return Err(SearchError::Threshold(threshold));
    }
    if memories.len() > MEMORIES_MAX {
        return Err(SearchError::TooMany(memories.len()));
    }
    Ok((limit, threshold))
}

/// What the importance leaves of a score.
fn weight(importance: Importance) -> f64 {
    IMPORTANCE_WEIGHT.mul_add(importance.get() - 1.0, 1.0)
}

/// A total order: narrow layer, high score, new, small id, small scope.
fn precedence(a: &Hit<'_>, b: &Hit<'_>) -> Ordering {
    let (left, right) = (a.memory, b.memory);
    left.layer
        .cmp(&right.layer)
        .then_with(|| b.score.total_cmp(&a.score))
        .then_with(|| right.created_at_ms.cmp(&left.created_at_ms))
        .then_with(|| left.id.cmp(&right.id))
        .then_with(|| left.scope_id.cmp(&right.scope_id))
}

/// Keeps the first of each group of duplicates.
///
/// Comparing all pairs takes seconds for 2,000 memories that are made from one template. Two
/// sets with 95 % in common share at least one of the rarest 5 % of their words, so only
/// memories with such a word in common are compared.
fn without_duplicates<'a>(index: &Index, hits: Vec<(Hit<'a>, &Document)>) -> Vec<Hit<'a>> {
    let mut distinct = Vec::with_capacity(hits.len());
    let mut by_word: HashMap<u32, Vec<&Document>> = HashMap::new();
    let mut without_words = HashSet::new();
    for (hit, document) in hits {
        let rarest = index.rarest(document);
        let candidates = rarest.iter().filter_map(|word| by_word.get(word));
        let is_known = if document.set.is_empty() {
            !without_words.insert(hit.memory.content.as_str())
        } else {
            candidates.flatten().any(|other| other.is_like(document))
        };
        if !is_known {
            distinct.push(hit);
            for word in rarest {
                by_word.entry(word).or_default().push(document);
            }
        }
    }
    distinct
}

/// The words of one memory, as numbers of the index.
#[derive(Debug)]
struct Document {
    /// The different words of the content, ascending.
    set: Vec<u32>,
    /// How often each word is in the content and, weighted, in the tags.
    weights: HashMap<u32, f64>,
    /// The words of the content, with repetitions.
    length: f64,
}

impl Document {
    /// Whether the Jaccard similarity of the word sets is at least 0.95.
    fn is_like(&self, other: &Self) -> bool {
        let together = self.set.len() + other.set.len();
        // similarity = (together - misses) / (together + misses) >= 19 / 20
        let most_misses = together / 39;
        if together == 0 || self.set.len().abs_diff(other.set.len()) > most_misses {
            return false;
        }
        let (mut left, mut right) = (self.set.iter().peekable(), other.set.iter().peekable());
        let mut misses = 0;
        loop {
            match (left.peek(), right.peek()) {
                (None, None) => return true,
                (Some(a), Some(b)) if a == b => {
                    left.next();
                    right.next();
                    continue;
                }
                (Some(a), Some(b)) if a < b => left.next(),
                (Some(_), None) => left.next(),
                _ => right.next(),
            };
            misses += 1;
            if misses > most_misses {
                return false;
            }
        }
    }
}

/// A word of a query.
#[derive(Debug)]
struct Term {
    /// Its number in the index. `None` if no memory has it.
    word: Option<u32>,
    /// How rare it is, above 0.
    rarity: f64,
}

/// The words of all memories of a search.
#[derive(Debug)]
struct Index {
    words: HashMap<String, u32>,
    /// How many memories have a word, by its number.
    memories_with: HashMap<u32, u32>,
    documents: Vec<Document>,
    mean_length: f64,
}

impl Index {
    fn new(memories: &[MemoryEntry]) -> Self {
        let mut index = Self {
            words: HashMap::new(),
            memories_with: HashMap::new(),
            documents: Vec::with_capacity(memories.len()),
            mean_length: 0.0,
        };
        for memory in memories {
            let document = index.document(memory);
            for word in document.weights.keys() {
                *index.memories_with.entry(*word).or_default() += 1;
            }
            index.mean_length += document.length;
            index.documents.push(document);
        }
        // At least one word, because the length is divided by it.
        index.mean_length = (index.mean_length / index.size().max(1.0)).max(1.0);
        index
    }

    /// The memories, as a number to calculate with.
    fn size(&self) -> f64 {
        u32::try_from(self.documents.len()).map_or(f64::MAX, f64::from)
    }

    fn document(&mut self, memory: &MemoryEntry) -> Document {
        let mut weights: HashMap<u32, f64> = HashMap::new();
        let mut length = 0.0;
        words(&memory.content, |word| {
            *weights.entry(self.number(word)).or_default() += 1.0;
            length += 1.0;
        });
        let mut set: Vec<u32> = weights.keys().copied().collect();
        set.sort_unstable();
        let mut tag_words = HashSet::new();
        for tag in &memory.tags {
            words(tag, |word| {
                tag_words.insert(self.number(word));
            });
        }
        for word in tag_words {
            *weights.entry(word).or_default() += TAG_WEIGHT;
        }
        Document {
            set,
            weights,
            length,
        }
    }

    /// The number of a word, a new one for a new word.
    fn number(&mut self, word: &str) -> u32 {
        if let Some(number) = self.words.get(word) {
            return *number;
        }
        // More words than numbers do not fit in memory.
        let next = u32::try_from(self.words.len()).unwrap_or(u32::MAX);
        self.words.insert(word.to_owned(), next);
        next
    }

    /// The rarest words of a document: at least one, and more than 5 % of them.
    fn rarest(&self, document: &Document) -> Vec<u32> {
        let mut words = document.set.clone();
        words.sort_by_cached_key(|word| (self.memories_with.get(word), *word));
        words.truncate(words.len() / 20 + 1);
        words
    }

    /// The different words of a query.
    fn terms(&self, query: &str) -> Vec<Term> {
        let mut distinct = HashSet::new();
        let mut terms = Vec::new();
        words(query, |word| {
            if distinct.insert(word.to_owned()) {
                let word = self.words.get(word).copied();
                let with = word.and_then(|word| self.memories_with.get(&word));
                let with = f64::from(with.copied().unwrap_or_default());
                let rarity = ((self.size() - with + 0.5) / (with + 0.5)).ln_1p();
                terms.push(Term { word, rarity });
            }
        });
        terms
    }

    /// The score of a document as a share of the best possible one, 0 without a common word.
    fn score(&self, terms: &[Term], document: &Document) -> f64 {
        let length = B.mul_add(document.length / self.mean_length, 1.0 - B);
        let (mut score, mut best) = (0.0, 0.0);
        for term in terms {
            let weight = term.word.and_then(|word| document.weights.get(&word));
            let weight = weight.copied().unwrap_or_default();
            // BM25 has the factor `K1 + 1`, which the division by the best score removes.
            score += term.rarity * weight / K1.mul_add(length, weight);
            best += term.rarity;
        }
        if best > 0.0 { score / best } else { 0.0 }
    }
}
