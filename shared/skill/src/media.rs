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
    let text = text.as_bytes();
    match skip_name(text) {
        _ if matches!(text, b"*/*") => true,
        [b'/', subtype @ ..] if subtype.len() + 1 < text.len() => match subtype {
            [] => false,
            [b'*'] => true,
            subtype => skip_name(subtype).is_empty(),
        },
        _ => false,
    }
}

/// What is behind the characters of a type or subtype name (RFC 6838 §4.2).
const fn skip_name(mut text: &[u8]) -> &[u8] {
    while let [byte, rest @ ..] = text
        && (byte.is_ascii_alphanumeric()
            || matches!(
                byte,
                b'!' | b'#' | b'$' | b'&' | b'-' | b'^' | b'_' | b'.' | b'+'
            ))
    {
        text = rest;
    }
    text
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
