//! The only writer of tasks.
//!
//! A commit is one conditional write. It names itself by a write id, so that a
//! write whose answer was lost is recognised and neither lost nor done twice
//! (guarantees: an ambiguous store answer is never reported unchecked).

use super::idempotent::SendKey;
use super::{Engine, EngineError};
use crate::store::{Committed, Expect, Keyed, StoreError, TaskWrite, ThreadWrite, stored};
use crate::task::{Change, TaskRecord, Timestamp, WriteId};
use std::time::Duration;

/// How often a lost race is decided again before the engine gives up.
const ROUNDS: usize = 8;
/// The clocks of two functions differ by no more: AWS refuses a request that is
/// dated five minutes off (IAM User Guide, "Troubleshoot signed requests").
const CLOCKS_DIFFER: Duration = Duration::from_secs(600);

/// What a commit does when another write came between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Race {
    /// The caller owns the running turn: while the task and its epoch are the
    /// same and it is open, the changes are applied to the fresh record.
    Reapply,
    /// The caller decides again.
    Decide,
}

/// What became of a commit.
#[derive(Debug)]
pub(super) enum Outcome {
    /// It is stored; this is the record now.
    Stored(TaskRecord),
    /// Somebody else decided: the task was canceled, taken over or ended. The
    /// record as it stands; none if the task is gone, whatever has its id now.
    Lost(Option<TaskRecord>),
    /// The thread has moved on; nothing was written.
    ThreadMoved,
    /// The idempotency key stands for another send; nothing was written.
    KeyTaken(Box<Keyed>),
}

/// What belongs into the transaction of a commit beside its task.
#[derive(Debug, Default)]
pub(super) struct Beside {
    /// The conversation as this turn leaves it.
    pub(super) thread: Option<ThreadWrite>,
    /// The key of the send that asks for this commit.
    pub(super) key: Option<SendKey>,
}

impl Engine {
    /// Stores `changes` on top of `base`, durably, before anyone sees them.
    ///
    /// A task that is not stored yet (version 0) is created. `race` says what
    /// happens when another write came between.
    ///
    /// # Errors
    /// When the store is away, or when `base` does not accept the changes.
    pub(super) async fn commit(
        &self,
        base: TaskRecord,
        changes: Vec<Change>,
        thread: Option<ThreadWrite>,
        race: Race,
    ) -> Result<Outcome, EngineError> {
        let beside = Beside { thread, key: None };
        Box::pin(self.commit_beside(base, changes, beside, race)).await
    }

    /// The same with everything that belongs into its transaction.
    ///
    /// # Errors
    /// As [`Engine::commit`].
    pub(super) async fn commit_beside(
        &self,
        base: TaskRecord,
        changes: Vec<Change>,
        beside: Beside,
        race: Race,
    ) -> Result<Outcome, EngineError> {
        let write = self.write_id(&base);
        self.commit_as(write, base, changes, beside, race).await
    }

    /// The same under the name `write`. A commit that is made again under its
    /// name, with another thread beside it, is known if it was stored before.
    ///
    /// # Errors
    /// As [`Engine::commit`].
    pub(super) async fn commit_as(
        &self,
        write: WriteId,
        mut base: TaskRecord,
        mut changes: Vec<Change>,
        beside: Beside,
        race: Race,
    ) -> Result<Outcome, EngineError> {
        let registers = changes.iter().all(|it| matches!(it, Change::Listen(_)));
        self.store_blobs(&base, &write, &mut changes).await?;
        for _ in 0..ROUNDS {
            let now = self.reader.clock.now();
            let expires_at = now.plus(self.reader.policy.task_ttl);
            let kept_until = expires_at.plus(self.reader.policy.task_ttl);
            // Nothing happens to a task before it is made, whatever the clock says.
            let at = now.max(base.created_at);
            let mut next = base
                .next(changes.clone(), write.clone(), at, expires_at)
                .map_err(|e| EngineError::broken(e.to_string()))?;
            // What webhooks are to get has to be there.
            if base.version == 0 && next.state().is_terminal() && next.listeners.is_empty() {
                next.forget_log();
            }
            next.hold_keys(beside.key.as_ref().map(SendKey::address), kept_until);
            stored::arrange(&mut next);
            let expect = Expect::of(&base);
            let write = TaskWrite {
                record: next,
                expect,
                thread: beside.thread.clone(),
                pushes: self.push_records(&base, &changes, now),
                key: beside.key.as_ref().map(|key| key.write(kept_until)),
                now,
            };
            match self.tasks.commit(&write).await? {
                Committed::Done => return Ok(Outcome::Stored(write.record)),
                Committed::ThreadConflict => return Ok(Outcome::ThreadMoved),
                Committed::KeyTaken(keyed) => return Ok(Outcome::KeyTaken(keyed)),
                // The task is gone. Only a create learns whose its id is.
                Committed::Conflict(Some(current))
                    if base.version > 0 && !current.is_same_task(&base) =>
                {
                    return Ok(Outcome::Lost(None));
                }
                Committed::Conflict(Some(current))
                    if race == Race::Reapply && current.is_same_turn(&base) =>
                {
                    base = *current;
                }
                // Somebody listens now; nothing else was decided.
                Committed::Conflict(Some(current))
                    if !registers && current.differs_in_listeners_only(&base) =>
                {
                    base = *current;
                }
                Committed::Conflict(current) => return Ok(Outcome::Lost(current.map(|c| *c))),
            }
        }
        Err(StoreError::Unavailable("lost too many races".to_owned()).into())
    }

    /// Ends the life of a task at rest: it is gone for every reader from now on,
    /// and what is stored for it can be taken away step by step, by this call or
    /// by a later one. One whose time is up stays as it is. `None` if another
    /// write came between.
    ///
    /// # Errors
    /// When the store is away.
    pub(super) async fn end(&self, record: TaskRecord) -> Result<Option<TaskRecord>, EngineError> {
        let now = self.reader.clock.now();
        // A reader whose clock is behind has to find it gone, too.
        let gone = now.minus(CLOCKS_DIFFER);
        if record.expired(gone) {
            return Ok(Some(record));
        }
        let write = TaskWrite {
            expect: Expect::of(&record),
            record: record.ended(self.write_id(&record), gone),
            thread: None,
            pushes: Vec::new(),
            key: None,
            now,
        };
        let committed = self.tasks.commit(&write).await?;
        Ok((committed == Committed::Done).then_some(write.record))
    }

    /// A time below `longest`, another one each time.
    pub(super) fn up_to(&self, longest: Duration) -> Duration {
        let number = self.ids.next() % longest.as_millis().max(1);
        Duration::from_millis(u64::try_from(number).unwrap_or_default())
    }

    /// The create's write id is the task's incarnation.
    pub(super) fn write_id(&self, base: &TaskRecord) -> WriteId {
        if base.version == 0 {
            base.incarnation.clone()
        } else {
            WriteId::made_of(self.ids.next())
        }
    }

    /// Until when a turn that starts now may not be taken over.
    pub(super) fn lease_until(&self, deadline: Option<Timestamp>) -> Timestamp {
        let lease = self.reader.clock.now().plus(self.reader.policy.lease);
        // INVARIANT: a lease never outlives the invocation by more than the
        // slack, so that a turn the platform killed is taken over soon.
        deadline.map_or(lease, |end| lease.min(end.plus(Duration::from_secs(5))))
    }
}

#[cfg(test)]
mod tests;
