//! What a caller sends, and its checks: contents, tags and ids.

use a2a_lambda::skill::{AgentError, AgentResult, TextOr};
use std::ops::RangeInclusive;

/// Checks a content that a caller wants to store.
///
/// # Errors
/// `CONTENT_EMPTY` for a content without a visible character, `CONTENT_TOO_LONG` for one with more
/// than `most` bytes.
pub(crate) fn check_content(content: &str, most: usize) -> AgentResult<()> {
    if content.trim().is_empty() {
        let text = "`content` is empty, expected a text";
        return Err(AgentError::domain("CONTENT_EMPTY", text));
    }
    check_length("content", content.len(), most)
}

/// Checks the bytes of a member of an input.
///
/// # Errors
/// `CONTENT_TOO_LONG` for more than `most`.
pub(crate) fn check_length(member: &str, bytes: usize, most: usize) -> AgentResult<()> {
    check_range("bytes", bytes, 0..=most)
        .map_err(|fault| AgentError::domain("CONTENT_TOO_LONG", format!("`{member}` {fault}")))
}

/// Checks how many of something a member of an input has.
///
/// # Errors
/// `INVALID_INPUT` names the member.
pub(crate) fn check_count(
    member: &str,
    unit: &str,
    count: usize,
    range: RangeInclusive<usize>,
) -> AgentResult<()> {
    check_range(unit, count, range)
        .map_err(|fault| AgentError::invalid_input(format!("`{member}` {fault}")))
}

/// Checks a count against a range that begins at 0 or 1, or says what is wrong with it.
pub(crate) fn check_range(
    unit: &str,
    count: usize,
    range: RangeInclusive<usize>,
) -> Result<(), String> {
    if range.contains(&count) {
        return Ok(());
    }
    let least = if range.contains(&0) {
        "at most"
    } else {
        "1 to"
    };
    Err(format!(
        "has {count} {unit}, expected {least} {}",
        range.end()
    ))
}

/// The most tags, and the most bytes of one.
const TAGS_MAX: usize = 16;
const TAG_MAX: usize = 64;

/// Checks the tags that a caller gives.
pub(crate) fn check_tags(tags: &[String]) -> AgentResult<()> {
    check_count("tags", "tags", tags.len(), 0..=TAGS_MAX)?;
    let mut sizes = tags.iter().map(String::len);
    sizes.try_for_each(|bytes| check_count("tags", "bytes in a tag", bytes, 1..=TAG_MAX))
}

/// The data of an input, or what its text means.
pub(crate) fn data_or<T>(input: TextOr<T>, of_text: impl FnOnce(String) -> T) -> T {
    match input {
        TextOr::Data(data) => data,
        TextOr::Text(text) => of_text(text),
    }
}

/// The most bytes of an id.
pub(crate) const ID_MAX: usize = 128;

/// Whether a text can be an id.
pub(crate) fn is_id(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=ID_MAX).contains(&text.len()) && text.bytes().all(plain)
}
