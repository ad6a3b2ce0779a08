//! Deleting a conversation: one write, and then the removal of what it leaves.
//!
//! The write makes the thread a *cleared* one, on the condition of its version. It
//! notes the time up to which all that was made is deleted, the fence. From then on
//! nobody goes on in the conversation: an id of ours has expired, one that a client
//! made begins another conversation, which carries the fence on. A turn that was on
//! its way ends, and writes nothing into the thread.
//!
//! Then its tasks go, a page of them at a time. What the call has no time for is
//! removed by the same call made again. What nobody could see then, since an index
//! lagged or a function was still at it, is removed by the sweep, when neither can
//! be any more; and then the cleared thread too.

use super::{Engine, EngineError};
use crate::auth::Caller;
use crate::store::{RecordQuery, StoreError, ThreadRecord, ThreadStatus, ThreadWrite};
use crate::task::{ContextId, Owner, Refusal, TaskId, TaskRecord, TaskState, Timestamp, WriteId};
use futures::StreamExt as _;
use futures::stream;

/// How often a lost race is decided again.
const ROUNDS: usize = 8;
/// Tasks of a conversation read at a time.
const READ: usize = 100;
/// Tasks removed at once: each costs about seven calls.
const AT_ONCE: usize = 8;
/// Seconds after which a removal that was cut is worth going on with.
const RETRY_AFTER: u64 = 1;
/// By this time no task had expired: it shows those whose life has ended too.
const EVER: Timestamp = Timestamp::from_millis(0);

/// What a removal of what a deleted conversation has left came to.
#[derive(Debug, Default)]
pub(super) struct Removal {
    /// Tasks removed.
    pub(super) tasks: usize,
    /// Tasks that are still worked on.
    pub(super) busy: usize,
    /// Whether the time was up before the end.
    pub(super) cut: bool,
    /// The first thing that went wrong. The rest was removed all the same.
    pub(super) error: Option<EngineError>,
}

impl Removal {
    /// Whether nothing is left, as far as the index shows.
    pub(super) const fn is_whole(&self) -> bool {
        self.busy == 0 && !self.cut && self.error.is_none()
    }
}

/// What became of one task.
enum Gone {
    Removed,
    Busy,
    TimeUp,
}

impl Engine {
    /// Deletes a conversation with its tasks, those that only keep a reply too. It
    /// is gone at once. Its id leaves no tombstone: one that the client made is
    /// free again.
    ///
    /// # Errors
    /// [`Refusal::ContextExpired`] if it is absent, expired or another's, or if
    /// nothing is left of it; [`Refusal::TaskBusy`] while a task of it is submitted
    /// or working: then nothing has been deleted. [`Refusal::Unfinished`] when the
    /// time of the call was up before all of it was removed: then it is gone, and
    /// the same call goes on.
    pub async fn delete_context(&self, caller: &Caller, id: &ContextId) -> Result<(), EngineError> {
        let budget = self.reader.policy.blocking_budget;
        let until = self.reader.clock.now().plus(budget);
        let (thread, anew) = self.clear(&caller.owner, id).await?;
        self.threads.forget_state(&thread).await?;
        let removal = self.remove_cleared(&thread, Some(until)).await?;
        if let Some(error) = removal.error {
            return Err(error);
        }
        if removal.cut {
            let retry_after = RETRY_AFTER;
            return Err(Refusal::Unfinished { retry_after }.into());
        }
        if anew || removal.tasks > 0 {
            Ok(())
        } else {
            Err(Refusal::ContextExpired.into())
        }
    }

    /// The conversation as a cleared thread, and whether it is so from now on. One
    /// that was cleared before may have something left.
    ///
    /// # Errors
    /// [`Refusal::ContextExpired`] and [`Refusal::TaskBusy`].
    async fn clear(
        &self,
        owner: &Owner,
        id: &ContextId,
    ) -> Result<(ThreadRecord, bool), EngineError> {
        for _ in 0..ROUNDS {
            let now = self.reader.clock.now();
            let head = self.threads.load_thread_head(owner, id).await?;
            let (mut tasks, more) = self.tasks.tasks_in(owner, id, None, READ).await?;
            tasks.extend(self.first_task(owner, id).await?);
            // What an earlier deletion is about is no more of this conversation.
            let past = |at| head.as_ref().is_some_and(|head| head.has_cleared(at));
            tasks.retain(|task| !past(task.created_at));
            let lives = match &head {
                Some(head) if head.status != ThreadStatus::Cleared => head.lives(now),
                // Without a thread its tasks stand for it.
                _ => tasks.iter().any(|task| self.stands(task, now)),
            };
            match head {
                Some(head) if !lives && head.status == ThreadStatus::Cleared => {
                    return Ok((head, false));
                }
                _ if !lives => return Err(Refusal::ContextExpired.into()),
                head => {
                    let busy = |it: &TaskRecord| !it.hidden && !it.state().is_at_rest();
                    if tasks.iter().any(busy)
                        || more.is_some() && self.is_worked_on(owner, id, head.as_ref()).await?
                    {
                        return Err(Refusal::TaskBusy.into());
                    }
                    let write = self.cleared(owner, id, head, &tasks);
                    if self.keep_thread(&write).await? {
                        return Ok((write.record, true));
                    }
                }
            }
        }
        Err(StoreError::Unavailable("lost too many races for a thread".to_owned()).into())
    }

