//! How the conversation of a message stands: new, going on, silent for long, or
//! expired; and what keeps it alive while its tasks are worked on.
//!
//! A context made by the server costs no write of its own: the first task's
//! record stands for the thread, until there is a second task, a value to keep
//! or a refresh. Every other context has a thread from its first task on.
//!
//! Expiry slides with activity, but a thread is written at most once in a
//! twentieth of its life, so that a busy one is no hot item. It is judged when
//! a message comes, by the clock of that call; a turn that runs keeps its
//! conversation alive.

use super::commit::{Beside, Outcome, Race};
use super::idempotent::SendKey;
use super::{Engine, EngineError};
use crate::store::{StoreError, ThreadRecord, ThreadStatus, ThreadWrite};
use crate::task::{Change, ContextId, Owner, Refusal, TaskRecord, Timestamp, WriteId};
use std::time::Duration;

/// A thread is written again when this part of its life has passed.
const REFRESH: u32 = 20;
/// A turn looks after its thread when this part of its life has passed since
/// it did so last.
const LOOK: u32 = 50;
/// Of two first messages of one moment the one whose thread is stored can have
/// come this much later: no function runs longer.
const OPENING: Duration = Duration::from_secs(15 * 60);
/// How often a lost race for a thread is decided again.
const ROUNDS: usize = 8;

/// How a conversation stands when a message of it is let in.
#[derive(Debug)]
pub(super) struct Standing {
    /// Its id.
    pub(super) id: ContextId,
    /// When it began.
    pub(super) began: Timestamp,
    /// Whether it was silent for so long that its state is gone.
    pub(super) reset: bool,
    /// The thread that has to be stored with the first write of the task.
    pub(super) opens: Option<ThreadWrite>,
    /// The stored thread, if it has to be refreshed before that write.
    pub(super) stale: Option<ThreadRecord>,
    /// When the task was made that the message goes on in, if it has a thread.
    of: Option<Timestamp>,
}

impl Engine {
    /// A new conversation, which the server names after its first task.
    /// `derived` says that the task has the name which its context tells.
    pub(super) fn fresh_context(
        &self,
        owner: &Owner,
        id: ContextId,
        derived: bool,
        now: Timestamp,
    ) -> Standing {
        Standing {
            opens: (!derived).then(|| self.opened(owner, &id, now, now, None)),
            id,
            began: now,
            reset: false,
            stale: None,
            of: None,
        }
    }

    /// How the conversation `id` stands for a new task in it.
    ///
    /// # Errors
    /// [`Refusal::ContextExpired`]: one of ours that is absent, another's or
    /// expired; a client's whose expiry is remembered.
    pub(super) async fn standing(
        &self,
        owner: &Owner,
        id: &ContextId,
        now: Timestamp,
    ) -> Result<Standing, EngineError> {
        if let Some(head) = self.threads.load_thread_head(owner, id).await? {
            let tombstone = self.reader.policy.thread_tombstone;
            if head.lives(now) || head.is_remembered(now, tombstone) {
                return self.going_on(head, None, now);
            }
            // The id counts as new; its thread replaces what is left.
            return Ok(self.anew(id, Some(&head), owner, now));
        }
        let Some(first) = id.first_task() else {
            return Ok(self.anew(id, None, owner, now));
        };
        let record = self.tasks.load(owner, &first, now).await?;
        match record.filter(|record| record.context_id == *id) {
            Some(record) if !record.hidden => self.stood_for(&record, now, true, None),
            _ => Err(Refusal::ContextExpired.into()),
        }
    }

    /// How the conversation of a stored task stands for a message to it.
    ///
    /// # Errors
    /// [`Refusal::ContextExpired`].
    pub(super) async fn standing_of(
        &self,
        record: &TaskRecord,
        now: Timestamp,
    ) -> Result<Standing, EngineError> {
        let (owner, id) = (&record.owner, &record.context_id);
        match self.threads.load_thread_head(owner, id).await? {
            Some(head) if self.is_past(&head, record.created_at) => {
                Err(Refusal::ContextExpired.into())
            }
            // Its first write came to nothing.
            Some(head) if is_free(&head) => self.stood_for(record, now, true, Some(&head)),
            Some(head) => self.going_on(head, Some(record.created_at), now),
            None => self.stood_for(record, now, !stands_for_thread(record), None),
        }
    }

    /// Whether what began at `at` is over, as its thread says: it was of an earlier
    /// conversation than the one which has its id now, or of one that is deleted.
    pub(super) fn is_past(&self, head: &ThreadRecord, at: Timestamp) -> bool {
        head.has_cleared(at) || self.is_earlier(&head.context_id, at, head.created_at)
    }

