//! Deleting what a caller no longer wants: a task, or a conversation with its
//! tasks.
//!
//! What is worked on is not deleted: its client cancels it first. A deletion
//! ends the life of a task first, so that it is gone for every reader at once;
//! then its objects go, then what lies beside its item, and the item last. So a
//! deletion that does not come to its end leaves the item, by which a later call
//! finds the rest; and native TTL with the relay, if nobody calls.

use super::{Engine, EngineError, tidy};
use crate::auth::Caller;
use crate::store::{RecordQuery, StoreError};
use crate::task::{ContextId, Owner, Refusal, TaskId, TaskRecord, Timestamp};

/// How often a lost race is decided again.
const ROUNDS: usize = 8;
/// Tasks of a conversation read at a time.
const READ: usize = 100;

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
        for _ in 0..ROUNDS {
            let Some(record) = self.tasks.load(owner, id, now).await? else {
                if let Some(ended) = self.tasks.ended_task(owner, id, now).await? {
                    self.clear(&ended).await?;
                }
                return Err(Refusal::TaskNotFound.into());
            };
            if let Some(ended) = self.end_at_rest(record).await?
                && self.clear(&ended).await?
            {
                return Ok(());
            }
        }
        Err(StoreError::Unavailable("lost too many races".to_owned()).into())
    }

    /// Deletes a conversation: its tasks, then its thread and state. Its id
    /// leaves no tombstone: one that the client made is free again. Of one that
    /// is gone it removes what an earlier call has left of its tasks.
    ///
    /// # Errors
    /// [`Refusal::ContextExpired`] if it is absent, expired or another's;
    /// [`Refusal::TaskBusy`] while a task of it is submitted or working. Then
    /// nothing has been deleted.
    pub async fn delete_context(&self, caller: &Caller, id: &ContextId) -> Result<(), EngineError> {
        let (owner, now) = (&caller.owner, self.reader.clock.now());
        let thread = self.threads.load_thread_head(owner, id).await?;
        let mut tasks = self.tasks_of(owner, id, now).await?;
        let mut ended = self.ended_of(owner, id, now).await?;
        let stands = |task: &TaskRecord| {
            let until = task.active_at().plus(self.reader.policy.thread_ttl);
            !task.state().is_at_rest() || until > now
        };
        // Without a thread the first task stands for it.
        let lives = match &thread {
            Some(thread) => thread.lives(now),
            None => tasks.iter().any(stands),
        };
        if lives {
            if tasks.iter().any(|task| !task.state().is_at_rest()) {
                return Err(Refusal::TaskBusy.into());
            }
            // By the newest an unfinished deletion is known, where no thread is.
            tasks.sort_by_key(|task| task.updated_at);
            for task in tasks {
                // One that has gone on meanwhile refuses; the rest can be deleted
                // when it is at rest.
                let task = self.end_at_rest(task).await?;
                ended.push(task.ok_or(Refusal::TaskBusy)?);
            }
        }
        for task in &ended {
            // Where another task has the id by now, there is nothing left of it.
            let _cleared = self.clear(task).await?;
        }
        if !lives {
            return Err(Refusal::ContextExpired.into());
        }
        Ok(self.threads.remove_thread(owner, id).await?)
    }

    /// What is left of tasks of a conversation whose life has ended, its first
    /// one also where the index lags.
    async fn ended_of(
        &self,
        owner: &Owner,
        id: &ContextId,
        now: Timestamp,
    ) -> Result<Vec<TaskRecord>, EngineError> {
        let mut ended = self.tasks.ended_tasks(owner, id, now).await?;
        if let Some(first) = id.first_task()
            && ended.iter().all(|task| task.id != first)
        {
            let found = self.tasks.ended_task(owner, &first, now).await?;
            ended.extend(found.filter(|task| task.context_id == *id));
        }
        Ok(ended)
    }

    /// The heads of the tasks of a conversation, its first one also where the
    /// index lags.
    async fn tasks_of(
        &self,
        owner: &Owner,
        id: &ContextId,
        now: Timestamp,
    ) -> Result<Vec<TaskRecord>, EngineError> {
        let mut tasks = Vec::new();
        if let Some(first) = id.first_task() {
            let found = self.tasks.head(owner, &first, now).await?;
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

    /// Ends the life of a task, unless another write came between.
    ///
    /// # Errors
    /// [`Refusal::TaskBusy`] while it is submitted or working.
    async fn end_at_rest(&self, head: TaskRecord) -> Result<Option<TaskRecord>, EngineError> {
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
        self.end(record).await
    }

    /// Takes away everything that is stored for a task whose life has ended;
    /// `false` if another task stands there by now.
    async fn clear(&self, ended: &TaskRecord) -> Result<bool, EngineError> {
        match tidy::remove_objects_of(&*self.reader.blobs, ended).await {
            // A store that lists nothing cleans nothing up, and says so.
            Err(StoreError::Refused(why)) => {
                tracing::warn!("objects of a deleted task stay: {why}");
            }
            removed => drop(removed?),
        }
        Ok(self.tasks.remove_task(ended).await?)
    }
}
