//! Patterns of texts: `add {a} and {b}` is a whole message, with a place for each field.
//!
//! A text is words and signs. Case, spacing and final punctuation do not count.

use serde_json::Value;
use std::collections::BTreeSet;

/// Signs at the end of a text that do not count.
const FINAL: [&str; 9] = [".", "!", "?", ",", ";", ":", "…", "。", "？"];

/// How many borders of the places are tried, if no input is decoded.
const TRIES: usize = 16;

/// How many borders are looked at. Three places may try each pair of words of a long text.
const STEPS: usize = 200_000;

/// A text as its words and signs.
pub(super) struct Words<'t> {
    text: &'t str,
    /// Each word or sign in lower case, with its place in the text.
    words: Vec<(String, usize, usize)>,
}

impl<'t> Words<'t> {
    /// The words and signs of a text, without its final punctuation.
    pub(super) fn of(text: &'t str) -> Self {
        let mut all = Self::all(text);
        while (all.words.last()).is_some_and(|(word, ..)| FINAL.contains(&word.as_str())) {
            all.words.pop();
        }
        all
    }

    fn all(text: &'t str) -> Self {
        let mut words: Vec<(String, usize, usize)> = Vec::new();
        let mut is_open = false;
        for (at, char) in text.char_indices() {
            let end = at + char.len_utf8();
            // A typographic apostrophe is an apostrophe.
            let lower = match char {
                '\u{2019}' => "'".to_owned(),
                char => char.to_lowercase().to_string(),
            };
            let is_word = char.is_alphanumeric();
            match words.last_mut() {
                Some((word, _, last)) if is_open && is_word => {
                    word.push_str(&lower);
                    *last = end;
                }
                _ if !char.is_whitespace() => words.push((lower, at, end)),
                _ => {}
            }
            is_open = is_word;
        }
        Self { text, words }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Whether both say the same, letter for letter.
    pub(super) fn same(&self, other: &Words<'_>) -> bool {
        let others = other.words.iter().map(|(word, ..)| word);
        self.words.iter().map(|(word, ..)| word).eq(others)
    }

    /// The words of two letters and more.
    pub(super) fn long(&self) -> BTreeSet<&str> {
        let words = self.words.iter().map(|(word, ..)| word.as_str());
        words.filter(|word| word.chars().count() > 1).collect()
    }

    fn begins(&self, at: usize, words: &[String]) -> bool {
        let rest = self.words.get(at..).unwrap_or_default();
        let mut rest = rest.iter().map(|(word, ..)| word);
        words.iter().all(|word| rest.next() == Some(word))
    }

    /// The text from word `start` to before word `end`.
    fn slice(&self, start: usize, end: usize) -> &'t str {
        let first = self.words.get(start).map(|(_, first, _)| *first);
        let last = end.checked_sub(1).and_then(|last| self.words.get(last));
        let range = first.zip(last.map(|(_, _, last)| *last));
        range
            .and_then(|(first, last)| self.text.get(first..last))
            .unwrap_or_default()
    }
}

/// A part of a pattern.
enum Piece<'p> {
    Words(Vec<String>),
    Place(&'p str),
}

/// A text with places for the fields of an input.
pub(crate) struct TextPattern<'p>(Vec<Piece<'p>>);

