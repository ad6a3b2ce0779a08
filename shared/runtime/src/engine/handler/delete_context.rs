//! Deletes a context: one write, then the removal of its tasks.
//!
//! The write makes the thread a *cleared* one, on the condition of its version. From then
//! on the id is refused like that of an expired context. A turn in flight ends and writes
//! nothing into the thread.
//!
//! Then the tasks are removed, a page at a time. If the time of the call is not enough,
//! the same call made again continues. The sweep removes tasks that a function was still
//! working on, when no such function can run any more, and then the cleared thread. From
//! then on a client-made id is new again.

use super::Tasks;
use crate::auth::Caller;
use crate::engine::commit::contention::Races;
use crate::engine::error::EngineError;
use crate::store::{ThreadRecord, ThreadWrite};
use crate::task::{A2aError, ContextId, Owner, TaskRecord, Timestamp, WriteId};
use futures::StreamExt as _;
use futures::stream;

/// Tasks of a context read at a time.
const READ: usize = 100;
/// Tasks removed in parallel: each costs about seven calls.
const AT_ONCE: usize = 8;
/// Seconds after which the client may repeat a deletion that was cut off.
const RETRY_AFTER: u64 = 1;

/// The result of removing the tasks of a deleted context.
#[derive(Debug, Default)]
pub(in crate::engine) struct ContextRemoval {
    /// Tasks removed.
    pub(in crate::engine) tasks: usize,
    /// Tasks that a function still works on.
    pub(in crate::engine) busy: usize,
    /// Whether the time was up before the end.
    pub(in crate::engine) cut: bool,
    /// The first error. The other tasks are removed all the same.
    pub(in crate::engine) error: Option<EngineError>,
}

impl ContextRemoval {
    /// Whether nothing is left.
    pub(in crate::engine) const fn is_whole(&self) -> bool {
        self.busy == 0 && !self.cut && self.error.is_none()
    }
}

/// What the tasks of a context say about it.
#[derive(Default)]
struct ContextTasks {
    /// Whether one of them keeps the context alive if it has no thread.
    holds_thread: bool,
    /// Whether one of them is open, and keeps the context alive if its thread has expired.
    is_open: bool,
    /// Whether one of them is submitted or working.
    busy: bool,
    /// When the first of them was created.
    began: Option<Timestamp>,
}

impl Tasks {
    /// Deletes a context with its tasks. No read finds it from now on. Its id is refused until
    /// the sweep has finished the deletion; the ids of its tasks are free immediately.
    ///
    /// # Errors
    /// [`A2aError::ContextExpired`] if it is absent, expired or another caller's, or if
    /// nothing is left of it; [`A2aError::TaskBusy`] while one of its tasks is submitted
    /// or working: then nothing was deleted. [`A2aError::Unfinished`] when the time of the
    /// call was up before all of it was removed: then the context is gone, and the same
    /// call continues the removal.
    pub async fn delete_context(&self, caller: &Caller, id: &ContextId) -> Result<(), EngineError> {
        let budget = self.reader.policy.blocking_budget;
        let until = self.reader.clock.now().plus(budget);
        let (thread, next) = self.clear_thread(&caller.owner, id).await?;
        self.commits.records.forget_state(&thread).await?;
        let removal = self.remove_cleared(&thread, Some(until)).await?;
        if let Some(error) = removal.error {
            return Err(error);
        }
        if removal.cut {
            let retry_after = RETRY_AFTER;
            return Err(A2aError::Unfinished { retry_after }.into());
        }
        // A repeated call that finds nothing left reports the context as absent.
        if next || removal.tasks > 0 {
            Ok(())
        } else {
            Err(A2aError::ContextExpired.into())
        }
    }

