//! Deleting what a caller no longer wants: a task; `clear` does conversations.
//!
//! What is worked on is not deleted: its client cancels it first. A deletion
//! ends the life of a task first, so that it is gone for every reader at once;
//! then its objects go, then what lies beside its item, and the item last. So a
//! deletion that does not come to its end leaves the item, by which a later call
//! finds the rest; and native TTL with the relay, if nobody calls.

use super::blob::object;
use super::{Engine, EngineError, tidy};
use crate::auth::Caller;
use crate::store::StoreError;
use crate::task::{Refusal, TaskId, TaskRecord};
use std::collections::BTreeSet;

/// How often a lost race is decided again.
const ROUNDS: usize = 8;

impl Engine {
    /// Deletes a task and everything stored for it. Its conversation stays, but
    /// for one which nothing else stands for. Of a task that is gone it removes
    /// what an earlier call has left.
    ///
    /// # Errors
    /// [`Refusal::TaskNotFound`] if it is absent, expired or another's;
    /// [`Refusal::TaskBusy`] while it is submitted or working.
    pub async fn delete_task(&self, caller: &Caller, id: &TaskId) -> Result<(), EngineError> {
        let (owner, now) = (&caller.owner, self.reader.clock.now());
        let mut asked = None;
        for _ in 0..ROUNDS {
            let Some(record) = self.tasks.load(owner, id, now).await? else {
                if let Some(ended) = self.tasks.ended_task(owner, id, now).await? {
                    self.take_away(&ended).await?;
                }
                return Err(Refusal::TaskNotFound.into());
            };
            let first = asked.get_or_insert_with(|| record.incarnation.clone());
            // The task is gone, and its id is another's: that one stays.
            if *first != record.incarnation {
                return Ok(());
            }
            if let Some(ended) = self.end_at_rest(record).await?
                && self.take_away(&ended).await?
            {
                return Ok(());
            }
        }
        Err(StoreError::Unavailable("lost too many races".to_owned()).into())
    }

    /// Ends the life of a task, unless another write came between.
    ///
    /// # Errors
    /// [`Refusal::TaskBusy`] while it is submitted or working.
    pub(super) async fn end_at_rest(
        &self,
        head: TaskRecord,
    ) -> Result<Option<TaskRecord>, EngineError> {
        // It is a commit like any other, on top of the whole task.
        let record = if head.is_partial() {
            let now = self.reader.clock.now();
            match self.tasks.load(head.owner(), head.id(), now).await? {
                Some(whole) => whole,
                // Its time has come by itself.
                None => return Ok(Some(head)),
            }
        } else {
            head
        };
        if !record.state().is_at_rest() {
            return Err(Refusal::TaskBusy.into());
        }
        self.forget_uploads(&record).await?;
        self.end(record).await
    }

    /// Removes the uploads that the messages of a task have named: before its life
    /// ends, since a later call may find only its own item. The task has a copy.
    async fn forget_uploads(&self, record: &TaskRecord) -> Result<(), EngineError> {
        let uploads = record.uploads().map(|id| object::upload(&record.owner, id));
        let keys: BTreeSet<String> = uploads.collect();
        if !keys.is_empty() {
            let keys: Vec<String> = keys.into_iter().collect();
            self.reader.blobs.remove(&keys).await?;
        }
        Ok(())
    }

    /// Takes away everything that is stored for a task whose life has ended;
    /// `false` if another task stands there by now.
    pub(super) async fn take_away(&self, ended: &TaskRecord) -> Result<bool, EngineError> {
        tidy::remove_objects_of(&*self.reader.blobs, ended).await?;
        Ok(self.tasks.remove_task(ended).await?)
    }
}
