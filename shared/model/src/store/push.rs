//! Storing the push configs of tasks and the progress of their deliveries.
//!
//! A push config is a child of its task: it names the task's incarnation, and readers
//! check the task first. Delivery writes change neither the task's version nor
//! anything a client sees. Only the holder of a config's lease makes them, and only
//! for the registration the lease was taken for.

use super::StoreError;
use crate::task::{
    Delivery, Owner, PushId, PushLease, PushRecord, TaskId, TaskRecord, Timestamp, WriteId,
};
use async_trait::async_trait;

/// Reading the push configs of a task.
#[async_trait]
pub trait ReadPushes: Send + Sync {
    /// The push configs of a task in the order of their ids, read consistently: only
    /// `owner`'s, of any incarnation.
    ///
    /// # Errors
    /// [`StoreError`] when the store does not answer or an item is corrupt.
    async fn pushes(&self, owner: &Owner, task: &TaskId) -> Result<Vec<PushRecord>, StoreError>;
}

/// Writing the push configs of a task outside its commits.
#[async_trait]
pub trait WritePushes: ReadPushes {
    /// Stores a push config and replaces one with the same id. It is for a task that
    /// has ended, because no commit changes that task any more. An open task gets its
    /// configs with a commit ([`TaskWrite`](super::TaskWrite)).
    ///
    /// # Errors
    /// [`StoreError`] when the store does not answer.
    async fn put_push(&self, push: &PushRecord) -> Result<(), StoreError>;

    /// Removes a push config; succeeds if there is none.
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

/// Recording the progress of deliveries.
#[async_trait]
pub trait DeliverPushes: ReadPushes {
    /// Takes the lease of a push config for the holder in `lease`, and keeps the
    /// config at least until `clean_at`. A holder that has the lease already gets it
    /// again. Returns `false` if another holder has a lease at `now`, a delivery was
    /// recorded since `push` was read, or the config is gone or was registered again.
    ///
    /// # Errors
    /// [`StoreError`]; after `Unavailable` it may or may not be taken.
    async fn lease_push(
        &self,
        push: &PushRecord,
        lease: &PushLease,
        now: Timestamp,
        clean_at: Timestamp,
    ) -> Result<bool, StoreError>;

    /// Records the progress of a config's deliveries; the lease ends if `delivery`
    /// has none. Returns `false` if `holder` no longer has the lease, or the config
    /// is gone or was registered again.
    ///
    /// # Errors
    /// [`StoreError`]; after `Unavailable` it may or may not be recorded.
    async fn note_delivery(
        &self,
        push: &PushRecord,
        holder: &WriteId,
        delivery: &Delivery,
    ) -> Result<bool, StoreError>;

    /// Removes a task at rest from the sweep's index, because every push is delivered
    /// or given up. Returns `false` if the task no longer has this version. The
    /// version does not change.
    ///
    /// # Errors
    /// [`StoreError`]; after `Unavailable` the task may or may not be removed.
    async fn confirm_pushes(&self, record: &TaskRecord) -> Result<bool, StoreError>;
}

/// Everything a store does with push configs.
pub trait Pushes: WritePushes + DeliverPushes {}

impl<T: WritePushes + DeliverPushes> Pushes for T {}
