//! The line for people beside the data of an operation: short, whatever the data is.

use crate::knowledge::item::line;
use a2a_lambda::skill::is_invisible;
use std::fmt::Display;

/// The most texts of a list, and the most characters of each.
const TEXTS: usize = 5;
const TEXT_MAX: usize = 80;

/// A text of a caller as one line in quotes, of which it has none itself.
pub(crate) fn quote(text: &str) -> String {
    let text = text.replace(is_invisible, " ").replace('"', "'");
    format!("\"{}\"", line(&text, TEXT_MAX))
}

/// How many there are, and the first of them: `2 memories: "I like tea", "I like cake"`.
pub(crate) fn list<T: AsRef<str>>(
    count: usize,
    [one, many]: [impl Display; 2],
    texts: impl IntoIterator<Item = T>,
) -> String {
    let texts = texts.into_iter().take(TEXTS);
    let mut quotes: Vec<_> = texts.map(|text| quote(text.as_ref())).collect();
    if !quotes.is_empty() && quotes.len() < count {
        quotes.push("…".to_owned());
    }
    let noun = match count {
        0 => format!("no {many}"),
        1 => format!("1 {one}"),
        _ => format!("{count} {many}"),
    };
    let colon = if quotes.is_empty() { "" } else { ": " };
    format!("{noun}{colon}{}", quotes.join(", "))
}
