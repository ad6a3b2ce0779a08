//! Idempotency keys: the name of one send, so that a repeat after a lost response is
//! not a second request.

use super::{IdError, Owner, Timestamp};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::fmt;

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
        KeyHash(hash_of(&fields))
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

/// The address of an idempotency key: 64 hex digits over caller and key.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct KeyHash(String);

impl KeyHash {
    /// The address as read from a store.
    pub const fn stored(text: String) -> Self {
        Self(text)
    }

    /// The address as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for KeyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// How many keys a task keeps.
const HELD: usize = 32;

/// The keys of the sends that created and continued a task. The task prolongs them as
/// long as it lives, and they are deleted with it. Of more than 32 keys the oldest
/// are dropped from this list; they keep their first expiry, which is two lives of
/// the task.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct HeldKeys {
    /// The hashed keys, oldest first.
    pub addresses: Vec<KeyHash>,
    /// All of them are kept at least until then.
    pub until: Timestamp,
    /// The version of the commit that prolonged them; 0 if none has.
    pub version: u64,
}

impl HeldKeys {
    /// Updates the keys in the commit of `version`: adds the key of this commit, and
    /// prolongs all to `until` if they would expire before `task_expiry`.
    pub(super) fn hold(
        &mut self,
        key: Option<&KeyHash>,
        version: u64,
        task_expiry: Timestamp,
        until: Timestamp,
    ) {
        if let Some(key) = key {
            if self.addresses.is_empty() {
                self.until = until;
            }
            self.addresses.push(key.clone());
            let surplus = self.addresses.len().saturating_sub(HELD);
            self.addresses.drain(..surplus);
        }
        if !self.addresses.is_empty() && self.until < task_expiry {
            self.until = until;
            self.version = version;
        }
    }
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

    fn address(number: u64) -> KeyHash {
        KeyHash::stored(format!("{number:064x}"))
    }

    fn at(hour: i64) -> Timestamp {
        Timestamp::from_millis(hour * 3_600_000)
    }

    #[test]
    fn a_task_prolongs_its_newest_32_keys() {
        let mut held = HeldKeys::default();
        for number in 1..=34 {
            held.hold(Some(&address(number)), number, at(1), at(2));
        }
        let newest: Vec<KeyHash> = (3..=34).map(address).collect();
        assert_eq!(held.addresses, newest);
        assert_eq!(
            (held.until, held.version),
            (at(2), 0),
            "all last long enough"
        );
    }

    #[test]
    fn keys_are_prolonged_only_when_their_task_would_outlive_them() {
        let mut held = HeldKeys::default();
        held.hold(None, 1, at(1), at(2));
        assert_eq!(held, HeldKeys::default(), "no key to prolong");
        held.hold(Some(&address(1)), 2, at(1), at(2));
        let rows = [
            (3, at(2), (at(2), 0)),
            (4, Timestamp::from_millis(at(2).as_millis() + 1), (at(4), 4)),
            (5, at(4), (at(4), 4)),
            (6, at(5), (at(6), 6)),
        ];
        each_row(rows, |(version, needed, expected)| {
            let until = at(i64::try_from(version).unwrap());
            held.hold(None, version, needed, until);
            assert_eq!((held.until, held.version), expected, "{version}");
        });
    }
}