    /// Makes the thread of a context a cleared one; returns it, and whether this call did
    /// it. A thread that was cleared before may have tasks left.
    async fn clear_thread(
        &self,
        owner: &Owner,
        id: &ContextId,
    ) -> Result<(ThreadRecord, bool), EngineError> {
        let mut races = Races::default();
        loop {
            let now = self.reader.clock.now();
            let mut head = self.commits.records.load_thread_head(owner, id).await?;
            if let Some(head) = head.take_if(|head| head.is_cleared()) {
                return Ok((head, false));
            }
            let tasks = self.seen_in(owner, id, now).await?;
            // A context without a thread lives by its tasks.
            let lives = match &head {
                Some(head) => head.lives(now) || tasks.is_open,
                None => tasks.holds_thread,
            };
            if !lives {
                return Err(A2aError::ContextExpired.into());
            }
            if tasks.busy {
                return Err(A2aError::TaskBusy.into());
            }
            let began = tasks.began.unwrap_or(now);
            let new_thread = || ThreadRecord::new(owner.clone(), id.clone(), began, now);
            let head = head.unwrap_or_else(new_thread);
            let write = ThreadWrite {
                expect: head.version,
                record: head.clear(now),
                write: WriteId::made_of(self.reader.ids.next()),
            };
            if self.commits.records.put_thread(&write).await? {
                return Ok((write.record, true));
            }
            races.note_loss()?;
        }
    }

    /// Reads what the tasks of a context say about it; stops when one is busy.
    async fn seen_in(
        &self,
        owner: &Owner,
        id: &ContextId,
        now: Timestamp,
    ) -> Result<ContextTasks, EngineError> {
        let mut tasks = ContextTasks::default();
        let (records, mut after) = (&self.reader.records, None);
        loop {
            let (heads, next) = records.tasks_in(owner, id, None, after, READ).await?;
            for task in &heads {
                tasks.holds_thread |= self.holds_thread(task, now);
                tasks.is_open |= task.is_open(now);
                tasks.busy |= !task.state().is_at_rest();
                let began = tasks.began.unwrap_or(task.created_at);
                tasks.began = Some(began.min(task.created_at));
            }
            after = next;
            if after.is_none() || tasks.busy {
                return Ok(tasks);
            }
        }
    }

    /// Whether this task keeps a context without a thread alive.
    fn holds_thread(&self, task: &TaskRecord, now: Timestamp) -> bool {
        let until = task.active_at().plus(self.reader.policy.thread_ttl);
        task.is_open(now) || (!task.is_expired(now) && until > now)
    }

    /// Removes the tasks of a deleted context until the time is up. A further call
    /// removes what is left.
    pub(in crate::engine) async fn remove_cleared(
        &self,
        thread: &ThreadRecord,
        until: Option<Timestamp>,
    ) -> Result<ContextRemoval, EngineError> {
        let mut removal = ContextRemoval::default();
        let (owner, id) = (&thread.owner, &thread.context_id);
        let (records, mut after) = (&self.reader.records, None);
        loop {
            let (heads, next) = records.tasks_in(owner, id, None, after, READ).await?;
            // The id may be in use again: later tasks are of a new context.
            let is_deleted = |task: &TaskRecord| thread.deletes(task.created_at);
            let heads = heads.into_iter().filter(is_deleted);
            let removals = stream::iter(heads).map(|head| async move {
                if self.reader.time_is_up(until) {
                    return None;
                }
                let is_same = |task: &TaskRecord| {
                    task.context_id == thread.context_id && thread.deletes(task.created_at)
                };
                Some(self.remove_task(head, is_same).await)
            });
            let mut removals = removals.buffer_unordered(AT_ONCE);
            while let Some(one) = removals.next().await {
                match one {
                    None => removal.cut = true,
                    Some(Ok(())) => removal.tasks += 1,
                    Some(Err(error)) if error.a2a_error == A2aError::TaskBusy => removal.busy += 1,
                    Some(Err(error)) => drop(removal.error.get_or_insert(error)),
                }
            }
            after = next;
            if removal.cut || after.is_none() {
                return Ok(removal);
            }
        }
    }
}
