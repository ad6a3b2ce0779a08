//! Reads the state of a message's context, and keeps the context alive while its tasks
//! run. A context is new, continued, continued without its state, or expired.
//!
//! A server-made context costs no write of its own. The first task's record serves as its
//! thread until there is a second task, a value to keep or a refresh. Every other context
//! has a thread from its first task on.
//!
//! Expiry slides with activity. A thread is written at most once in a twentieth of its
//! life, so that a busy thread is not a hot item. Expiry is judged when a message
//! arrives, by the clock of that call; a running turn keeps its context alive.
//!
//! A context with an open task does not expire, nor does its state. A question writes no item
//! for this. Only where a context would be refused, or its state dropped, its tasks are read.

use super::Commits;
use crate::engine::commit::contention::Races;
use crate::engine::error::EngineError;
use crate::store::{ThreadRecord, ThreadStatus, ThreadWrite};
use crate::task::{A2aError, ContextId, Owner, TaskRecord, Timestamp, WriteId};
use std::time::Duration;

/// A thread is written again after this fraction of its life (1/20).
const REFRESH: u32 = 20;
/// A turn checks its thread again after this fraction of its life (1/50).
pub(in crate::engine) const LOOK: u32 = 50;
/// If two first messages of a context arrive together, the stored thread can be this much
/// younger than the other task: no Lambda function runs longer than 15 minutes.
const OPENING: Duration = Duration::from_secs(15 * 60);

/// The state of a context when the engine accepts a message to it.
#[derive(Debug)]
pub(in crate::engine) struct ContextStatus {
    /// The context id.
    pub(in crate::engine) id: ContextId,
    /// When it began.
    pub(in crate::engine) began: Timestamp,
    /// Whether its state has expired.
    pub(in crate::engine) reset: bool,
    /// The thread that has to be stored with the first write of the task.
    pub(in crate::engine) opens: Option<ThreadWrite>,
    /// The stored thread, if it has to be refreshed before that write.
    pub(in crate::engine) stale: Option<ThreadRecord>,
    /// When the continued task was created, if the context has a thread.
    of: Option<Timestamp>,
}

impl Commits {
    /// A context without a thread of its own. `replaces` is the version of an earlier thread under
    /// its id, or 0. It is `None` if the id of the first task can be derived from that of the
    /// context: then the context needs no thread.
    pub(in crate::engine) fn fresh_context(
        &self,
        owner: &Owner,
        id: ContextId,
        replaces: Option<u64>,
        began: Timestamp,
        now: Timestamp,
    ) -> ContextStatus {
        ContextStatus {
            opens: replaces.map(|version| self.thread_opening(owner, &id, version, began, now)),
            id,
            began,
            // A value to keep would have made a thread.
            reset: false,
            stale: None,
            of: None,
        }
    }

    /// The state of context `id` for a new task in it.
    ///
    /// # Errors
    /// [`A2aError::ContextExpired`] for a server-made id that is absent, expired or
    /// another caller's, and for a client-made id with a tombstone.
    pub(in crate::engine) async fn context_status(
        &self,
        owner: &Owner,
        id: &ContextId,
        now: Timestamp,
    ) -> Result<ContextStatus, EngineError> {
        if let Some(head) = self.records.load_thread_head(owner, id).await? {
            let tombstone = self.reader.policy.thread_tombstone;
            let is_kept = self.is_kept(&head, None, now).await?;
            if head.lives(now) || is_kept || head.blocks_id(now, tombstone) {
                return self.continue_existing(head, None, is_kept, now);
            }
            // The id counts as new; the new thread replaces the old one.
            return Ok(self.fresh_context(owner, id.clone(), Some(head.version), now, now));
        }
        let Some(first) = id.first_task() else {
            return Ok(self.fresh_context(owner, id.clone(), Some(0), now, now));
        };
        let record = self.records.load(owner, &first, now).await?;
        match record.filter(|record| &record.context_id == id) {
            Some(record) => self.status_from_task(&record, now, true).await,
            // A server-made id is never created by a message that names it.
            _ => Err(A2aError::ContextExpired.into()),
        }
    }

