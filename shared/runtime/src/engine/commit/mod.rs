//! Writes tasks: every change of a task but the extension of its lease is a commit of
//! this module.
//!
//! A commit is one conditional write. It carries a write id, so that the engine
//! recognises a write with a lost reply: the write is neither lost nor done twice.

pub(super) mod contention;
pub(super) mod context_status;
mod thread;

use self::contention::Races;
use super::error::EngineError;
use super::files::Files;
use super::reader::Reader;
use crate::store::records::Records;
use crate::store::{
    CommitResult, Expect, IdempotencyEntry, KeyWrite, TaskWrite, ThreadWrite, stored,
};
use crate::task::{
    A2aError, Change, Delivery, PushRecord, PushRegistration, TaskRecord, Timestamp, WriteId,
};
use a2a_lambda_skill::{CallNames, RecordTrace, RunTrace};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// The most by which the clocks of two functions differ. AWS refuses a request that is
/// dated five minutes off (IAM User Guide, "Troubleshoot signed requests"), so each of
/// the two clocks is at most that much off.
const CLOCKS_DIFFER: Duration = Duration::from_secs(600);

/// What a commit does if another write came first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OnConflict {
    /// The caller runs the turn: the changes are applied to the fresh record while task
    /// and epoch are the same and the task is open.
    Reapply,
    /// The commit is lost, and the caller decides again.
    Return,
}

/// The result of a commit.
#[derive(Debug)]
pub(super) enum CommitOutcome {
    /// It is stored as this record.
    Stored(TaskRecord),
    /// Another writer decided: the task was canceled, taken over or ended. Holds the
    /// current record; `None` if the task is gone, even if a new task has its id.
    Lost(Option<TaskRecord>),
    /// The thread has a newer version; nothing was written.
    ThreadMoved,
    /// The idempotency key belongs to another send; nothing was written.
    KeyTaken(Box<IdempotencyEntry>),
}

impl CommitOutcome {
    /// The result of a commit without a thread and a key: the stored record, or what
    /// [`CommitOutcome::Lost`] holds.
    pub(super) fn of_task(self) -> Result<Result<TaskRecord, Option<TaskRecord>>, EngineError> {
        match self {
            Self::Stored(record) => Ok(Ok(record)),
            Self::Lost(current) => Ok(Err(current)),
            Self::ThreadMoved | Self::KeyTaken(_) => Err(EngineError::internal(
                "a commit of a task alone had a conflict of a thread or a key",
            )),
        }
    }
}

/// The task of the earlier send with this key.
///
/// # Errors
/// [`A2aError::IdempotencyKeyReused`] if that send asked for something else.
pub(super) fn task_of_key(key: &KeyWrite, entry: IdempotencyEntry) -> Result<TaskRecord, A2aError> {
    if entry.content != key.content {
        return Err(A2aError::IdempotencyKeyReused);
    }
    Ok(entry.record)
}

/// One change of a task, with what is stored together with it.
#[derive(Debug, Clone)]
pub(super) struct Commit {
    /// The record that the changes are applied to. One that is not stored yet
    /// (version 0) is created.
    pub(super) base: TaskRecord,
    pub(super) changes: Arc<Vec<Change>>,
    pub(super) on_conflict: OnConflict,
    /// The thread as the turn leaves it, in the same transaction.
    pub(super) thread: Option<ThreadWrite>,
    /// The names of the session values that the thread gets, for the trace.
    pub(super) session: BTreeSet<String>,
    /// Whether the context has the pointer to the task.
    pub(super) has_pointer: bool,
    /// The idempotency key of the send, in the same transaction.
    pub(super) key: Option<KeyWrite>,
    /// The write id. A commit that is repeated under its id, with another thread, is recognised if
    /// it was stored before.
    pub(super) write: WriteId,
}

impl Commit {
    /// The commit of a caller that decides again if another write came first.
    pub(super) const fn new(base: TaskRecord, changes: Arc<Vec<Change>>, write: WriteId) -> Self {
        Self {
            base,
            changes,
            on_conflict: OnConflict::Return,
            thread: None,
            session: BTreeSet::new(),
            has_pointer: false,
            key: None,
            write,
        }
    }

    /// Stores the objects of the commit, so that a stored pointer names existing bytes.
    pub(super) async fn prepare(mut self, files: &Files) -> Result<PreparedCommit, EngineError> {
        files
            .store_blobs(&self.base, &self.write, &mut self.changes)
            .await?;
        Ok(PreparedCommit(self))
    }
}

