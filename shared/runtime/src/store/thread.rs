//! Conversations as a store keeps them.

use super::StoreError;
use crate::task::{ContextId, Message, Metadata, Owner, TaskRecord, Timestamp, WriteId};
use async_trait::async_trait;
use std::collections::BTreeMap;
use std::time::Duration;

/// A thread of a server-made id is stored this part of its life longer: more
/// than activity can pass before it is written again.
const KEPT: u32 = 10;

/// How long after a deletion something of it can still be written: no function runs
/// longer than a quarter of an hour.
const SETTLED: Duration = Duration::from_secs(20 * 60);
/// The step in which the expiry of a state is noted.
const HOUR: Duration = Duration::from_secs(3600);
/// How long the record of a deletion stays if no sweep comes by: hundreds of them
/// should.
const REMEMBERED: Duration = Duration::from_secs(7 * 24 * 3600);

/// The conversation state of a context.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ThreadState {
    /// What skills added to the conversation, oldest first. The id of an event
    /// names the incarnation of its task, its turn and its place in the turn.
    pub events: Vec<Message>,
    /// Session data by key.
    pub session: BTreeMap<String, serde_json::Value>,
    /// Members of the stored form which a later version of this program has
    /// added. They stay with the state.
    pub unknown: Metadata,
}

/// Whether a conversation goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ThreadStatus {
    /// It does, until its expiry.
    #[default]
    Active,
    /// It has been deleted. Its id is refused until a sweep has removed all that
    /// was stored of it.
    Cleared,
}

impl ThreadStatus {
    /// The word that is stored and shown.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Cleared => "cleared",
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
    /// Members of the stored form which a later version of this program has
    /// added. They stay with the thread.
    pub unknown: Metadata,
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
            unknown: Metadata::new(),
        }
    }

    /// What is stored of the thread once its conversation is deleted at `now`:
    /// nothing of what it kept, and a version more.
    #[must_use]
    pub fn cleared(self, now: Timestamp) -> Self {
        Self {
            version: self.version + 1,
            status: ThreadStatus::Cleared,
            updated_at: now,
            expires_at: now,
            state_expires_at: now,
            state_version: 0,
            state: ThreadState::default(),
            ..self
        }
    }

    /// Whether a task made at `at` is of the conversation that was deleted: whoever
    /// made one had not seen the deletion, and the id is refused until the sweep has
    /// finished, which is later.
    #[must_use]
    pub fn deletes(&self, at: Timestamp) -> bool {
        self.is_cleared() && at <= self.expires_at.plus(SETTLED / 2)
    }

    /// Whether the conversation has been deleted.
    #[must_use]
    pub fn is_cleared(&self) -> bool {
        self.status == ThreadStatus::Cleared
    }

    /// When a sweep has to look at what is stored of the conversation; `None` if
    /// never. For a deleted one that is when no function that began before the
    /// deletion runs any more. For a state it is the end of the hour in which the
    /// state expires, so that the index is written when the hour changes and not
    /// with each turn; where a state lives shorter than an hour, its life counts
    /// instead of the hour.
    #[must_use]
    pub fn swept_at(&self, what: Expiring) -> Option<Timestamp> {
        match what {
            Expiring::Deleted => self.is_cleared().then(|| self.expires_at.plus(SETTLED)),
            Expiring::State if self.state_version == 0 => None,
            Expiring::State => {
                let life = self.state_expires_at.since(self.updated_at);
                let step = life.clamp(Duration::from_millis(1), HOUR).as_millis();
                let step = i64::try_from(step).unwrap_or(i64::MAX);
                let ends = self.state_expires_at.as_millis();
                let over = ends.rem_euclid(step);
                let rest = if over == 0 { 0 } else { step - over };
                Some(Timestamp::from_millis(ends.saturating_add(rest)))
            }
        }
    }

    /// The thread of a conversation without one of its own, as the record of
    /// its first task stands for it: it lives as long as the task is open, and
    /// for `ttl` after that.
    #[must_use]
    pub fn stood_for(task: &TaskRecord, ttl: Duration, now: Timestamp) -> Self {
        let (owner, id) = (task.owner().clone(), task.context_id().clone());
        let active = if task.state().is_at_rest() {
            task.active_at()
        } else {
            now
        };
        Self {
            updated_at: task.active_at(),
            expires_at: active.plus(ttl),
            ..Self::begun(owner, id, task.created_at, now)
        }
    }

    /// Whether a message may go on in it.
    #[must_use]
    pub fn lives(&self, now: Timestamp) -> bool {
        self.status == ThreadStatus::Active && now < self.expires_at
    }

    /// Whether its id is refused although it does not live: one of ours as long as
    /// it is stored, a client's for `tombstone` after its expiry, and each after its
    /// deletion until a sweep has finished that. Then a client's id is free again.
    #[must_use]
    pub fn is_remembered(&self, now: Timestamp, tombstone: Duration) -> bool {
        let kept = self.is_cleared() || now < self.expires_at.plus(tombstone);
        kept || self.context_id.is_server_made()
    }

    /// Until when it is stored: one of a client's id for `tombstone` after its
    /// expiry. One of ours stays a little too, since its tasks can have been
    /// worked on after its last write: its first task must not stand for it when
    /// it is over. What a deletion has left stays until a sweep removes it, and a
    /// week at most.
    #[must_use]
    pub fn kept_until(&self, tombstone: Duration) -> Timestamp {
        if self.is_cleared() {
            return self.expires_at.plus(REMEMBERED);
        }
        let life = self.expires_at.since(self.updated_at);
        let rest = if self.context_id.is_server_made() {
            life / KEPT
        } else {
            tombstone
        };
        self.expires_at.plus(rest)
    }

    /// Until when its state is stored, if nobody removes it before: one life of
    /// the thread longer. A refresh writes the thread and leaves the state as it
    /// is, so what is noted with the state can be that much behind.
    #[must_use]
    pub fn state_kept_until(&self) -> Timestamp {
        let life = self.expires_at.since(self.updated_at);
        self.expires_at.plus(life)
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

    /// A page of `owner`'s conversations that live, without their state, from
    /// an index and never by a scan. A conversation without a thread of its own
    /// is there with version 0. The index may lag, and a page may be short; its
    /// `next` decides where the list goes on.
    ///
    /// # Errors
    /// [`StoreError`] when the store does not answer.
    async fn list_threads(
        &self,
        owner: &Owner,
        query: &ThreadQuery,
    ) -> Result<ThreadPage, StoreError>;
}

