//! Hashes structured values, the same for the same content in every program.

use a2a_lambda_model::task::Metadata;
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// How many bytes of a hash a step keeps.
const STEP_HASH: usize = 8;

/// A short hash of what a step was asked. The order of members does not change it.
pub fn step_hash(name: &str, input: &impl Serialize) -> serde_json::Result<String> {
    let mut text = digest(name, input)?;
    text.truncate(2 * STEP_HASH);
    Ok(text)
}

/// The SHA-256 of a value with a name, in lower-case hex. The order of members does not change it.
pub fn digest(name: &str, input: &impl Serialize) -> serde_json::Result<String> {
    let mut hash = FieldHasher::default();
    hash.feed("name", name);
    hash.value(&serde_json::to_value(input)?);
    Ok(hex::encode(hash.finish()))
}

/// Hashes fields with their names and lengths, so that different lists have different
/// hashes.
#[derive(Debug, Default)]
pub struct FieldHasher(Sha256);

impl FieldHasher {
    /// Feeds a field.
    pub fn feed(&mut self, name: &str, bytes: impl AsRef<[u8]>) {
        let bytes = bytes.as_ref();
        self.0.update(name.as_bytes());
        self.0.update([0]);
        self.0.update((bytes.len() as u64).to_be_bytes());
        self.0.update(bytes);
    }

    /// Feeds the members with a name that counts.
    pub fn members(&mut self, members: &Metadata, counts: fn(&str) -> bool) {
        let mut names: Vec<&String> = members.keys().filter(|name| counts(name)).collect();
        // The members of a JSON object have no order.
        names.sort_unstable();
        self.feed("members", names.len().to_be_bytes());
        for name in names {
            self.feed("member", name);
            if let Some(value) = members.get(name) {
                self.value(value);
            }
        }
    }

    /// Feeds a value. Objects with the same members are equal.
    pub fn value(&mut self, value: &Value) {
        match value {
            Value::Object(members) => self.members(members, |_| true),
            Value::Array(entries) => {
                self.feed("entries", entries.len().to_be_bytes());
                for entry in entries {
                    self.value(entry);
                }
            }
            scalar => self.feed("scalar", scalar.to_string()),
        }
    }

    /// The hash.
    #[must_use]
    pub fn finish(self) -> Vec<u8> {
        self.0.finalize().to_vec()
    }
}