    /// The state of an open task's context for a message to the task.
    ///
    /// # Errors
    /// [`A2aError::ContextExpired`] if the context was deleted, or has begun again.
    pub(in crate::engine) async fn context_status_of(
        &self,
        record: &TaskRecord,
        now: Timestamp,
    ) -> Result<ContextStatus, EngineError> {
        let (owner, id) = (&record.owner, &record.context_id);
        match self.records.load_thread_head(owner, id).await? {
            Some(head) => {
                let of = Some(record.created_at);
                let is_kept = self.is_kept(&head, of, now).await?;
                self.continue_existing(head, of, is_kept, now)
            }
            None => {
                let opens = !record.names_its_context();
                self.status_from_task(record, now, opens).await
            }
        }
    }

    /// Whether what began at `at` belongs to an earlier context than the one that began
    /// at `context_began_at` under the same id. Only a client-made id is used again, and only after
    /// the earlier context has expired.
    pub(in crate::engine) fn is_earlier(
        &self,
        id: &ContextId,
        at: Timestamp,
        began: Timestamp,
    ) -> bool {
        let opening = OPENING.min(self.reader.policy.thread_ttl / 2);
        !id.is_server_made() && at.plus(opening) < began
    }

    /// Whether an open task keeps what time would take from the context of `head`. `of` is the
    /// creation time of such a task. Its tasks are read only if something would be taken.
    async fn is_kept(
        &self,
        head: &ThreadRecord,
        of: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<bool, EngineError> {
        let drops_state = head.state_version > 0 && head.state_expires_at <= now;
        if head.is_cleared() || of.is_some() {
            return Ok(!head.is_cleared());
        }
        if head.lives(now) && !drops_state {
            return Ok(false);
        }
        let (owner, id) = (&head.owner, &head.context_id);
        Ok(self.records.has_open_task(owner, id, now).await?)
    }

    /// The state of a context without a thread. `record` has its last activity.
    async fn status_from_task(
        &self,
        record: &TaskRecord,
        now: Timestamp,
        opens: bool,
    ) -> Result<ContextStatus, EngineError> {
        let (owner, id) = (&record.owner, &record.context_id);
        let is_silent = record.active_at().plus(self.reader.policy.thread_ttl) <= now;
        let is_over = !record.is_open(now) && is_silent;
        if is_over && !self.records.has_open_task(owner, id, now).await? {
            return Err(A2aError::ContextExpired.into());
        }
        let replaces = opens.then_some(0);
        Ok(self.fresh_context(owner, id.clone(), replaces, record.created_at, now))
    }

    /// The state of a context with a stored thread. `of` is the creation time of the
    /// continued task, if there is one; `is_kept`: an open task keeps the context.
    fn continue_existing(
        &self,
        head: ThreadRecord,
        of: Option<Timestamp>,
        is_kept: bool,
        now: Timestamp,
    ) -> Result<ContextStatus, EngineError> {
        let earlier = |at| self.is_earlier(&head.context_id, at, head.created_at);
        if of.is_some_and(earlier) || !(is_kept || head.lives(now)) {
            return Err(A2aError::ContextExpired.into());
        }
        Ok(ContextStatus {
            id: head.context_id.clone(),
            began: head.created_at,
            reset: !is_kept && head.state_expires_at <= now,
            opens: None,
            stale: Some(head).filter(|head| self.is_stale(head, now)),
            of,
        })
    }

    /// Refreshes the stored thread of an accepted message.
    ///
    /// It is done before any other write, so that no message enters a context that has
    /// expired meanwhile. It is done only after the message is accepted, since a refused
    /// message is not activity: the next message must still see that the state has
    /// expired.
    ///
    /// # Errors
    /// [`A2aError::ContextExpired`].
    pub(in crate::engine) async fn refresh(
        &self,
        context_status: &mut ContextStatus,
        now: Timestamp,
    ) -> Result<(), EngineError> {
        let mut races = Races::default();
        while let Some(head) = context_status.stale.take() {
            let write = self.thread_refresh(&head, context_status.reset, now);
            if self.records.put_thread(&write).await? {
                break;
            }
            let head = self.records.load_thread_head(&head.owner, &head.context_id);
            let head = head.await?.ok_or(A2aError::ContextExpired)?;
            let is_kept = self.is_kept(&head, context_status.of, now).await?;
            let fresh = self.continue_existing(head, context_status.of, is_kept, now)?;
            *context_status = ContextStatus {
                // Another message may have refreshed the thread: the state is gone all
                // the same.
                reset: context_status.reset || fresh.reset,
                ..fresh
            };
            races.note_loss()?;
        }
        Ok(())
    }

    /// Whether one of `parts` parts of the shorter of a thread's two lives is over since `since`.
    pub(in crate::engine) fn is_part_over(
        &self,
        since: Timestamp,
        parts: u32,
        now: Timestamp,
    ) -> bool {
        let policy = &self.reader.policy;
        let life = policy.thread_ttl.min(policy.state_ttl);
        since.plus(life / parts) <= now
    }

    /// Whether a thread has to be written again. After the lifetime of tasks was raised, the
    /// table would remove it before a task that is open now, or half a lifetime later, expires.
    pub(in crate::engine) fn is_stale(&self, head: &ThreadRecord, now: Timestamp) -> bool {
        let is_short = head.kept_until < now.plus(self.reader.policy.task_ttl * 3 / 2);
        is_short || self.is_part_over(head.updated_at, REFRESH, now)
    }

    /// The first write of a thread. It replaces version `version` of an earlier thread of the
    /// same id.
    fn thread_opening(
        &self,
        owner: &Owner,
        id: &ContextId,
        version: u64,
        began: Timestamp,
        now: Timestamp,
    ) -> ThreadWrite {
        let record = ThreadRecord::new(owner.clone(), id.clone(), began, now);
        self.thread_renewal(ThreadRecord { version, ..record }, now)
    }

    /// The write that gives a thread its full life again. With `reset`, expired state stays
    /// expired.
    pub(in crate::engine) fn thread_refresh(
        &self,
        head: &ThreadRecord,
        reset: bool,
        now: Timestamp,
    ) -> ThreadWrite {
        let mut record = head.clone();
        if reset && record.state_expires_at <= now {
            record.state_version = 0;
        }
        self.thread_renewal(record, now)
    }

    /// The next write of `record`: active, with its full life.
    pub(in crate::engine) fn thread_renewal(
        &self,
        mut record: ThreadRecord,
        now: Timestamp,
    ) -> ThreadWrite {
        let policy = &self.reader.policy;
        let expect = record.version;
        record.version = expect + 1;
        record.status = ThreadStatus::Active;
        record.updated_at = now;
        record.expires_at = now.plus(policy.thread_ttl);
        // A thread without a state has none that could expire before the context.
        record.state_expires_at = match record.state_version {
            0 => record.expires_at,
            _ => now.plus(policy.state_ttl),
        };
        self.keep(&mut record, now);
        ThreadWrite {
            record,
            expect,
            write: WriteId::made_of(self.reader.ids.next()),
        }
    }

    /// Lets the store keep a thread as long as a task of it can be open.
    pub(in crate::engine) fn keep(&self, record: &mut ThreadRecord, now: Timestamp) {
        let policy = &self.reader.policy;
        let open_until = now.plus(policy.task_ttl).plus(policy.task_ttl);
        record.keep(policy.thread_tombstone, open_until);
    }

    /// Keeps the context of a running task alive. The run is activity, and revives a
    /// thread that expired meanwhile. A failure is logged; the next check tries again.
    pub(in crate::engine) async fn extend_thread(&self, record: &TaskRecord) {
        if let Err(error) = self.try_extend_thread(record).await {
            error.log();
        }
    }

    async fn try_extend_thread(&self, record: &TaskRecord) -> Result<(), EngineError> {
        let (owner, id) = (&record.owner, &record.context_id);
        let mut races = Races::default();
        loop {
            let now = self.reader.clock.now();
            let write = match self.records.load_thread_head(owner, id).await? {
                None if record.names_its_context() => return Ok(()),
                None => {
                    let began = self.context_began_at(record, now).await?;
                    self.thread_opening(owner, id, 0, began, now)
                }
                // A task of a deleted or an earlier context keeps nothing alive.
                Some(head)
                    if head.is_cleared()
                        || self.is_earlier(id, record.created_at, head.created_at) =>
                {
                    return Ok(());
                }
                Some(head) if head.lives(now) && !self.is_stale(&head, now) => return Ok(()),
                Some(head) => self.thread_refresh(&head, false, now),
            };
            if self.records.put_thread(&write).await? {
                return Ok(());
            }
            races.note_loss()?;
        }
    }

    /// When the context of a task began, if it has no thread yet.
    async fn context_began_at(
        &self,
        record: &TaskRecord,
        now: Timestamp,
    ) -> Result<Timestamp, EngineError> {
        let first = match record.context_id.first_task() {
            Some(first) => self.records.load(&record.owner, &first, now).await?,
            None => None,
        };
        let first = first.filter(|first| first.context_id == record.context_id);
        Ok(first.map_or(record.created_at, |first| first.created_at))
    }
}