    /// Whether what began at `at` was of an earlier conversation than the one
    /// that began at `began` under the same id. Only an id that a client made
    /// begins a second time, and not before the first one has expired.
    pub(super) fn is_earlier(&self, id: &ContextId, at: Timestamp, began: Timestamp) -> bool {
        let opening = OPENING.min(self.reader.policy.thread_ttl / 2);
        !id.is_server_made() && at.plus(opening) < began
    }

    /// A conversation without a thread of its own, whose last activity is
    /// that of `record`; `left` is what an earlier one has left of its own.
    fn stood_for(
        &self,
        record: &TaskRecord,
        now: Timestamp,
        opens: bool,
        left: Option<&ThreadRecord>,
    ) -> Result<Standing, EngineError> {
        let policy = &self.reader.policy;
        let silent = |ttl: Duration| record.active_at().plus(ttl) <= now;
        let open = !record.state().is_at_rest();
        if !open && silent(policy.thread_ttl) {
            return Err(Refusal::ContextExpired.into());
        }
        let (owner, id) = (&record.owner, &record.context_id);
        Ok(Standing {
            id: id.clone(),
            began: record.created_at,
            reset: !open && silent(policy.state_ttl),
            opens: opens.then(|| self.opened(owner, id, record.created_at, now, left)),
            stale: None,
            of: None,
        })
    }

    /// A client's id that is unknown, or no longer remembered.
    fn anew(
        &self,
        id: &ContextId,
        left: Option<&ThreadRecord>,
        owner: &Owner,
        now: Timestamp,
    ) -> Standing {
        let began = left.map_or(now, |left| left.begins_after(now));
        Standing {
            id: id.clone(),
            began,
            reset: false,
            opens: Some(self.opened(owner, id, began, now, left)),
            stale: None,
            of: None,
        }
    }

