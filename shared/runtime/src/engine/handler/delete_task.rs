//! Deletes a task; `delete_context` deletes contexts.
//!
//! A task that is submitted or working is not deleted: its client cancels it first. A
//! deletion first expires the task, so that no reader finds it. Then it removes the
//! objects, then the items beside the task's own, and that item last. So a deletion that
//! is cut off leaves the item, by which a later call finds the rest. Without a later
//! call, native TTL removes the items and the sweep removes the objects.

use super::Tasks;
use crate::auth::Caller;
use crate::engine::commit::contention::Races;
use crate::engine::error::EngineError;
use crate::engine::files::{object_key, remove_objects_of};
use crate::task::{A2aError, TaskId, TaskRecord, Timestamp};
use std::collections::BTreeSet;

/// A time at which no task had expired: a read as of this time finds ended tasks too.
const EVER: Timestamp = Timestamp::from_millis(0);

impl Tasks {
    /// Deletes a task and everything stored for it. Its context stays, unless only this
    /// task kept it alive. For a task that is gone it removes what an earlier call has
    /// left.
    ///
    /// # Errors
    /// [`A2aError::TaskNotFound`] if it is absent, expired or another caller's;
    /// [`A2aError::TaskBusy`] while it is submitted or working.
    pub async fn delete_task(&self, caller: &Caller, id: &TaskId) -> Result<(), EngineError> {
        let (owner, now) = (&caller.owner, self.reader.clock.now());
        let Some(record) = self.commits.records.load(owner, id, now).await? else {
            // A deletion that was cut off has left something: this call removes it.
            if let Some(task) = self.commits.records.ended_task(owner, id, now).await? {
                self.delete_children(&task).await?;
            }
            return Err(A2aError::TaskNotFound.into());
        };
        let incarnation = record.incarnation.clone();
        // If the task is gone and a new task has its id, the new one stays.
        let is_same = |task: &TaskRecord| task.incarnation == incarnation;
        self.remove_task(record, is_same).await
    }

    /// Removes a task and everything stored for it. If another write comes first, it continues
    /// with the task under the id, unless that is not the same.
    ///
    /// # Errors
    /// [`A2aError::TaskBusy`] while it is submitted or working.
    pub(super) async fn remove_task(
        &self,
        mut record: TaskRecord,
        is_same: impl Fn(&TaskRecord) -> bool + Send,
    ) -> Result<(), EngineError> {
        let (owner, id) = (record.owner.clone(), record.id.clone());
        let mut races = Races::default();
        loop {
            if let Some(task) = self.end_at_rest(record).await?
                && self.delete_children(&task).await?
            {
                return Ok(());
            }
            let current = self.commits.records.head(&owner, &id, EVER).await?;
            let Some(again) = current.filter(|task| is_same(task)) else {
                return Ok(());
            };
            record = again;
            races.note_loss()?;
        }
    }

    /// Expires a task at rest; `None` if another write came first.
    async fn end_at_rest(&self, head: TaskRecord) -> Result<Option<TaskRecord>, EngineError> {
        // A commit needs the whole task as its base.
        let Some(record) = self.commits.load_full(head.clone()).await? else {
            // It has expired meanwhile.
            return Ok(Some(head));
        };
        if !record.state().is_at_rest() {
            return Err(A2aError::TaskBusy.into());
        }
        self.forget_uploads(&record).await?;
        self.commits.end(record).await
    }

    /// Removes the uploads that the messages of a task have named; the task has its own
    /// copies. They go before the task expires, since a later call may find only its
    /// item.
    async fn forget_uploads(&self, record: &TaskRecord) -> Result<(), EngineError> {
        let ids: BTreeSet<&str> = record.uploads().collect();
        if ids.is_empty() {
            return Ok(());
        }
        let keys = ids.iter().map(|id| object_key::upload(&record.owner, id));
        let blobs = &self.commits.files.blobs;
        Ok(blobs.remove(&keys.collect::<Vec<_>>()).await?)
    }

    /// Removes everything stored for an expired task; `false` if a new task has its id.
    async fn delete_children(&self, task: &TaskRecord) -> Result<bool, EngineError> {
        // Without the item no later call would find the objects, so the item goes last.
        remove_objects_of(&*self.commits.files.blobs, task).await?;
        Ok(self.commits.records.remove_task(task).await?)
    }
}
