//! Webhooks of tasks, and where their deliveries stand.
//!
//! A webhook is a child of its task: it names the task's incarnation, and is
//! looked at after the task itself. What a delivery writes changes neither the
//! task's version nor anything a client sees. Only who holds the lease of a
//! webhook writes it, and only for the registration it was taken for.

use super::StoreError;
use crate::task::{
    Delivery, Owner, PushId, PushLease, PushRecord, TaskId, TaskRecord, Timestamp, WriteId,
};
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
    /// Takes the lease of a webhook for whoever is named in `lease`, and keeps the
    /// webhook until `clean_at` at least. `false` if somebody else has a lease at
    /// `now`, the deliveries have gone on since `push` was read, or the webhook is
    /// gone or was registered anew. Whoever has it already gets it again.
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

    /// Notes where the deliveries of a webhook stand now; its lease is dropped
    /// if `delivery` has none. `false` if `holder` has not got the lease any more,
    /// or the webhook is gone or was registered anew.
    ///
    /// # Errors
    /// [`StoreError`]; after `Unavailable` it may or may not be noted.
    async fn note_delivery(
        &self,
        push: &PushRecord,
        holder: &WriteId,
        delivery: &Delivery,
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
