//! Media types: the parts a skill accepts, and the output a client accepts.
//!
//! Comparisons ignore parameters and case (RFC 9110 §8.3.1).

use super::SkillMetadata;
use a2a_lambda_model::task::{A2aError, Part, PartContent, media_types_meet as meet};

pub(super) const TEXT: &[&str] = &["text/plain"];
pub(super) const JSON: &[&str] = &["application/json"];
pub(super) const TEXT_AND_JSON: &[&str] = &["text/plain", "application/json"];
pub(super) const ANY: &[&str] = &["*/*"];

/// Whether `text` is `type/subtype`, `type/*` or `*/*`, without parameters. `#[skill]`
/// checks its `input_modes` and `output_modes` with it at compile time; `build()` checks
/// metadata written by hand.
///
/// ```
/// use a2a_lambda::skill::is_media_type;
///
/// assert!(is_media_type("text/plain") && is_media_type("image/*"));
/// assert!(!is_media_type("text") && !is_media_type("*/json"));
/// ```
#[must_use]
pub const fn is_media_type(text: &str) -> bool {
    let mut rest = text.as_bytes();
    let (mut before, mut after, mut slash) = (0, 0, false);
    let (mut any_type, mut any_subtype) = (false, false);
    while let [byte, tail @ ..] = rest {
        match (*byte, slash) {
            (b'/', false) => slash = true,
            (b'*', false) => any_type = true,
            (b'*', true) => any_subtype = true,
            (byte, _) if !is_token(byte) => return false,
            _ => {}
        }
        match (*byte, slash) {
            (b'/', _) => {}
            (_, false) => before += 1,
            (_, true) => after += 1,
        }
        rest = tail;
    }
    before > 0
        && after > 0
        && (!any_type || (before == 1 && any_subtype))
        && (!any_subtype || after == 1)
}

/// A character of a type or subtype name (RFC 6838 §4.2).
const fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'!' | b'#' | b'$' | b'&' | b'-' | b'^' | b'_' | b'.' | b'+'
        )
}

/// The media type of the first part that the skill does not accept. Words beside a file are
/// its caption, which each skill accepts that takes the file. A file without a type meets
/// every mode.
fn unaccepted_input<'a>(skill: &SkillMetadata, parts: &'a [Part]) -> Option<&'a str> {
    let takes = |media_type: &str| skill.input_modes.iter().any(|mode| meet(mode, media_type));
    let has_file = parts.iter().any(Part::is_file);
    let parts = parts.iter().filter(|part| {
        let is_text = matches!(part.content, PartContent::Text(_));
        !(has_file && is_text)
    });
    parts
        .filter_map(Part::known_media_type)
        .find(|media_type| !takes(media_type))
}

/// The media type of the first output part that is not in the skill's output modes.
pub fn undeclared_output<'a>(skill: &SkillMetadata, parts: &'a [Part]) -> Option<&'a str> {
    parts
        .iter()
        // An empty text only ends an artifact.
        .filter(|part| !part.is_empty_text())
        .map(Part::effective_media_type)
        .find(|media_type| !skill.output_modes.iter().any(|mode| meet(mode, media_type)))
}

/// Whether the skill accepts every part.
pub fn admits(skill: &SkillMetadata, parts: &[Part]) -> bool {
    unaccepted_input(skill, parts).is_none()
}

/// Checks every part against the skill's input modes, before a handler runs.
pub(crate) fn check_input(skill: &SkillMetadata, parts: &[Part]) -> Result<(), A2aError> {
    match unaccepted_input(skill, parts) {
        None => Ok(()),
        Some(media_type) => Err(A2aError::ContentTypeNotSupported {
            detail: format!(
                "skill `{}` takes {}, not `{media_type}`",
                skill.id,
                list(skill.input_modes)
            ),
        }),
    }
}

/// Checks that the client accepts text, data, or at least one output mode of the skill: the
/// modes are a wish (A2A 1.0 §3.2.2). Questions and statuses are text, data can be given as
/// text, and frameworks that ask for data alone show texts. A list without a mode accepts
/// every type.
pub fn check_accepted(skill: &SkillMetadata, modes: &[String]) -> Result<(), A2aError> {
    let entries = || modes.iter().filter(|mode| !mode.trim().is_empty());
    let readable = |media_type: &&str| entries().any(|mode| meet(mode, media_type));
    let mut outputs = skill.output_modes.iter().chain(TEXT_AND_JSON);
    if entries().next().is_none() || outputs.any(readable) {
        return Ok(());
    }
    Err(A2aError::ContentTypeNotSupported {
        detail: format!(
            "skill `{}` gives {}, and none of them is accepted",
            skill.id,
            list(skill.output_modes)
        ),
    })
}

fn list(modes: &[&str]) -> String {
    let names: Vec<_> = modes.iter().map(|mode| format!("`{mode}`")).collect();
    names.join(", ")
}
