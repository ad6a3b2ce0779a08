//! The stored thread of a context: its life, its deletion and its state.

use crate::task::{ContextId, Message, Metadata, Owner, TaskRecord, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// The store keeps a thread of a server-made id for this part of its life longer
/// (1/10). A thread is written again before more activity than that has passed.
const LONGER_PART: u32 = 10;

/// How long after a deletion its context can still be written: 20 minutes, because a
/// Lambda function runs for at most 15 minutes.
const SETTLED: Duration = Duration::from_secs(20 * 60);
/// The granularity with which the index stores the expiry of a state.
const HOUR: Duration = Duration::from_secs(3600);
/// How long a deletion stays stored if no sweep removes it. Hundreds of sweeps run in
/// that time.
const DELETION_LIFE: Duration = Duration::from_secs(7 * 24 * 3600);

/// The state of a thread.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ThreadState {
    /// What skills added to the thread, oldest first. The id of an event names the
    /// incarnation of its task, its turn and its position in the turn.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<Message>,
    /// Session data by key.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub session: BTreeMap<String, serde_json::Value>,
    /// Members of the stored form that a later version of this program added. They
    /// stay in the state.
    #[serde(flatten)]
    pub unknown: Metadata,
}

/// Whether a context is usable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ThreadStatus {
    /// Usable until its expiry.
    #[default]
    Active,
    /// Deleted. Its id is refused until a sweep has removed everything stored for it.
    Cleared,
}

impl ThreadStatus {
    /// The name in the stored form and in responses.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Cleared => "cleared",
        }
    }
}

/// The stored thread of a context.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ThreadRecord {
    /// The owner.
    pub owner: Owner,
    /// Its id.
    pub context_id: ContextId,
    /// Incremented with each write; 0 = not stored.
    pub version: u64,
    /// Whether the context is usable.
    pub status: ThreadStatus,
    /// When the context began.
    pub created_at: Timestamp,
    /// When it was last written.
    pub updated_at: Timestamp,
    /// When the context expires.
    pub expires_at: Timestamp,
    /// When the state expires.
    pub state_expires_at: Timestamp,
    /// Until when the store keeps the thread, to the second.
    pub kept_until: Timestamp,
    /// The version that wrote the state; 0 = no state.
    pub state_version: u64,
    /// The state.
    pub state: ThreadState,
    /// Members of the stored form that a later version of this program added. They
    /// stay in the thread.
    #[serde(flatten)]
    pub unknown: Metadata,
}

impl ThreadRecord {
    /// A thread that is not stored, of a context that began at `began`, as of `now`.
    #[must_use]
    pub fn new(owner: Owner, context_id: ContextId, began: Timestamp, now: Timestamp) -> Self {
        Self {
            owner,
            context_id,
            version: 0,
            status: ThreadStatus::Active,
            created_at: began,
            updated_at: now,
            expires_at: now,
            state_expires_at: now,
            kept_until: now,
            state_version: 0,
            state: ThreadState::default(),
            unknown: Metadata::new(),
        }
    }

    /// The thread after its context is deleted at `now`: no state, and the next
    /// version.
    #[must_use]
    pub fn clear(self, now: Timestamp) -> Self {
        Self {
            version: self.version + 1,
            status: ThreadStatus::Cleared,
            updated_at: now,
            expires_at: now,
            state_expires_at: now,
            kept_until: whole_seconds(now.plus(DELETION_LIFE)),
            state_version: 0,
            state: ThreadState::default(),
            ..self
        }
    }

    /// Whether a task created at `at` belongs to the deleted context. Its creator had
    /// not seen the deletion: the id is refused until the sweep has finished, which
    /// is later.
    #[must_use]
    pub fn deletes(&self, at: Timestamp) -> bool {
        self.is_cleared() && at <= self.expires_at.plus(SETTLED / 2)
    }

