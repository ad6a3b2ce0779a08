//! Deleting what a caller no longer wants: a task, or a conversation with its
//! tasks.
//!
//! What is worked on is not deleted: its client cancels it first. The item that
//! decides goes first, so that a task is gone for every reader at once; what
//! lies beside it follows. Each call can be made again, and removes what an
//! earlier one left that did not come to its end.

use super::{Engine, EngineError};
use crate::auth::Caller;
use crate::store::{RecordQuery, StoreError};
use crate::task::{ContextId, Owner, Refusal, TaskId, TaskRecord};

/// How often a lost race is decided again.
const ROUNDS: usize = 8;
/// Tasks of a conversation read at a time.
const READ: usize = 100;

impl Engine {
    /// Deletes a task and everything stored for it. Its conversation stays, but
    /// for one which nothing else stands for.
    ///
    /// # Errors
    /// [`Refusal::TaskNotFound`] if it is absent, expired or another's;
    /// [`Refusal::TaskBusy`] while it is submitted or working.
    pub async fn delete_task(&self, caller: &Caller, id: &TaskId) -> Result<(), EngineError> {
        let now = self.reader.clock.now();
        for _ in 0..ROUNDS {
            let Some(record) = self.tasks.load(&caller.owner, id, now).await? else {
                self.tasks.remove_task(&caller.owner, id, None).await?;
                return Err(Refusal::TaskNotFound.into());
            };
            if self.remove(&record).await? {
                return Ok(());
            }
        }
        Err(StoreError::Unavailable("lost too many races".to_owned()).into())
    }

    /// Deletes a conversation: its tasks, then its thread and state. Its id
    /// leaves no tombstone: one that the client made is free again.
    ///
    /// # Errors
    /// [`Refusal::ContextExpired`] if it is absent, expired or another's;
    /// [`Refusal::TaskBusy`] while a task of it is submitted or working. Then
    /// nothing has been deleted.
    pub async fn delete_context(&self, caller: &Caller, id: &ContextId) -> Result<(), EngineError> {
        let (owner, now) = (&caller.owner, self.reader.clock.now());
        let thread = self.threads.load_thread_head(owner, id).await?;
        let tasks = self.tasks_of(owner, id).await?;
        let stands = tasks.iter().any(|task| {
            let ttl = self.reader.policy.thread_ttl;
            !task.state().is_at_rest() || task.active_at().plus(ttl) > now
        });
        match &thread {
            Some(thread) if thread.lives(now) => {}
            // Without a thread the first task stands for it; others are what an
            // earlier call left.
            None if stands => {}
            _ => return Err(Refusal::ContextExpired.into()),
        }
        if tasks.iter().any(|task| !task.state().is_at_rest()) {
            return Err(Refusal::TaskBusy.into());
        }
        for task in &tasks {
            // One that has gone on meanwhile refuses; the rest can be deleted
            // when it is at rest.
            if !self.remove(task).await? {
                return Err(Refusal::TaskBusy.into());
            }
        }
        Ok(self.threads.remove_thread(owner, id).await?)
    }

    /// The tasks of a conversation, its first one also where the index lags.
    async fn tasks_of(
        &self,
        owner: &Owner,
        id: &ContextId,
    ) -> Result<Vec<TaskRecord>, EngineError> {
        let now = self.reader.clock.now();
        let mut tasks = Vec::new();
        if let Some(first) = id.first_task() {
            let found = self.tasks.load(owner, &first, now).await?;
            tasks.extend(found.filter(|task| task.context_id == *id));
        }
        let mut after = None;
        loop {
            let query = RecordQuery {
                context_id: Some(id.clone()),
                state: None,
                status_after: None,
                after,
                limit: READ,
                count_limit: 0,
                now,
            };
            let page = self.tasks.list(owner, &query).await?;
            for task in page.records {
                if tasks.iter().all(|known: &TaskRecord| known.id != task.id) {
                    tasks.push(task);
                }
            }
            after = page.next;
            if after.is_none() {
                return Ok(tasks);
            }
        }
    }

    /// Removes a task at rest, unless another write came between.
    async fn remove(&self, record: &TaskRecord) -> Result<bool, EngineError> {
        if !record.state().is_at_rest() {
            return Err(Refusal::TaskBusy.into());
        }
        let version = Some(record.version);
        Ok(self
            .tasks
            .remove_task(&record.owner, &record.id, version)
            .await?)
    }
}
