//! Makes and reads API keys: `a2a_<id>_<secret>`. The last letters of the secret prove that the
//! deployment has made the key.

use crate::store::api_keys::{ApiKeyId, KeyCheck};
use ring::hmac;
use ring::rand::{SecureRandom as _, SystemRandom};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

/// The beginning of every API key. A token without it is never an API key.
pub(super) const PREFIX: &str = "a2a_";
/// The fewest and the most characters of a secret.
const SECRET: std::ops::RangeInclusive<usize> = 32..=128;
/// The characters of a new secret: 43 letters and digits are 256 bits.
const NEW_SECRET: usize = 43;
/// The characters after them that prove who made the key: one made-up key in 2 * 10^14 passes.
const PROOF: usize = 8;
/// The characters of a new id.
const NEW_ID: usize = 12;
/// The letters and digits of new keys.
const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// An API key as a client sends it. Its `Debug` form shows the id only.
#[derive(Clone)]
pub struct ApiKey {
    id: ApiKeyId,
    text: String,
}

/// The system has no random bytes.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the system returned no random bytes")]
pub struct NoRandomError;

impl ApiKey {
    /// Makes a new key from the system's random source, for the deployment whose [`KeyCheck`] has
    /// this secret.
    ///
    /// # Errors
    /// [`NoRandomError`] when the source fails.
    pub fn random(check: &str) -> Result<Self, NoRandomError> {
        let id = ApiKeyId::parse(&letters(NEW_ID)?).ok_or(NoRandomError)?;
        let mut key = Self::of(id, &letters(NEW_SECRET)?);
        key.text += &proof(check, &key.text);
        Ok(key)
    }

    /// Whether the deployment with this check can have made the key.
    pub(super) fn passes(&self, check: &KeyCheck) -> bool {
        let parts = self.text.split_at_checked(self.text.len() - PROOF);
        parts.is_some_and(|(start, end)| {
            let tag = proof(&check.secret, start);
            tag.as_bytes().ct_eq(end.as_bytes()).into()
        })
    }

    /// The key with this id and this secret.
    pub(super) fn of(id: ApiKeyId, secret: &str) -> Self {
        let text = format!("{PREFIX}{id}_{secret}");
        Self { id, text }
    }

    /// Parses a key. `None` if it is not valid.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (id, secret) = text.strip_prefix(PREFIX)?.split_once('_')?;
        let valid =
            SECRET.contains(&secret.len()) && secret.bytes().all(|it| it.is_ascii_alphanumeric());
        let id = ApiKeyId::parse(id).filter(|_| valid)?;
        let text = text.to_owned();
        Some(Self { id, text })
    }

    /// The public part of the key.
    #[must_use]
    pub const fn id(&self) -> &ApiKeyId {
        &self.id
    }

    /// The whole key. Print it once and store it nowhere.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.text
    }

    /// The SHA-256 of the whole key.
    #[must_use]
    pub fn hash(&self) -> [u8; 32] {
        Sha256::digest(&self.text).into()
    }

    /// Whether this is the key with the hash `other`. The time of the comparison does not
    /// depend on the hashes.
    #[must_use]
    pub fn matches(&self, other: &[u8; 32]) -> bool {
        self.hash().ct_eq(other).into()
    }
}

debug_as_name!(ApiKey { id });

/// The letters that prove `text` under the secret of a check.
fn proof(check: &str, text: &str) -> String {
    let tag = hmac::sign(
        &hmac::Key::new(hmac::HMAC_SHA256, check.as_bytes()),
        text.as_bytes(),
    );
    let bytes = tag.as_ref().iter().take(PROOF);
    let letters = bytes.filter_map(|byte| ALPHABET.get(usize::from(*byte) % ALPHABET.len()));
    letters.copied().map(char::from).collect()
}

/// Random letters and digits.
fn letters(count: usize) -> Result<String, NoRandomError> {
    let source = SystemRandom::new();
    let mut text = String::new();
    let mut bytes = [0_u8; 64];
    while text.len() < count {
        source.fill(&mut bytes).map_err(|_| NoRandomError)?;
        // Of 256 values the first 248 are four times the alphabet. The others would make
        // some letters more frequent.
        let even = bytes.iter().filter(|byte| **byte < 248);
        let letters = even.filter_map(|byte| ALPHABET.get(usize::from(*byte) % ALPHABET.len()));
        text.extend(letters.take(count - text.len()).copied().map(char::from));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::ApiKey;
    use a2a_lambda_rows::each_row;

    #[test]
    fn a_new_key_parses_and_matches_its_own_hash_only() {
        let [key, other] = [(); 2].map(|()| ApiKey::random("").unwrap());
        let parsed = ApiKey::parse(key.reveal()).unwrap();
        assert_eq!(parsed.id(), key.id());
        assert!(parsed.matches(&key.hash()));
        assert!(!parsed.matches(&other.hash()));
        assert_ne!(key.reveal(), other.reveal());
        assert_eq!(key.reveal().len(), 4 + 12 + 1 + 43 + 8);
    }

    #[test]
    fn a_key_does_not_show_in_debug_output() {
        let key = ApiKey::random("").unwrap();
        let (_, secret) = key.reveal().rsplit_once('_').unwrap();
        assert!(!format!("{key:?}").contains(secret));
    }

    #[test]
    fn a_malformed_key_is_not_a_key() {
        let secret = "s".repeat(32);
        assert!(ApiKey::parse(&format!("a2a_id_{secret}")).is_some());
        let rows = [
            String::new(),
            "a2a_".to_owned(),
            "a2a_id".to_owned(),
            "a2a_id_".to_owned(),
            format!("a2a__{secret}"),
            format!("A2A_id_{secret}"),
            format!("a2a_i#d_{secret}"),
            format!("a2a_id_{secret}_x"),
            format!("a2a_id_{secret} "),
            format!("a2a_id_{}", secret.get(1..).unwrap()),
            format!("a2a_id_{}", "s".repeat(129)),
        ];
        each_row(rows, |bad| {
            assert!(ApiKey::parse(&bad).is_none(), "{bad}");
        });
    }
}