    /// Whether the thread only says when its context began. It is stored before the task
    /// that begins the context, so there may be no such task: then the context is shown
    /// nowhere.
    #[must_use]
    pub fn is_bare(&self) -> bool {
        let is_untouched = self.updated_at == self.created_at && !self.is_cleared();
        self.version > 0 && self.state_version == 0 && is_untouched
    }

    /// Whether the context has been deleted.
    #[must_use]
    pub fn is_cleared(&self) -> bool {
        self.status == ThreadStatus::Cleared
    }

    /// When a sweep has to handle what is stored of the context; `None` if never.
    ///
    /// A deletion is due when no function that began before it can still run. A state
    /// is due at the end of the hour in which it expires, so that the index is
    /// written once an hour and not with each turn. A state that lives for less than
    /// an hour uses its life instead of the hour.
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

    /// The thread of a context without a stored one, derived from its first task. It
    /// lives as long as the task is open, and for `ttl` after its last activity.
    #[must_use]
    pub fn from_first_task(task: &TaskRecord, ttl: Duration, now: Timestamp) -> Self {
        let (owner, id) = (task.owner.clone(), task.context_id.clone());
        let active = if task.is_open(now) {
            now
        } else {
            task.active_at()
        };
        Self {
            updated_at: task.active_at(),
            expires_at: active.plus(ttl),
            ..Self::new(owner, id, task.created_at, now)
        }
    }

    /// Whether the context accepts a message.
    #[must_use]
    pub fn lives(&self, now: Timestamp) -> bool {
        self.status == ThreadStatus::Active && now < self.expires_at
    }

    /// Whether the id of a context that is over may not be used again:
    /// - any id after a deletion, until a sweep has finished it
    /// - an id that the client made, for `tombstone` after the expiry; then it is free
    /// - an id that the server made, while the thread is stored
    #[must_use]
    pub fn blocks_id(&self, now: Timestamp, tombstone: Duration) -> bool {
        let has_tombstone = self.is_cleared() || now < self.expires_at.plus(tombstone);
        has_tombstone || self.context_id.is_server_made()
    }

    /// Lets the store keep the thread until the later of its own end and `open_until`, up to
    /// which a task of it can be open. Its own end is after its expiry:
    /// - with an id that the client made: `tombstone` later
    /// - with an id that the server made: 1/10 of its life later. Its tasks may have been
    ///   active after its last write; while the item is there, none of them opens it again
    /// - a deletion, which has no open task: when a sweep has removed it, at most a week later
    pub fn keep(&mut self, tombstone: Duration, open_until: Timestamp) {
        if self.is_cleared() {
            self.kept_until = whole_seconds(self.expires_at.plus(DELETION_LIFE));
            return;
        }
        let life = self.expires_at.since(self.updated_at);
        let rest = if self.context_id.is_server_made() {
            life / LONGER_PART
        } else {
            tombstone
        };
        let own_end = self.expires_at.plus(rest);
        self.kept_until = self.kept_until.max(whole_seconds(own_end.max(open_until)));
    }

    /// When the store may remove the state if no sweep does: with the thread, and at the
    /// earliest one life of the thread after its expiry. A refresh writes the thread only, so
    /// the expiry stored with the state can be that much behind.
    #[must_use]
    pub fn state_kept_until(&self) -> Timestamp {
        let life = self.expires_at.since(self.updated_at);
        self.expires_at.plus(life).max(self.kept_until)
    }

    /// Whether a write of this record replaces the stored state. If not, there is no
    /// state (version 0), or the stored state stays.
    #[must_use]
    pub const fn replaces_state(&self) -> bool {
        self.state_version == self.version
    }
}

/// The first whole second from `at` on: the TTL of a table counts seconds.
const fn whole_seconds(at: Timestamp) -> Timestamp {
    Timestamp::from_millis(at.ttl_seconds().saturating_mul(1000))
}

/// Which part of a thread is due for a sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Expiring {
    /// What is left after a deletion.
    Deleted,
    /// The state.
    State,
}