    /// A stored thread that the message goes on in, to the task made at `of` if
    /// there is one already.
    fn going_on(
        &self,
        head: ThreadRecord,
        of: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<Standing, EngineError> {
        let past = of.is_some_and(|at| self.is_past(&head, at));
        if past || !head.lives(now) {
            return Err(Refusal::ContextExpired.into());
        }
        Ok(Standing {
            id: head.context_id.clone(),
            began: head.created_at,
            reset: head.state_expires_at <= now,
            opens: None,
            stale: Some(head).filter(|head| self.is_stale(head, now)),
            of,
        })
    }

    /// Refreshes the stored thread of a message that is taken: before anything
    /// else is written, so that no message is let in to what has expired by
    /// then; and not before it is taken, so that one which is refused is no
    /// activity, and the next one is told of a state that is gone.
    ///
    /// # Errors
    /// [`Refusal::ContextExpired`].
    pub(super) async fn refresh(
        &self,
        standing: &mut Standing,
        now: Timestamp,
    ) -> Result<(), EngineError> {
        for _ in 0..ROUNDS {
            let Some(head) = standing.stale.take() else {
                return Ok(());
            };
            if self.keep_thread(&self.refreshed(&head, now)).await? {
                return Ok(());
            }
            let found = self.threads.load_thread_head(&head.owner, &head.context_id);
            let head = found.await?.ok_or(Refusal::ContextExpired)?;
            let fresh = self.going_on(head, standing.of, now)?;
            *standing = Standing {
                reset: standing.reset || fresh.reset,
                ..fresh
            };
        }
        Err(StoreError::Unavailable("lost too many races for a thread".to_owned()).into())
    }

    /// The shorter of the two lives of a thread.
    fn life(&self) -> Duration {
        let policy = &self.reader.policy;
        policy.thread_ttl.min(policy.state_ttl)
    }

    fn is_stale(&self, head: &ThreadRecord, now: Timestamp) -> bool {
        head.updated_at.plus(self.life() / REFRESH) <= now
    }

    /// The first write of a thread, over what an earlier one has left under its id.
    fn opened(
        &self,
        owner: &Owner,
        id: &ContextId,
        began: Timestamp,
        now: Timestamp,
        left: Option<&ThreadRecord>,
    ) -> ThreadWrite {
        let record = ThreadRecord::begun(owner.clone(), id.clone(), began, now);
        let record = ThreadRecord {
            version: left.map_or(0, |left| left.version),
            cleared_at: left.and_then(|left| left.cleared_at),
            ..record
        };
        self.renewed(record, now)
    }

    /// The thread with all of its time before it. State that has expired is
    /// not brought back by it.
    fn refreshed(&self, head: &ThreadRecord, now: Timestamp) -> ThreadWrite {
        let mut record = head.clone();
        if record.state_expires_at <= now {
            record.state_version = 0;
        }
        self.renewed(record, now)
    }

    /// The write that follows `record`, active and with all of its time.
    pub(super) fn renewed(&self, mut record: ThreadRecord, now: Timestamp) -> ThreadWrite {
        let policy = &self.reader.policy;
        let expect = record.version;
        record.version = expect + 1;
        record.status = ThreadStatus::Active;
        // What a deleted conversation has left is told by its time.
        record.updated_at = now.max(record.created_at);
        record.expires_at = now.plus(policy.thread_ttl);
        record.state_expires_at = now.plus(policy.state_ttl);
        ThreadWrite {
            record,
            expect,
            write: WriteId::made_of(self.ids.next()),
        }
    }

    /// Stores a commit and, in the same wave, the thread it opens.
    pub(super) async fn commit_opening(
        &self,
        base: TaskRecord,
        changes: Vec<Change>,
        (opens, key): (Option<ThreadWrite>, Option<SendKey>),
        race: Race,
    ) -> Result<Outcome, EngineError> {
        let beside = Beside { thread: None, key };
        let commit = self.commit_beside(base, changes, beside, race);
        let Some(opens) = opens else {
            return commit.await;
        };
        let (written, kept) = futures::join!(commit, self.open_thread(opens));
        kept?;
        written
    }

    /// Stores the thread of a conversation that begins, unless another task of
    /// the same moment has. What it was to replace may be gone since it was read:
    /// the table removes by itself what nobody remembers, and the sweep what a
    /// deletion has left.
    async fn open_thread(&self, mut opens: ThreadWrite) -> Result<(), EngineError> {
        if self.keep_thread(&opens).await? || opens.expect == 0 {
            return Ok(());
        }
        let (owner, id) = (&opens.record.owner, &opens.record.context_id);
        if self.threads.load_thread_head(owner, id).await?.is_none() {
            opens.expect = 0;
            opens.record.version = 1;
            self.keep_thread(&opens).await?;
        }
        Ok(())
    }

    /// Whether a turn that looked after its thread at `since` has to again.
    pub(super) fn looks_again(&self, since: Timestamp, now: Timestamp) -> bool {
        since.plus(self.life() / LOOK) <= now
    }

    /// Whether a running turn has to look after its thread in between.
    pub(super) fn half_way(&self, since: Timestamp, now: Timestamp) -> bool {
        since.plus(self.life() / 2) <= now
    }

    /// Keeps the conversation of a task alive, which is worked on: that is
    /// activity, and brings back what expired meanwhile. A failure is logged
    /// and left to the next renewal.
    pub(super) async fn look_after_thread(&self, record: &TaskRecord) {
        if let Err(error) = self.try_look_after(record).await {
            error.log();
        }
    }

    async fn try_look_after(&self, record: &TaskRecord) -> Result<(), EngineError> {
        let (owner, id) = (&record.owner, &record.context_id);
        for _ in 0..ROUNDS {
            let now = self.reader.clock.now();
            let write = match self.threads.load_thread_head(owner, id).await? {
                None if stands_for_thread(record) => return Ok(()),
                None => self.opened(owner, id, self.began(record, now).await?, now, None),
                // To work on what is over keeps nothing alive.
                Some(head) if self.is_past(&head, record.created_at) => return Ok(()),
                Some(head) if is_free(&head) => {
                    self.opened(owner, id, record.created_at, now, Some(&head))
                }
                Some(head) if head.status == ThreadStatus::Cleared => return Ok(()),
                Some(head) if head.lives(now) && !self.is_stale(&head, now) => return Ok(()),
                Some(head) => self.refreshed(&head, now),
            };
            if self.keep_thread(&write).await? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// When the conversation of a task began that has no thread yet.
    async fn began(&self, record: &TaskRecord, now: Timestamp) -> Result<Timestamp, EngineError> {
        let first = match record.context_id.first_task() {
            Some(first) => self.tasks.load(&record.owner, &first, now).await?,
            None => None,
        };
        let first = first.filter(|first| first.context_id == record.context_id);
        Ok(first.map_or(record.created_at, |first| first.created_at))
    }

    /// Stores a thread; `false` if another write came between.
    pub(super) async fn keep_thread(&self, write: &ThreadWrite) -> Result<bool, EngineError> {
        Ok(self.threads.put_thread(write).await?)
    }
}

/// Whether the record of a task stands for the thread of its context while
/// that has none: it is the task which the context is named after.
pub(super) fn stands_for_thread(record: &TaskRecord) -> bool {
    record.context_id.first_task().as_ref() == Some(&record.id)
}

/// Whether a thread is all that is left of a deleted conversation, and its id can
/// begin another one.
pub(super) fn is_free(head: &ThreadRecord) -> bool {
    head.status == ThreadStatus::Cleared && !head.context_id.is_server_made()
}