/// Which conversations to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadQuery {
    /// Continue after this place.
    pub after: Option<ThreadPosition>,
    /// At most this many.
    pub limit: usize,
    /// How long a conversation lives whose first task stands for it.
    pub ttl: Duration,
    /// The time by which expiry is judged.
    pub now: Timestamp,
}

/// A place in a list of conversations: after the one with this last activity
/// and id. Newer ones are larger.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ThreadPosition {
    /// The last activity.
    pub at: Timestamp,
    /// The conversation.
    pub context: ContextId,
}

/// A page of a caller's conversations.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ThreadPage {
    /// The conversations, newest activity first.
    pub threads: Vec<ThreadRecord>,
    /// Where the next page starts; `None` at the end.
    pub next: Option<ThreadPosition>,
}

/// What of a conversation has a time that is up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Expiring {
    /// What is left of a deletion.
    Deleted,
    /// Its state.
    State,
}

/// A conversation which a sweep may have to look at. It is a hint from an index
/// that lags, and that a refresh does not write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpiringThread {
    /// Whose it is.
    pub owner: Owner,
    /// Which.
    pub context_id: ContextId,
    /// What of it.
    pub what: Expiring,
}

/// What has been removed of a state whose time was up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StateRemoved {
    /// Whether there was such a state.
    pub state: bool,
    /// The objects that went with it.
    pub objects: usize,
}

/// Finding conversations whose time is up, over all tenants, and cleaning up
/// what is left of them.
#[async_trait]
pub trait SweepThreads: WriteThreads {
    /// Over how many shards the index is spread. Each is read by itself.
    fn expiry_shards(&self) -> u32 {
        1
    }

    /// Up to `limit` conversations of a shard (the first is 0) at which a sweep has
    /// to look by `now` ([`ThreadRecord::swept_at`]), after the place `after`; the
    /// place to go on from, `None` at the end.
    ///
    /// # Errors
    /// [`StoreError`] when the store does not answer.
    async fn expiring_threads(
        &self,
        shard: u32,
        now: Timestamp,
        after: Option<String>,
        limit: usize,
    ) -> Result<(Vec<ExpiringThread>, Option<String>), StoreError>;

    /// Notes the expiry that the state of `thread` has by now, so that no sweep
    /// finds it before. A state that another write has put there stays as it is.
    ///
    /// # Errors
    /// [`StoreError`] when the store does not answer.
    async fn note_expiry(&self, thread: &ThreadRecord) -> Result<(), StoreError>;

    /// Removes what is stored of a state that no thread names, if the expiry
    /// noted with it is at or before `now`, and its object after it.
    ///
    /// # Errors
    /// [`StoreError`] when the store does not answer. An object that cannot be
    /// removed is no error: it is nobody's.
    async fn remove_state(
        &self,
        owner: &Owner,
        id: &ContextId,
        now: Timestamp,
    ) -> Result<StateRemoved, StoreError>;
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

    /// Removes what lies beside a thread that has been cleared, as in `record`: its
    /// state, and what the store keeps of it as objects, but nothing of a later
    /// write. It can be done again, and then removes what is left.
    ///
    /// # Errors
    /// [`StoreError`]; after `Unavailable` some of it may be there.
    async fn forget_state(&self, record: &ThreadRecord) -> Result<(), StoreError>;

    /// Removes a thread that is stored as in `record`, after what lies beside it.
    /// `true` if nothing of it is left; `false` if another write stands there.
    ///
    /// # Errors
    /// [`StoreError`]; after `Unavailable` the thread may or may not be there.
    async fn remove_thread(&self, record: &ThreadRecord) -> Result<bool, StoreError>;
}
