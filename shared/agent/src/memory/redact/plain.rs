//! The text as the finders see it: with one form for characters that look the same.

use std::ops::Range;

/// A text with plain spaces, hyphens and ASCII characters, and without invisible characters.
///
/// Text from web pages and word processors has no-break spaces and hyphens in numbers, and
/// texts in Chinese and Japanese have wide digits.
#[derive(Debug)]
pub(super) struct PlainText {
    text: String,
    /// For each byte of the plain text, and for its end, where it is in the original.
    offsets: Vec<usize>,
}

impl PlainText {
    pub(super) fn of(original: &str) -> Self {
        let mut text = String::with_capacity(original.len());
        let mut offsets = Vec::with_capacity(original.len() + 1);
        for (at, letter) in original.char_indices() {
            if let Some(plain) = plain(letter) {
                text.push(plain);
                offsets.resize(text.len(), at);
            }
        }
        offsets.push(original.len());
        Self { text, offsets }
    }

    pub(super) fn as_str(&self) -> &str {
        &self.text
    }

    /// The bytes of the original for bytes of the plain text.
    pub(super) fn original(&self, range: &Range<usize>) -> Range<usize> {
        let offset = |at: usize| self.offsets.get(at).copied().unwrap_or_default();
        offset(range.start)..offset(range.end)
    }
}

/// `None` for a character that cannot be seen.
fn plain(letter: char) -> Option<char> {
    Some(match letter {
        '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}' | '\u{feff}' => {
            return None;
        }
        '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => ' ',
        '\u{2010}'..='\u{2014}' | '\u{2212}' => '-',
        wide @ '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(wide) - 0xfee0).unwrap_or(wide),
        other => other,
    })
}
