//! Idempotency keys: the name of one send, so that a repeat after a lost response is
//! not a second request.

use super::{IdError, KeyHash, Owner};
use sha2::{Digest as _, Sha256};

/// The longest key in bytes. The limit is this project's own; A2A has no idempotency
/// key.
const MAX: usize = 256;

/// The name of one send. A client that repeats a send uses the same key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotencyKey {
    /// Keys of different kinds never name the same send.
    kind: &'static str,
    text: String,
}

impl IdempotencyKey {
    /// The metadata member in which a client may send the key.
    pub const METADATA: &'static str = super::metadata_keys::IDEMPOTENCY_KEY;

    /// Parses a key that a client sent in the metadata.
    ///
    /// # Errors
    /// When it is not 1-256 bytes of text without control characters.
    pub fn parse(text: impl Into<String>) -> Result<Self, IdError> {
        let text = text.into();
        if (1..=MAX).contains(&text.len()) && !text.contains(char::is_control) {
            Ok(Self { kind: "key", text })
        } else {
            Err(IdError {
                kind: "idempotency key",
                rule: "1-256 bytes of text without control characters",
            })
        }
    }

    /// The key made of a message id.
    #[must_use]
    pub fn of_message(id: impl Into<String>) -> Self {
        Self {
            kind: "message",
            text: id.into(),
        }
    }

    /// The address of this key in a store. Two callers with the same key have
    /// different addresses, and the address reveals neither key nor caller.
    #[must_use]
    pub fn hash(&self, owner: &Owner) -> KeyHash {
        let tenant = owner.tenant.as_str();
        let fields = [tenant, owner.subject.as_str(), self.kind, &self.text];
        hash_of(&fields).into()
    }

    /// A hash of `content` that reveals nothing without the key, because an answer
    /// can contain credentials.
    #[must_use]
    pub fn seal(&self, content: &[u8]) -> String {
        let content = hex::encode(Sha256::digest(content));
        hash_of(&[self.kind, &self.text, &content])
    }
}

/// Hashes fields with their lengths, so that different lists have different hashes.
fn hash_of(fields: &[&str]) -> String {
    let mut hash = Sha256::new();
    for field in fields {
        hash.update((field.len() as u64).to_be_bytes());
        hash.update(field);
    }
    hex::encode(hash.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::{Subject, TenantId};
    use a2a_lambda_rows::each_row;

    fn owner(tenant: &str, subject: &str) -> Owner {
        Owner {
            tenant: TenantId::parse(tenant).unwrap(),
            subject: Subject::parse(subject).unwrap(),
        }
    }

    #[test]
    fn a_key_is_a_short_text_without_control_characters() {
        let rows = ["k", "8e03978e-40d5", "\u{e4}\u{1F600} x", &"k".repeat(256)];
        each_row(rows, |good| {
            assert!(IdempotencyKey::parse(good).is_ok(), "{good}");
        });
        let cases = ["", "a\nb", "\u{0}", "a\u{7f}", "\u{85}", &"k".repeat(257)];
        each_row(cases, |bad| {
            assert!(IdempotencyKey::parse(bad).is_err(), "{bad:?}");
        });
    }

    #[test]
    fn no_two_callers_and_no_two_kinds_share_an_address() {
        let mut seen = std::collections::BTreeSet::new();
        each_row(["a", "ab", "key"], |tenant| {
            each_row(["b", "x", "bkey"], |subject| {
                let owner = owner(tenant, subject);
                each_row(["x", "xx", "message"], |text| {
                    let given = IdempotencyKey::parse(text).unwrap();
                    assert!(seen.insert(given.hash(&owner)));
                    let message = IdempotencyKey::of_message(text);
                    assert!(seen.insert(message.hash(&owner)));
                });
            });
        });
    }

    #[test]
    fn a_sealed_content_differs_from_key_to_key() {
        let [one, other] = ["1", "2"].map(|text| IdempotencyKey::parse(text).unwrap());
        let again = IdempotencyKey::parse("1").unwrap();
        assert_eq!(one.seal(b"x"), again.seal(b"x"));
        assert_ne!(one.seal(b"x"), one.seal(b"y"));
        assert_ne!(one.seal(b"x"), other.seal(b"x"));
    }
}
