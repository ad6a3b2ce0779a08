//! The text of a message.

use crate::content::texts;
use a2a_lambda_model::task::{Message, Part, PartContent};

/// The longest text that a model gets, in bytes.
const TEXT: usize = 4096;

/// The texts of a message, as lines.
pub(super) fn text(message: &Message) -> String {
    texts(&message.parts).collect::<Vec<_>>().join("\n")
}

/// The texts of the message with single spaces, cut at 4,096 bytes.
#[must_use]
pub fn text_of(message: &Message) -> String {
    let words = texts(&message.parts).flat_map(str::split_whitespace);
    cut(&words.collect::<Vec<_>>().join(" "), TEXT).to_owned()
}

/// The word behind a slash that begins a text, and the words behind it.
pub(super) fn command_of(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start().strip_prefix('/')?;
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    Some((word, rest.trim_start()))
}

/// Takes the command `/id` off the first text of a message to the skill `id`: a skill, and a model
/// that it asks, get the words behind it. A text that is only the command stays.
pub fn drop_command(id: &str, parts: &mut [Part]) {
    let text = parts.iter_mut().find_map(|part| match &mut part.content {
        PartContent::Text(text) => Some(text),
        _ => None,
    });
    if let Some(text) = text
        && let Some((word, rest)) = command_of(text)
        && word == id
        && !rest.is_empty()
    {
        *text = rest.to_owned();
    }
}

/// The beginning of a text, of at most `most` bytes.
pub(super) fn cut(text: &str, most: usize) -> &str {
    text.split_at(text.floor_char_boundary(most)).0
}

/// Whether the part is text.
pub(super) const fn is_text(part: &Part) -> bool {
    matches!(part.content, PartContent::Text(_))
}

/// Whether the message has only text parts.
pub(super) fn only_text(message: &Message) -> bool {
    message.parts.iter().all(is_text)
}
