//! Work that waits: what the relay sends and a worker receives.
//!
//! Messages are at least once and carry ids only; the claim of the task decides
//! what they are worth.

use super::StoreError;
use crate::task::{Owner, PushId, TaskId, TaskKey, TaskRecord, ThreadKey, Timestamp, WriteId};
use async_trait::async_trait;
use std::time::Duration;

/// A turn that waits for a worker.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkItem {
    /// Whose task it is.
    pub owner: Owner,
    /// The task.
    pub task: TaskId,
    /// Which task it is, of those that had this id one after the other.
    pub incarnation: WriteId,
    /// The turn.
    pub turn: u32,
    /// The version of the task that asked for a worker.
    pub dispatch: u64,
}

/// The queue of turns.
#[async_trait]
pub trait WorkQueue: Send + Sync {
    /// Sends the items; one flag an item, whether the queue has taken it.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] when the queue does not answer: then none
    /// counts as taken.
    async fn send(&self, items: &[WorkItem]) -> Result<Vec<bool>, StoreError>;
}

/// A webhook that has events to get.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PushItem {
    /// Whose task it is.
    pub owner: Owner,
    /// The task.
    pub task: TaskId,
    /// Which task it is, of those that had this id one after the other.
    pub incarnation: WriteId,
    /// The webhook.
    pub config: PushId,
}

/// The longest time for which [`PushQueue::ring`] can put an item off.
pub const RING_MAX: Duration = Duration::from_secs(900);

/// The queue of deliveries, which shares its receivers fairly between tenants.
/// An item is a doorbell: it says that a webhook may have something to get, and
/// may come more than once and in any order.
#[async_trait]
pub trait PushQueue: Send + Sync {
    /// Sends the items, to be received after `wait`, of [`RING_MAX`] at most; one
    /// flag an item, whether the queue has taken it.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] when the queue does not answer: then none
    /// counts as taken.
    async fn ring(&self, items: &[PushItem], wait: Duration) -> Result<Vec<bool>, StoreError>;
}

/// One received message.
#[async_trait]
pub trait Receipt: Send + Sync {
    /// Hides the message from other workers for `time` from now.
    ///
    /// # Errors
    /// [`StoreError`] when the queue does not answer; the message may then
    /// come again early, which the claim bears.
    async fn hide(&self, time: Duration) -> Result<(), StoreError>;
}

/// What becomes of a message after its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ack {
    /// It is done with.
    Delete,
    /// It has to come again.
    Keep,
}

/// What the table's stream says of one commit: the new image of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskImage {
    /// Whose task it is.
    pub owner: Owner,
    /// The task.
    pub task: TaskId,
    /// Which task it is, of those that had this id one after the other.
    pub incarnation: WriteId,
    /// Its turn.
    pub turn: u32,
    /// Its version.
    pub version: u64,
    /// The version that asked for a worker, if one is asked for.
    pub dispatch: Option<u64>,
    /// The number of its last event, if this commit has logged it and webhooks
    /// want to know.
    pub notify: Option<u64>,
    /// The webhooks.
    pub listeners: Vec<PushId>,
}

impl TaskImage {
    /// The image of a stored record, as a stream would show it.
    #[must_use]
    pub fn of(record: &TaskRecord) -> Self {
        Self {
            owner: record.owner.clone(),
            task: record.id.clone(),
            incarnation: record.incarnation.clone(),
            turn: record.turn,
            version: record.version,
            dispatch: record.dispatch,
            notify: record.notify(),
            listeners: record.listeners.clone(),
        }
    }
}

/// A task which a sweep may have to look at. It is a hint from an index that
/// lags: the sweep reads the task again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenTask {
    /// Whose task it is.
    pub owner: Owner,
    /// The task.
    pub task: TaskId,
}

/// Finding what a sweep has to look at, over all tenants.
#[async_trait]
pub trait SweepTasks: Send + Sync {
    /// Over how many shards the index is spread. Each is read by itself.
    fn open_shards(&self) -> u32 {
        1
    }

    /// Up to `limit` tasks of a shard (the first is 0) that are submitted or
    /// working, or whose webhooks are not known to have heard of their rest,
    /// oldest first, after the place `after`; the place to go on from, `None` at
    /// the end.
    ///
    /// # Errors
    /// [`StoreError`] when the store does not answer.
    async fn open_tasks(
        &self,
        shard: u32,
        after: Option<String>,
        limit: usize,
    ) -> Result<(Vec<OpenTask>, Option<String>), StoreError>;
}

/// Reading what is stored, for steps that know a key and no caller.
#[async_trait]
pub trait TasksByKey: Send + Sync {
    /// The whole task under `key` as it is stored, read consistently, whoever's
    /// it is, and even if it has expired.
    ///
    /// # Errors
    /// [`StoreError`] when the store does not answer or the item is corrupt.
    async fn stored_at(&self, key: &TaskKey) -> Result<Option<TaskRecord>, StoreError>;

    /// The same, but of its content only what stands in its own item: state,
    /// incarnation and expiry.
    ///
    /// # Errors
    /// As [`TasksByKey::stored_at`].
    async fn standing_at(&self, key: &TaskKey) -> Result<Option<TaskRecord>, StoreError>;

    /// The object in which the store keeps the state of a conversation, if it
    /// does; read consistently.
    ///
    /// # Errors
    /// As [`TasksByKey::stored_at`].
    async fn state_object(&self, thread: &ThreadKey) -> Result<Option<String>, StoreError>;
}

/// Where a look at all stored objects has come to. It takes many sweeps, which
/// share no memory.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ObjectsPlace {
    /// When the look began.
    pub began: Timestamp,
    /// The last key that was looked at; `None` when it has come to the end.
    pub after: Option<String>,
}

/// Finding objects that nobody names.
#[async_trait]
pub trait SweepObjects: TasksByKey {
    /// The objects in which the store itself keeps content of the task under
    /// `key`, as the task names them; read consistently. (What the record of the
    /// task names is none of them.)
    ///
    /// # Errors
    /// As [`TasksByKey::stored_at`].
    async fn content_objects(&self, key: &TaskKey) -> Result<Vec<String>, StoreError>;

    /// What the last sweep has noted; `None` if there was none.
    ///
    /// # Errors
    /// [`StoreError`] when the store does not answer.
    async fn objects_place(&self) -> Result<Option<ObjectsPlace>, StoreError>;

    /// Notes it for the next sweep.
    ///
    /// # Errors
    /// [`StoreError`] when the store does not answer.
    async fn note_objects_place(&self, place: &ObjectsPlace) -> Result<(), StoreError>;
}