impl<'p> TextPattern<'p> {
    /// Reads a pattern.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn parse(pattern: &'p str) -> Result<Self, &'static str> {
        let mut pieces: Vec<Piece<'p>> = Vec::new();
        let mut rest = pattern;
        while !rest.is_empty() {
            let (text, tail) = rest.split_once('{').unwrap_or((rest, ""));
            let is_last = text.len() == rest.len();
            // A place holds whole words.
            let is_touched = (!is_last && text.ends_with(char::is_alphanumeric))
                || (!pieces.is_empty() && text.starts_with(char::is_alphanumeric));
            if is_touched {
                return Err("a place needs a space or a sign beside it");
            }
            let words = if is_last {
                Words::of(text)
            } else {
                Words::all(text)
            };
            let words = words.words;
            if !words.is_empty() {
                pieces.push(Piece::Words(words.into_iter().map(|it| it.0).collect()));
            }
            if is_last {
                break;
            }
            let (name, after) = tail.split_once('}').ok_or("a place has no `}`")?;
            if matches!(pieces.last(), Some(Piece::Place(_))) {
                return Err("two places need a word or a sign between them");
            }
            if pieces
                .iter()
                .any(|it| matches!(it, Piece::Place(other) if *other == name))
            {
                return Err("a place is there twice");
            }
            pieces.push(Piece::Place(name));
            rest = after;
        }
        match pieces.iter().any(|it| matches!(it, Piece::Words(_))) {
            true => Ok(Self(pieces)),
            false => Err("a pattern needs a word or a sign"),
        }
    }

    /// The names of its places.
    pub(crate) fn places(&self) -> impl Iterator<Item = &'p str> {
        self.0.iter().filter_map(|piece| match piece {
            Piece::Place(name) => Some(*name),
            Piece::Words(_) => None,
        })
    }

    /// The input that `decode` makes of the places, if a text is the pattern. A place takes the
    /// least text that `fits`, lets the rest fit, and decodes.
    pub(super) fn read<'t>(
        &self,
        text: &Words<'t>,
        fits: &dyn Fn(&str, &str) -> bool,
        decode: &Decode<'_>,
    ) -> Option<Value> {
        let mut search = Search {
            pattern: self,
            text,
            fits,
            decode,
            dead: BTreeSet::new(),
            values: Vec::new(),
            tries: 0,
            steps: 0,
        };
        search.from(0, 0)
    }
}

/// Makes the input of places and their texts, if they decode.
type Decode<'f> = dyn Fn(&[(&str, &str)]) -> Option<Value> + 'f;

/// A search for the borders of the places.
struct Search<'s, 'p, 't> {
    pattern: &'s TextPattern<'p>,
    text: &'s Words<'t>,
    fits: &'s dyn Fn(&str, &str) -> bool,
    decode: &'s Decode<'s>,
    /// The pieces and words from which the rest does not fit: none is tried twice.
    dead: BTreeSet<(usize, usize)>,
    values: Vec<(&'p str, &'t str)>,
    /// How often all places fitted and nothing was decoded.
    tries: usize,
    /// How many borders were looked at.
    steps: usize,
}

impl Search<'_, '_, '_> {
    fn from(&mut self, piece: usize, at: usize) -> Option<Value> {
        let next = match self.pattern.0.get(piece + 1) {
            Some(Piece::Words(words)) => Some(words.as_slice()),
            _ => None,
        };
        match self.pattern.0.get(piece) {
            None if at == self.text.words.len() => {
                self.tries += 1;
                (self.decode)(&self.values)
            }
            None => None,
            Some(Piece::Words(words)) if self.text.begins(at, words) => {
                self.from(piece + 1, at + words.len())
            }
            Some(Piece::Words(_)) => None,
            Some(Piece::Place(name)) => {
                if self.dead.contains(&(piece, at)) {
                    return None;
                }
                let (last, tries) = (self.text.words.len(), self.tries);
                let first = if next.is_some() {
                    at + 1
                } else {
                    last.max(at + 1)
                };
                for end in first..=last {
                    self.steps += 1;
                    if self.steps > STEPS {
                        return None;
                    }
                    if next.is_some_and(|words| !self.text.begins(end, words)) {
                        continue;
                    }
                    let value = self.text.slice(at, end);
                    if self.tries >= TRIES || !(self.fits)(name, value) {
                        continue;
                    }
                    self.values.push((name, value));
                    let input = self.from(piece + 1, end);
                    if input.is_some() {
                        return input;
                    }
                    self.values.pop();
                }
                if self.tries == tries {
                    self.dead.insert((piece, at));
                }
                None
            }
        }
    }
}

/// The value of a place, read as its field: a number or a flag where the schema has no text.
pub(super) fn value(schema: &Value, field: &str, text: &str) -> Option<Value> {
    let kind = schema.get("properties")?.get(field)?.get("type");
    let names = |name: &str| match kind {
        Some(Value::String(kind)) => kind == name,
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == name),
        _ => name == "string",
    };
    if names("string") {
        return Some(text.into());
    }
    let value = serde_json::from_str(text).ok()?;
    let fits = match &value {
        Value::Number(number) => names("number") || (names("integer") && !number.is_f64()),
        Value::Bool(_) => names("boolean"),
        _ => false,
    };
    fits.then_some(value)
}
