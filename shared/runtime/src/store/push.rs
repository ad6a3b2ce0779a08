//! Webhooks of tasks, and where their deliveries stand.
//!
//! A webhook is a child of its task: it names the task's incarnation, and is
//! looked at after the task itself. What a delivery writes changes neither the
//! task's version nor anything a client sees.

use super::StoreError;
use crate::task::{Owner, PushId, PushRecord, TaskId, TaskRecord, Timestamp};
use async_trait::async_trait;

/// Reading the webhooks of a task.
#[async_trait]
pub trait ReadPushes: Send + Sync {
    /// The webhooks of a task in the order of their ids, read consistently:
    /// only `owner`'s, of whatever incarnation.
    ///
    /// # Errors
    /// [`StoreError`] when the store does not answer or an item is corrupt.
    async fn pushes(&self, owner: &Owner, task: &TaskId) -> Result<Vec<PushRecord>, StoreError>;
}

/// Writing the webhooks of a task apart from its commits.
#[async_trait]
pub trait WritePushes: ReadPushes {
    /// Stores a webhook, over one of the same id: for a task that has ended,
    /// which no commit changes any more. One that is open gets its webhooks
    /// with a commit ([`TaskWrite`](super::TaskWrite)).
    ///
    /// # Errors
    /// [`StoreError`] when the store does not answer.
    async fn put_push(&self, push: &PushRecord) -> Result<(), StoreError>;

    /// Removes a webhook; one that is not there is as good as removed.
    ///
    /// # Errors
    /// [`StoreError`] when the store does not answer.
    async fn delete_push(
        &self,
        owner: &Owner,
        task: &TaskId,
        id: &PushId,
    ) -> Result<(), StoreError>;
}

/// Writing down how deliveries go.
#[async_trait]
pub trait DeliverPushes: ReadPushes {
    /// The webhook has got the events up to number `to`: its cursor moves there
    /// and its attempts count from the start. `false` if it is gone, was
    /// registered anew, or its cursor is there or further already.
    ///
    /// # Errors
    /// [`StoreError`]; after `Unavailable` the cursor may or may not have moved.
    async fn advance_push(
        &self,
        push: &PushRecord,
        to: u64,
        clean_at: Timestamp,
    ) -> Result<bool, StoreError>;

    /// Notes an attempt which follows those that `push` shows, and until when
    /// nobody else should try. `false` if another was noted meanwhile, or the
    /// webhook is gone.
    ///
    /// # Errors
    /// [`StoreError`]; after `Unavailable` it may or may not be noted.
    async fn attempt_push(
        &self,
        push: &PushRecord,
        retry_at: Timestamp,
    ) -> Result<bool, StoreError>;

    /// Takes a task at rest off the sweep's index: its webhooks have all it has
    /// to tell, or were given up. `false` if the task is not at this version
    /// any more. The version stays.
    ///
    /// # Errors
    /// [`StoreError`]; after `Unavailable` it may or may not be off.
    async fn confirm_pushes(&self, record: &TaskRecord) -> Result<bool, StoreError>;
}

/// A whole webhook service.
pub trait Pushes: WritePushes + DeliverPushes {}

impl<T: WritePushes + DeliverPushes> Pushes for T {}
