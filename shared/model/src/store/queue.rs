//! The queues: what the relay and the sweep send and the workers receive.
//!
//! Messages are delivered at least once and contain ids only. Whether a message still
//! has work is decided by the claim of the task.

use super::StoreError;
use crate::task::{Owner, PushId, TaskId, TaskRecord, Timestamp, WriteId};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A turn that waits for a worker.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct WorkItem {
    /// The owner of the task.
    #[serde(flatten)]
    pub owner: Owner,
    /// The task.
    pub task: TaskId,
    /// The incarnation: which of the tasks that have had this id.
    pub incarnation: WriteId,
    /// The turn.
    pub turn: u32,
    /// The version of the task that dispatched this turn.
    pub dispatch: u64,
}

/// A message of the work queue that is not sent yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkMessage {
    /// The turn.
    pub item: WorkItem,
    /// How long no worker receives the message, at most [`DELAY_MAX`].
    pub delay: Duration,
}

impl From<WorkItem> for WorkMessage {
    fn from(item: WorkItem) -> Self {
        let delay = Duration::ZERO;
        Self { item, delay }
    }
}

/// The longest delay of a message, 15 minutes: the limit of SQS.
pub const DELAY_MAX: Duration = Duration::from_secs(900);

/// The queue of turns.
#[async_trait]
pub trait WorkQueue: Send + Sync {
    /// Sends the messages. Returns one flag per message: whether the queue accepted it.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] when the queue does not answer; then no message
    /// counts as accepted.
    async fn send(&self, messages: &[WorkMessage]) -> Result<Vec<bool>, StoreError>;

    /// About how many turns wait in the queue, without those that a worker has
    /// received.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] when the queue does not answer.
    async fn waiting(&self) -> Result<usize, StoreError>;
}

/// A push queue message: a push config that may have events to deliver.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PushItem {
    /// The owner of the task.
    #[serde(flatten)]
    pub owner: Owner,
    /// The task.
    pub task: TaskId,
    /// The incarnation: which of the tasks that have had this id.
    pub incarnation: WriteId,
    /// The push config.
    pub config: PushId,
}

/// The push queue, which shares its receivers fairly between tenants. An item says
/// that a push config may have events to deliver. It may arrive more than once and in
/// any order.
#[async_trait]
pub trait PushQueue: Send + Sync {
    /// Sends the items with the delay `wait`, at most [`DELAY_MAX`]. Returns one flag
    /// per item: whether the queue accepted it.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] when the queue does not answer; then no item
    /// counts as accepted.
    async fn send(&self, items: &[PushItem], wait: Duration) -> Result<Vec<bool>, StoreError>;
}

/// One received message.
#[async_trait]
pub trait Receipt: Send + Sync {
    /// Hides the message from other workers for `time`, counted from now.
    ///
    /// # Errors
    /// [`StoreError`] when the queue does not answer. The message may then arrive
    /// again early; the claim of the task handles that.
    async fn hide(&self, time: Duration) -> Result<(), StoreError>;

    /// Lets the turn of the message wait for `time`, and returns what to do with the message. A
    /// queue that counts how often it is received sends another one instead.
    ///
    /// # Errors
    /// As for `hide`.
    async fn postpone(&self, item: &WorkItem, time: Duration) -> Result<Ack, StoreError> {
        let _item = item;
        self.hide(time).await?;
        Ok(Ack::Keep)
    }

    /// About how often the message has been received, this time included; 1 if the queue
    /// does not count.
    fn receives(&self) -> u32 {
        1
    }
}

/// What happens to a message after its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ack {
    /// The work is done: the message is deleted.
    Delete,
    /// The message must be received again.
    Keep,
}

/// The new image of a task in one record of the table's stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskImage {
    /// The owner of the task.
    pub owner: Owner,
    /// The task.
    pub task: TaskId,
    /// The incarnation: which of the tasks that have had this id.
    pub incarnation: WriteId,
    /// Its turn.
    pub turn: u32,
    /// Its version.
    pub version: u64,
    /// The version that dispatched the turn, if the turn waits for a worker.
    pub dispatch: Option<u64>,
    /// No worker begins the turn before.
    pub not_before: Option<Timestamp>,
    /// The number of the last event, if this commit logged it and the task has push
    /// configs.
    pub notify: Option<u64>,
    /// The ids of the push configs.
    pub push_ids: Vec<PushId>,
}

impl TaskImage {
    /// The image of a stored record, as a stream record contains it.
    #[must_use]
    pub fn of(record: &TaskRecord) -> Self {
        Self {
            owner: record.owner.clone(),
            task: record.id.clone(),
            incarnation: record.incarnation.clone(),
            turn: record.turn,
            version: record.version,
            dispatch: record.dispatch(),
            not_before: record.not_before,
            notify: record.notify(),
            push_ids: record.push_ids.clone(),
        }
    }

    /// The turn that waits for a worker, since this commit or an earlier one.
    #[must_use]
    pub fn asks(&self) -> Option<WorkItem> {
        Some(WorkItem {
            owner: self.owner.clone(),
            task: self.task.clone(),
            incarnation: self.incarnation.clone(),
            turn: self.turn,
            dispatch: self.dispatch?,
        })
    }
}

/// A task that a sweep may have to handle. It is a hint from an index that lags: the
/// sweep reads the task again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenTask {
    /// The owner of the task.
    pub owner: Owner,
    /// The task.
    pub task: TaskId,
}

/// The progress of one pass over all stored objects. A pass takes many sweeps, which
/// share no memory.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ObjectsPlace {
    /// When the pass began.
    pub began: Timestamp,
    /// When the pass before it began, if there was one.
    pub before: Option<Timestamp>,
    /// The last key that was checked; `None` when the pass has ended.
    pub after: Option<String>,
}
