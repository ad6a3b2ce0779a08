//! Conversations as a store keeps them.

use super::StoreError;
use crate::task::{ContextId, Message, Owner, Timestamp, WriteId};
use async_trait::async_trait;
use std::collections::BTreeMap;
use std::time::Duration;

/// The conversation state of a context.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ThreadState {
    /// What skills added to the conversation, oldest first. The id of an event
    /// names its task, its turn and its place in the turn.
    pub events: Vec<Message>,
    /// Session data by key.
    pub session: BTreeMap<String, serde_json::Value>,
}

/// Whether a conversation goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ThreadStatus {
    /// It does, until its expiry.
    #[default]
    Active,
    /// Its expiry has been noted: what is left is the tombstone of a
    /// client-made id.
    Expired,
}

impl ThreadStatus {
    /// The word that is stored and shown.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Expired => "expired",
        }
    }
}

/// The stored thread of a context.
#[derive(Debug, Clone, PartialEq)]
pub struct ThreadRecord {
    /// Whose it is.
    pub owner: Owner,
    /// Its id.
    pub context_id: ContextId,
    /// +1 a write; 0 = not stored.
    pub version: u64,
    /// Whether it goes on.
    pub status: ThreadStatus,
    /// When the context began.
    pub created_at: Timestamp,
    /// When it was last written.
    pub updated_at: Timestamp,
    /// When the context is gone.
    pub expires_at: Timestamp,
    /// When the state is gone.
    pub state_expires_at: Timestamp,
    /// The version that wrote the state; 0 = there is none.
    pub state_version: u64,
    /// The state.
    pub state: ThreadState,
}

impl ThreadRecord {
    /// A thread that is not stored, as a conversation that began at `began`
    /// has it at `now`.
    #[must_use]
    pub fn begun(owner: Owner, context_id: ContextId, began: Timestamp, now: Timestamp) -> Self {
        Self {
            owner,
            context_id,
            version: 0,
            status: ThreadStatus::Active,
            created_at: began,
            updated_at: now,
            expires_at: now,
            state_expires_at: now,
            state_version: 0,
            state: ThreadState::default(),
        }
    }

    /// Whether a message may go on in it.
    #[must_use]
    pub fn lives(&self, now: Timestamp) -> bool {
        self.status == ThreadStatus::Active && now < self.expires_at
    }

    /// Whether its id is still known to have expired: one of ours is as long
    /// as it is stored, a client's for `tombstone`; then it is free again.
    #[must_use]
    pub fn is_remembered(&self, now: Timestamp, tombstone: Duration) -> bool {
        self.context_id.is_server_made() || now < self.expires_at.plus(tombstone)
    }

    /// Whether a write of it replaces the stored state. If not, there is no
    /// state any more (version 0), or the stored one stays.
    #[must_use]
    pub const fn replaces_state(&self) -> bool {
        self.state_version == self.version
    }
}

/// A write of a thread, alone or beside a task's commit.
#[derive(Debug, Clone, PartialEq)]
pub struct ThreadWrite {
    /// The whole next thread; its `version` is the one after `expect`. The
    /// state in it is written if `state_version` is that version. If it is an
    /// earlier one the stored state stays as it is.
    pub record: ThreadRecord,
    /// The version it replaces; 0 = none stored.
    pub expect: u64,
    /// The id of the write.
    pub write: WriteId,
}

/// Reading conversations.
#[async_trait]
pub trait ReadThreads: Send + Sync {
    /// The stored thread; `None` if absent or not `owner`'s. An expired thread
    /// is returned: its reader must tell expired from never seen.
    ///
    /// # Errors
    /// [`StoreError`] when the store does not answer or the item is corrupt.
    async fn load_thread(
        &self,
        owner: &Owner,
        id: &ContextId,
    ) -> Result<Option<ThreadRecord>, StoreError>;

    /// The same without its state, which may be large.
    ///
    /// # Errors
    /// As [`ReadThreads::load_thread`].
    async fn load_thread_head(
        &self,
        owner: &Owner,
        id: &ContextId,
    ) -> Result<Option<ThreadRecord>, StoreError> {
        let found = self.load_thread(owner, id).await?;
        Ok(found.map(|thread| ThreadRecord {
            state: ThreadState::default(),
            ..thread
        }))
    }
}

/// Writing conversations apart from a task's commit.
#[async_trait]
pub trait WriteThreads: ReadThreads {
    /// Stores the thread if its stored version is `write.expect`; `false` if
    /// another write stands there.
    ///
    /// # Errors
    /// [`StoreError`]; after `Unavailable` the write may or may not be stored.
    async fn put_thread(&self, write: &ThreadWrite) -> Result<bool, StoreError>;
}
