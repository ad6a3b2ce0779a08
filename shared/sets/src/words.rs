//! Splits a text into words that compare equal whatever their case and composition.

use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

/// The words of the text, in order.
///
/// A word is a run of letters, digits and marks. In scripts that put no spaces between
/// words, each character is a word.
pub(crate) fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    for next in text.nfkc().flat_map(fold_case) {
        if is_a_word(next) {
            words.push(std::mem::take(&mut word));
            words.push(next.to_string());
        } else if next.is_alphanumeric() || (is_combining_mark(next) && !word.is_empty()) {
            word.push(next);
        } else {
            words.push(std::mem::take(&mut word));
        }
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words
}

/// The runs of letters, digits and marks of the text, in order, to be searched for as they are.
pub(crate) fn runs(text: &str) -> Vec<String> {
    let text = fold(text);
    let runs = text.split(|next: char| !next.is_alphanumeric() && !is_combining_mark(next));
    runs.filter(|run| !run.is_empty())
        .map(str::to_owned)
        .collect()
}

/// The text in the form in which words and tags are compared.
pub(crate) fn fold(text: &str) -> String {
    text.nfkc().flat_map(fold_case).collect()
}

/// The lower case of the upper case: `ß` becomes `ss`, and both forms of sigma one.
fn fold_case(letter: char) -> impl Iterator<Item = char> {
    letter.to_uppercase().flat_map(char::to_lowercase)
}

/// Whether the character belongs to a script without spaces: Thai, Lao, Burmese, Khmer,
/// Japanese and Chinese.
const fn is_a_word(letter: char) -> bool {
    matches!(
        letter,
        '\u{e01}'..='\u{eff}'
            | '\u{1000}'..='\u{109f}'
            | '\u{1780}'..='\u{17ff}'
            | '\u{3041}'..='\u{30ff}'
            | '\u{31f0}'..='\u{31ff}'
            | '\u{3400}'..='\u{4dbf}'
            | '\u{4e00}'..='\u{9fff}'
            | '\u{f900}'..='\u{faff}'
            | '\u{20000}'..='\u{3ffff}'
    )
}
