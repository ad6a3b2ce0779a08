//! Finds private keys, JSON Web Tokens and API keys.

use super::scan::{is_word, runs};
use super::{Find, Sensitive};

const BEGIN: &str = "-----BEGIN ";
const END: &str = "-----END ";
const LABEL_END: &str = "PRIVATE KEY-----";
/// The most bytes of a label, as in `ENCRYPTED PRIVATE KEY-----`.
const LABEL_MAX: usize = 48;
/// The fewest characters of a secret behind the prefix of its issuer.
const SECRET_MIN: usize = 16;
/// The prefixes of GitHub's tokens.
const GITHUB: [&str; 6] = ["ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"];

/// Finds PEM blocks of private keys. A block without an end goes to the end of the text.
pub(super) fn private_keys(text: &str, finds: &mut Vec<Find>) {
    let mut at = 0;
    while let Some(start) = find(text, at, BEGIN) {
        let label = start + BEGIN.len();
        at = label;
        if !is_private(text.as_bytes(), label) {
            continue;
        }
        let end = find(text, label, END).and_then(|end| find(text, end, LABEL_END));
        at = end.map_or(text.len(), |end| end + LABEL_END.len());
        finds.push((start..at, Sensitive::PrivateKey));
    }
}

/// Whether the label at `at` ends as one of a private key. It looks at the label only, so
/// that many begins of blocks do not take quadratic time.
fn is_private(text: &[u8], at: usize) -> bool {
    let rest = text.get(at..).unwrap_or_default();
    let label = rest.get(..LABEL_MAX).unwrap_or(rest);
    let mut places = label.windows(LABEL_END.len());
    places.any(|place| place == LABEL_END.as_bytes())
}

/// The offset of `wanted` at or behind `from`.
fn find(text: &str, from: usize, wanted: &str) -> Option<usize> {
    Some(from + text.get(from..)?.find(wanted)?)
}

/// Finds tokens that their form gives away.
pub(super) fn tokens(text: &str, finds: &mut Vec<Find>) {
    let bytes = text.as_bytes();
    for run in runs(bytes, |byte| is_word(byte) || byte == b'-') {
        let token = text.get(run.clone()).unwrap_or_default();
        let token = token.trim_start_matches(['-', '_']);
        if is_api_key(token) {
            finds.push((run.end - token.len()..run.end, Sensitive::ApiKey));
        }
    }
    for run in runs(bytes, |byte| is_word(byte) || byte == b'-' || byte == b'.') {
        let token = text.get(run.clone()).unwrap_or_default();
        let token = token.trim_start_matches(['-', '_', '.']);
        let start = run.end - token.len();
        let token = token.trim_end_matches('.');
        if is_jwt(token) {
            finds.push((start..start + token.len(), Sensitive::Jwt));
        }
    }
}

/// Whether the text has the form of an API key of AWS, GitHub, services with `sk-`,
/// or of this project.
fn is_api_key(token: &str) -> bool {
    let is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if let Some(rest) = token
        .strip_prefix("AKIA")
        .or_else(|| token.strip_prefix("ASIA"))
    {
        let is_upper = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit();
        return rest.len() == 16 && rest.bytes().all(is_upper);
    }
    if let Some(rest) = token
        .strip_prefix("sk-")
        .or_else(|| token.strip_prefix("sk_"))
    {
        // Words with hyphens have no digits.
        return rest.len() >= SECRET_MIN && rest.bytes().any(|byte| byte.is_ascii_digit());
    }
    if let Some(rest) = GITHUB.iter().find_map(|prefix| token.strip_prefix(prefix)) {
        return rest.len() >= SECRET_MIN;
    }
    if let Some((id, secret)) = token
        .strip_prefix("a2a_")
        .and_then(|rest| rest.rsplit_once('_'))
    {
        return !id.is_empty() && secret.len() >= SECRET_MIN && is_plain(secret);
    }
    false
}

/// Whether the text is three parts with dots, the first two the Base64 of JSON objects. The
/// third part, the signature, may be empty or cut off.
fn is_jwt(token: &str) -> bool {
    let mut parts = token.split('.');
    let is_object = |part: &str| part.starts_with("eyJ") && part.len() >= 10;
    parts.next().is_some_and(is_object)
        && parts.next().is_some_and(is_object)
        && parts.nth(1).is_none()
}