    /// Whether a conversation without a thread lives by this task of it.
    fn stands(&self, task: &TaskRecord, now: Timestamp) -> bool {
        let until = task.active_at().plus(self.reader.policy.thread_ttl);
        !task.expired(now) && (!task.state().is_at_rest() || until > now)
    }

    /// The write that clears a conversation, of which these are the newest tasks.
    /// Its fence lies behind all of them, whatever the clocks of their makers said.
    fn cleared(
        &self,
        owner: &Owner,
        id: &ContextId,
        head: Option<ThreadRecord>,
        tasks: &[TaskRecord],
    ) -> ThreadWrite {
        let now = self.reader.clock.now();
        let head = head.unwrap_or_else(|| {
            let began = tasks.iter().map(|task| task.created_at).min();
            ThreadRecord::begun(owner.clone(), id.clone(), began.unwrap_or(now), now)
        });
        let known = [head.created_at, head.updated_at];
        let known = known.into_iter().chain(head.cleared_at);
        let known = known.chain(tasks.iter().map(|task| task.created_at));
        let fence = known.fold(now, Timestamp::max);
        ThreadWrite {
            expect: head.version,
            record: head.cleared(fence),
            write: WriteId::made_of(self.ids.next()),
        }
    }

    /// The task that a conversation is named after, also where the index lags.
    async fn first_task(
        &self,
        owner: &Owner,
        id: &ContextId,
    ) -> Result<Option<TaskRecord>, EngineError> {
        let Some(first) = id.first_task() else {
            return Ok(None);
        };
        let found = self.tasks.head(owner, &first, EVER).await?;
        Ok(found.filter(|task| task.context_id == *id))
    }

    /// Whether the index shows work in a conversation, of which one page was not
    /// all; what was left of an earlier one does not count.
    async fn is_worked_on(
        &self,
        owner: &Owner,
        id: &ContextId,
        head: Option<&ThreadRecord>,
    ) -> Result<bool, EngineError> {
        let past = |at| head.is_some_and(|head| head.has_cleared(at));
        for state in [TaskState::Working, TaskState::Submitted] {
            let mut query = RecordQuery {
                state: Some(state),
                now: self.reader.clock.now(),
                ..RecordQuery::of_context(id, None, READ)
            };
            loop {
                let page = self.tasks.list(owner, &query).await?;
                if page.records.iter().any(|task| !past(task.created_at)) {
                    return Ok(true);
                }
                query.after = page.next;
                if query.after.is_none() {
                    break;
                }
            }
        }
        Ok(false)
    }

    /// Removes the tasks that were made up to the fence of `thread`, until the time
    /// is up. It can be called again, and then removes what is left.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub(super) async fn remove_cleared(
        &self,
        thread: &ThreadRecord,
        until: Option<Timestamp>,
    ) -> Result<Removal, EngineError> {
        let mut so_far = Removal::default();
        let (owner, id) = (&thread.owner, &thread.context_id);
        let first = self.first_task(owner, id).await?;
        let first = first.into_iter().collect();
        self.remove_page(thread, first, until, &mut so_far).await;
        let mut after = None;
        while !so_far.cut {
            let (heads, next) = self.tasks.tasks_in(owner, id, after, READ).await?;
            self.remove_page(thread, heads, until, &mut so_far).await;
            after = next;
            if after.is_none() {
                break;
            }
        }
        Ok(so_far)
    }

    async fn remove_page(
        &self,
        thread: &ThreadRecord,
        heads: Vec<TaskRecord>,
        until: Option<Timestamp>,
        so_far: &mut Removal,
    ) {
        let deleted = |task: &TaskRecord| thread.has_cleared(task.created_at);
        let heads = heads.into_iter().filter(deleted);
        let removed = stream::iter(heads).map(|head| async move {
            if self.time_is_up(until) {
                return Ok(Gone::TimeUp);
            }
            self.remove_deleted(thread, head).await
        });
        let mut removed = removed.buffer_unordered(AT_ONCE);
        while let Some(one) = removed.next().await {
            match one {
                Ok(Gone::Removed) => so_far.tasks += 1,
                Ok(Gone::Busy) => so_far.busy += 1,
                Ok(Gone::TimeUp) => so_far.cut = true,
                Err(error) => drop(so_far.error.get_or_insert(error)),
            }
        }
    }

    /// Removes one of the tasks, in the order of [`Engine::delete_task`].
    async fn remove_deleted(
        &self,
        thread: &ThreadRecord,
        mut head: TaskRecord,
    ) -> Result<Gone, EngineError> {
        let (owner, id): (Owner, TaskId) = (head.owner.clone(), head.id.clone());
        for _ in 0..ROUNDS {
            let ended = match self.end_at_rest(head).await {
                Err(error) if error.refusal == Refusal::TaskBusy => return Ok(Gone::Busy),
                ended => ended?,
            };
            if let Some(ended) = ended
                && self.take_away(&ended).await?
            {
                return Ok(Gone::Removed);
            }
            // Another write came between, or another task has the id by now.
            let found = self.tasks.head(&owner, &id, EVER).await?;
            let same = |task: &TaskRecord| {
                task.context_id == thread.context_id && thread.has_cleared(task.created_at)
            };
            let Some(again) = found.filter(same) else {
                return Ok(Gone::Removed);
            };
            head = again;
        }
        Ok(Gone::Busy)
    }
}
