//! The API keys of a deployment.
//!
//! A store never holds a key itself, only its SHA-256. A key has at least 32 random
//! characters, so the hash needs no salt and no slow function.

use crate::task::{Owner, Timestamp};
use std::collections::BTreeSet;

/// The most characters of an id.
const LONGEST: usize = 32;

/// The public part of an API key: 1 to 32 ASCII letters and digits. It names the key in
/// lists and logs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ApiKeyId(String);

impl ApiKeyId {
    /// Parses an id. `None` if it is not valid.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let valid = (1..=LONGEST).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
        valid.then(|| Self(text.to_owned()))
    }

    /// The text of the id.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for ApiKeyId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// What is stored of an API key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiKeyRecord {
    /// The public part of the key.
    pub id: ApiKeyId,
    /// The SHA-256 of the whole key.
    pub hash: [u8; 32],
    /// The tenant and the subject of its callers.
    pub owner: Owner,
    /// The rate tier; `None` is the default tier.
    pub tier: Option<String>,
    /// What its callers may do beside calling skills.
    pub scopes: BTreeSet<String>,
    /// When it was made.
    pub created_at: Timestamp,
    /// From when on it is refused; `None` is never.
    pub expires_at: Option<Timestamp>,
    /// What the operator noted about it.
    pub note: Option<String>,
}

/// What a key has to pass before it is read, so that keys which nobody issued cost no read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyCheck {
    /// The secret that the end of each key proves.
    pub secret: String,
}

#[cfg(test)]
mod tests {
    use super::ApiKeyId;
    use a2a_lambda_rows::each_row;

    #[test]
    fn an_id_has_letters_and_digits_only() {
        each_row(["a", "first", "A1b2C3", &"x".repeat(32)], |good| {
            assert_eq!(ApiKeyId::parse(good).unwrap().as_str(), good);
        });
        each_row(["", "a_b", "a#b", "ä", "a b", &"x".repeat(33)], |bad| {
            assert_eq!(ApiKeyId::parse(bad), None, "{bad}");
        });
    }
}
