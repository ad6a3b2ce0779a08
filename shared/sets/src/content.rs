//! Checks of what a caller sends: contents, and ids.

use a2a_lambda::skill::{AgentError, AgentResult};

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
    if bytes <= most {
        return Ok(());
    }
    let text = format!("`{member}` has {bytes} bytes, expected at most {most}");
    Err(AgentError::domain("CONTENT_TOO_LONG", text))
}

/// The most bytes of an id.
pub(crate) const ID_MAX: usize = 128;

/// Whether a text can be an id.
pub(crate) fn is_id(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=ID_MAX).contains(&text.len()) && text.bytes().all(plain)
}
