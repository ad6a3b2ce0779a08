//! The idempotency key that a commit stores in the same transaction as its task.

use crate::store::{KeyWrite, Keyed};
use crate::task::{A2aError, KeyHash, TaskRecord, Timestamp};

/// The idempotency key of one send, with a sealed hash of what the send asks for.
#[derive(Debug, Clone)]
pub(in crate::engine) struct SendKey {
    key: KeyHash,
    content: String,
}

impl SendKey {
    /// The key with the hash `key`, of a send with the sealed content hash `content`.
    pub(in crate::engine) const fn new(key: KeyHash, content: String) -> Self {
        Self { key, content }
    }

    /// The hash under which the key is stored.
    pub(in crate::engine) const fn address(&self) -> &KeyHash {
        &self.key
    }

    /// The key as it is stored with the send's commit.
    pub(in crate::engine) fn write(&self, kept_until: Timestamp) -> KeyWrite {
        KeyWrite {
            key: self.key.clone(),
            content: self.content.clone(),
            kept_until,
        }
    }

    /// The task of the earlier send, if both ask for the same.
    ///
    /// # Errors
    /// [`A2aError::IdempotencyKeyReused`] if they do not.
    pub(in crate::engine) fn task_of(&self, entry: Keyed) -> Result<TaskRecord, A2aError> {
        if entry.content == self.content {
            Ok(entry.record)
        } else {
            Err(A2aError::IdempotencyKeyReused)
        }
    }
}