/// A commit that can be written: its objects are stored.
#[derive(Debug, Clone)]
pub(super) struct PreparedCommit(Commit);

impl PreparedCommit {
    /// Its changes, which name the stored objects.
    pub(super) const fn changes(&self) -> &Arc<Vec<Change>> {
        &self.0.changes
    }

    /// The same commit with another thread, if there is one, which gets these session values.
    pub(super) fn with_thread(
        &self,
        thread: Option<ThreadWrite>,
        session: BTreeSet<String>,
    ) -> Self {
        let mut commit = self.0.clone();
        (commit.thread, commit.session) = (thread, session);
        Self(commit)
    }
}

/// Writes tasks, and the threads of their contexts.
#[derive(Clone)]
pub(crate) struct Commits {
    pub(super) reader: Reader,
    pub(super) records: Records,
    pub(crate) files: Files,
    pub(super) recorder: Option<Arc<dyn RecordTrace>>,
}

impl Commits {
    /// The trace of the call or turn that runs; `None` if nobody records one.
    pub(super) fn trace(&self) -> Option<Arc<RunTrace>> {
        let recorder = self.recorder.as_ref()?;
        let names = CallNames::current();
        let make = || {
            let run = format!("{:08x}", self.reader.ids.next() & u128::from(u32::MAX));
            RunTrace::new(Arc::clone(recorder), run).into()
        };
        Some(Arc::clone(names.trace.get_or_init(make)))
    }

    /// The whole task of a head; `None` if it is gone.
    pub(super) async fn load_full(
        &self,
        head: TaskRecord,
    ) -> Result<Option<TaskRecord>, EngineError> {
        if !head.is_partial {
            return Ok(Some(head));
        }
        let now = self.reader.clock.now();
        Ok(self.records.load(&head.owner, &head.id, now).await?)
    }

    /// The commit of one change, for a caller that decides again if another write came first.
    pub(super) fn commit_of(&self, base: TaskRecord, change: Change) -> Commit {
        let write = self.write_id(&base);
        Commit::new(base, Arc::new(vec![change]), write)
    }

    /// Stores the objects of a commit, and the commit.
    pub(super) async fn commit(&self, commit: Commit) -> Result<CommitOutcome, EngineError> {
        self.write(commit.prepare(&self.files).await?).await
    }

    /// Stores a commit durably, before a client sees its changes.
    pub(super) async fn write(
        &self,
        PreparedCommit(mut commit): PreparedCommit,
    ) -> Result<CommitOutcome, EngineError> {
        let registers = commit.changes.iter().all(registers_push);
        let began = self.reader.clock.now();
        let mut races = Races::default();
        loop {
            let write = self.task_write(&commit)?;
            // What is beside the context has to last as long as what is beside the task.
            if write.prolongs() && write.thread.is_none() {
                Box::pin(self.extend_thread(&write.record)).await;
            }
            let base = &commit.base;
            commit.base = match self.records.commit(&write).await? {
                CommitResult::Done => {
                    self.trace_write(&write.record, commit.session, began);
                    return Ok(CommitOutcome::Stored(write.record));
                }
                CommitResult::ThreadConflict => return Ok(CommitOutcome::ThreadMoved),
                CommitResult::KeyTaken(holder) => return Ok(CommitOutcome::KeyTaken(holder)),
                // The task is gone. Only a create may see which task has the id now.
                CommitResult::Conflict(Some(current))
                    if base.version > 0 && !current.is_same_task(base) =>
                {
                    return Ok(CommitOutcome::Lost(None));
                }
                CommitResult::Conflict(Some(current))
                    if commit.on_conflict == OnConflict::Reapply && current.is_same_turn(base) =>
                {
                    current
                }
                // Only a push config was added: the commit does not lose to it.
                CommitResult::Conflict(Some(current))
                    if !registers && current.differs_in_push_ids_only(base) =>
                {
                    current
                }
                CommitResult::Conflict(current) => return Ok(CommitOutcome::Lost(current)),
            };
            races.note_loss()?;
        }
    }

    fn trace_write(&self, record: &TaskRecord, session: BTreeSet<String>, began: Timestamp) {
        if let Some(trace) = self.trace() {
            trace.event(record, ("write", "write"), began, |row| {
                row.fact("version", record.version);
                row.fact("state", record.state().as_str());
                if !session.is_empty() {
                    row.fact("session", Vec::from_iter(session));
                }
            });
        }
    }

