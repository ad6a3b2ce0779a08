//! Ranks texts by the words that they have in common with a query: BM25.

/// How fast repetitions of a word stop to count: the usual value of BM25.
const K1: f64 = 1.2;
/// How much long texts lose against short ones: the usual value of BM25.
const B: f64 = 0.75;

/// What a text has of the words of a query.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct WordMatch {
    /// How often it has each word of the query, weighted.
    counts: Vec<f64>,
    /// How many words it has.
    length: f64,
}

impl WordMatch {
    /// A text of `length` words that has none of the `words` words of a query.
    pub(super) fn new(words: usize, length: usize) -> Self {
        Self {
            counts: vec![0.0; words],
            length: number(length),
        }
    }

    /// Counts a word of the text with this weight, if `query` has it. `query` is sorted.
    pub(super) fn add(&mut self, query: &[String], word: &str, weight: f64) {
        let index = query.binary_search_by(|other| other.as_str().cmp(word));
        if let Some(count) = index.ok().and_then(|index| self.counts.get_mut(index)) {
            *count += weight;
        }
    }
}

/// How well some texts match a query.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct WordScores {
    /// The score of each text: 0 without a common word.
    pub(super) scores: Vec<f64>,
    /// What no score reaches.
    pub(super) best: f64,
}

/// Scores texts, each matched with the same query.
pub(super) fn rank(texts: &[WordMatch]) -> WordScores {
    let size = number(texts.len());
    let total: f64 = texts.iter().map(|text| text.length).sum();
    // At least 1, since it is a divisor and the texts may have no words.
    let mean = (total / size.max(1.0)).max(1.0);
    let words = texts.first().map_or(0, |text| text.counts.len());
    let rarities: Vec<f64> = (0..words)
        .map(|word| {
            let has = |text: &&WordMatch| text.counts.get(word).is_some_and(|count| *count > 0.0);
            let with = number(texts.iter().filter(has).count());
            ((size - with + 0.5) / (with + 0.5)).ln_1p()
        })
        .collect();
    let score = |text: &WordMatch| {
        let damping = K1 * B.mul_add(text.length / mean, 1.0 - B);
        let terms = rarities.iter().zip(&text.counts);
        let terms = terms.map(|(rarity, count)| rarity * count * (K1 + 1.0) / (count + damping));
        terms.sum()
    };
    WordScores {
        scores: texts.iter().map(score).collect(),
        best: rarities.iter().sum::<f64>() * (K1 + 1.0),
    }
}

/// A count, to calculate with.
fn number(count: usize) -> f64 {
    u32::try_from(count).map_or(f64::MAX, f64::from)
}
