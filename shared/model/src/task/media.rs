//! Compares media types, without parameters and case (RFC 9110 §8.3.1).

fn bare(media_type: &str) -> (String, String) {
    // RFC 9110 §8.3.1: type and subtype are case-insensitive; parameters follow a `;`.
    let essence = media_type.split(';').next().unwrap_or_default();
    // Clients name a family of types by its word, as A2A 0.1 names the kinds of parts.
    let (kind, subtype) = match essence.split_once('/') {
        Some(pair) => pair,
        None if essence.trim().eq_ignore_ascii_case("file") => ("*", "*"),
        None if essence.trim().eq_ignore_ascii_case("data") => ("application", "json"),
        None => (essence, "*"),
    };
    (
        kind.trim().to_ascii_lowercase(),
        subtype.trim().to_ascii_lowercase(),
    )
}

/// Whether two media types or ranges match a common type. A bare word is a family: `text` is
/// `text/*`, `data` is JSON, `file` is anything.
#[must_use]
pub fn media_types_meet(a: &str, b: &str) -> bool {
    let ((a_type, a_subtype), (b_type, b_subtype)) = (bare(a), bare(b));
    let same = |a: &str, b: &str| a == b || a == "*" || b == "*";
    same(&a_type, &b_type) && same(&a_subtype, &b_subtype)
}
