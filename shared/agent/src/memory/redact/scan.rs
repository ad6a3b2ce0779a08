//! What the finders share: runs of bytes, and the characters beside a find.

use std::ops::Range;

/// The byte at `at`, or a space outside of the text.
pub(super) fn byte(text: &[u8], at: usize) -> u8 {
    text.get(at).copied().unwrap_or(b' ')
}

/// The byte before `at`, or a space at the begin of the text.
pub(super) fn before(text: &[u8], at: usize) -> u8 {
    at.checked_sub(1).map_or(b' ', |at| byte(text, at))
}

/// The maximal runs of bytes that `is_part` accepts, in order.
///
/// `is_part` must accept ASCII bytes only, so that both ends are between characters.
pub(super) fn runs(
    text: &[u8],
    is_part: impl Fn(u8) -> bool + Copy,
) -> impl Iterator<Item = Range<usize>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = text.get(at..)?;
        let start = at + rest.iter().position(|byte| is_part(*byte))?;
        let run = text.get(start..)?;
        let length = run.iter().position(|byte| !is_part(*byte));
        at = start + length.unwrap_or(run.len());
        Some(start..at)
    })
}

/// Whether the byte is an ASCII letter, a digit or `_`.
pub(super) const fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}