    /// The conditional write of a commit.
    fn task_write(&self, commit: &Commit) -> Result<TaskWrite, EngineError> {
        let Commit { base, changes, .. } = commit;
        let now = self.reader.clock.now();
        let expires_at = now.plus(self.reader.policy.task_ttl);
        // The clocks of two functions differ: a change must not be older than its
        // task.
        let at = now.max(base.created_at);
        let mut next = base
            .next(
                changes.iter().cloned(),
                commit.write.clone(),
                at,
                expires_at,
            )
            .map_err(|e| EngineError::internal(e.to_string()))?;
        // A task that is created finished keeps its log only for webhooks.
        if base.version == 0 && next.state().is_terminal() && next.push_ids.is_empty() {
            next.forget_log();
        }
        if let Some(key) = &commit.key {
            next.hold_key(key.key.clone());
        }
        stored::arrange(&mut next);
        let pushes = changes.iter().filter_map(|change| match change {
            Change::RegisterPush(registration) => Some(push_record(base, registration, now)),
            _ => None,
        });
        Ok(TaskWrite {
            record: next,
            expect: Expect::of(base),
            thread: commit.thread.clone(),
            pushes: pushes.collect(),
            key: commit.key.clone(),
            has_pointer: commit.has_pointer,
            now,
        })
    }

    /// Expires a task at rest: no reader finds it from now on. What is stored for it can
    /// then be removed in steps, by this call or a later one. A task that has already
    /// expired is not written again. `None` if another write came first.
    pub(super) async fn end(&self, record: TaskRecord) -> Result<Option<TaskRecord>, EngineError> {
        let now = self.reader.clock.now();
        // A reader with a slow clock must not find it either.
        let expiry = now.minus(CLOCKS_DIFFER);
        if record.is_expired(expiry) {
            self.forget_trace(&record);
            return Ok(Some(record));
        }
        let write = TaskWrite {
            expect: Expect::of(&record),
            record: record.with_expiry(self.write_id(&record), expiry),
            thread: None,
            pushes: Vec::new(),
            key: None,
            has_pointer: false,
            now,
        };
        let outcome = self.records.commit(&write).await?;
        let is_done = outcome == CommitResult::Done;
        if is_done {
            self.forget_trace(&write.record);
        }
        Ok(is_done.then_some(write.record))
    }

    fn forget_trace(&self, record: &TaskRecord) {
        if let Some(recorder) = &self.recorder {
            recorder.forget(&record.key(), &record.incarnation);
        }
    }

    /// A random time below `longest`.
    pub(super) fn up_to(&self, longest: Duration) -> Duration {
        let number = self.reader.ids.next() % longest.as_millis().max(1);
        Duration::from_millis(u64::try_from(number).unwrap_or_default())
    }

    /// The id of the next write on `base`. The write id of the create is the task's
    /// incarnation.
    pub(super) fn write_id(&self, base: &TaskRecord) -> WriteId {
        if base.version == 0 {
            base.incarnation.clone()
        } else {
            WriteId::made_of(self.reader.ids.next())
        }
    }

    /// The end of the lease of a turn that starts now.
    pub(super) fn lease_until(&self, deadline: Option<Timestamp>) -> Timestamp {
        let lease = self.reader.clock.now().plus(self.reader.policy.lease);
        // INVARIANT: a lease ends at most 5 s after its invocation, so that a turn the
        // platform killed is soon taken over.
        deadline.map_or(lease, |end| lease.min(end.plus(Duration::from_secs(5))))
    }
}

/// A push config that gets the events after those of `base`.
pub(super) fn push_record(
    base: &TaskRecord,
    registration: &PushRegistration,
    now: Timestamp,
) -> PushRecord {
    PushRecord {
        owner: base.owner.clone(),
        task: base.id.clone(),
        incarnation: base.incarnation.clone(),
        registration: registration.clone(),
        created_at: now,
        delivery: Delivery::after(base.last_seq),
    }
}

/// Whether the change adds a push config.
pub(super) const fn registers_push(change: &Change) -> bool {
    matches!(change, Change::RegisterPush(_))
}

#[cfg(test)]
mod size_tests;
#[cfg(test)]
mod tests;
