//! The thread of a turn: read when the skill asks for it, changed by operations that
//! can be applied again to a newer state.
//!
//! - here: the session values that the turn reads, and the write that stores its changes
//! - `messages`: reads the messages of the context
//! - `operations`: what the turn does to the state of the thread

mod messages;
mod operations;

pub(in crate::engine) use self::operations::StepUpdates;
use self::operations::{Operations, SessionView};

use super::spec::TurnSpec;
use crate::clock::lock;
use crate::engine::commit::context_status::LOOK;
use crate::engine::commit::{CommitOutcome, Commits, PreparedCommit};
use crate::engine::error::EngineError;
use crate::store::{StoreError, ThreadRecord, ThreadState, ThreadWrite, stored};
use crate::task::{
    Change, ContextId, Message, Owner, Role, TaskId, TaskRecord, Timestamp, WriteId,
};
use a2a_lambda_skill::route::drop_command;
use a2a_lambda_skill::{AgentResult, Content};
use futures::future::Either;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};
use tokio::sync::OnceCell;

/// How many hexadecimal digits of the hash of a scope are in the ids of its events.
const SCOPE_HASH: usize = 16;

/// A turn's view of its thread.
pub(in crate::engine) struct TurnThread<'e> {
    commits: &'e Commits,
    owner: Owner,
    pub(super) context: ContextId,
    task: TaskId,
    /// Distinguishes this task from a deleted or expired one with the same id.
    pub(super) incarnation: WriteId,
    pub(super) turn: u32,
    /// When the task was created.
    created_at: Timestamp,
    /// When the context began, if a message opened the turn in this invocation.
    began: Option<Timestamp>,
    /// Whether the state of the thread had expired when that message arrived. Later on, and in
    /// other invocations, the open task keeps it.
    is_reset: bool,
    /// When the turn should stop its work, if its time is limited.
    pub(super) stop_at: Option<Timestamp>,
    /// When the turn last checked whether its thread needs a refresh.
    checked_at: Timestamp,
    /// The messages of the turn's own task.
    messages: Vec<Message>,
    operations: Mutex<Operations>,
    /// The session values as first read.
    session: OnceCell<BTreeMap<String, Value>>,
}

impl<'e> TurnThread<'e> {
    pub(in crate::engine) fn new(commits: &'e Commits, spec: &TurnSpec) -> Self {
        let record = &spec.record;
        let mut messages = messages_of(record);
        if spec.opening.is_empty() {
            // The turn runs again: what it said itself it has not said yet.
            messages.truncate(record.base.turn_start);
        }
        messages.extend(spec.opening.iter().filter_map(client_message).cloned());
        drop_commands(spec.input.skill().map(|it| it.metadata().id), &mut messages);
        let context_status = spec.context_status.as_ref();
        Self {
            commits,
            owner: record.owner.clone(),
            context: record.context_id.clone(),
            task: record.id.clone(),
            incarnation: record.incarnation.clone(),
            turn: spec.facts.turn,
            created_at: record.created_at,
            began: context_status.map(|context_status| context_status.began),
            is_reset: context_status.is_some_and(|context_status| context_status.reset),
            stop_at: spec.budget.stop_at,
            checked_at: context_status.map_or(record.updated_at, |_| commits.reader.clock.now()),
            messages,
            operations: Mutex::default(),
            session: OnceCell::new(),
        }
    }

    /// The thread stored under the context id, even if an earlier context with this id
    /// left it.
    async fn load_any_thread(&self) -> Result<Option<ThreadRecord>, StoreError> {
        let mut races = self.commits.races(self.stop_at);
        loop {
            let records = &self.commits.records;
            match records.load_thread(&self.owner, &self.context).await {
                // A transaction of another task has the thread for a moment.
                Err(StoreError::Contended(_)) if self.commits.back_off(&mut races).await => {}
                result => return result,
            }
        }
    }

    /// The stored thread, if it belongs to this context.
    async fn load_thread(&self) -> Result<Option<ThreadRecord>, StoreError> {
        Ok(self
            .load_any_thread()
            .await?
            .filter(|thread| self.is_own(thread)))
    }

    /// Whether `thread` belongs to this context, and not to an earlier or later one
    /// with the same id.
    fn is_own(&self, thread: &ThreadRecord) -> bool {
        let earlier = |began| {
            let commits = self.commits;
            commits.is_earlier(&self.context, thread.created_at, began)
        };
        let is_earlier = self.began.is_some_and(earlier);
        !is_earlier && !thread.is_cleared()
    }

    /// Whether the state of a thread has expired.
    fn is_over(&self, thread: &ThreadRecord) -> bool {
        self.is_reset && thread.state_expires_at <= self.commits.reader.clock.now()
    }

    /// The state of a thread, unless it has expired.
    fn unexpired_state(&self, thread: Option<ThreadRecord>) -> Option<ThreadState> {
        let alive = thread.filter(|thread| !self.is_over(thread));
        alive.map(|thread| thread.state)
    }

    /// A session value; this turn's own changes come first. The state may be large, so
    /// a turn reads it once.
    ///
    /// # Errors
    /// When the thread cannot be read. The inner error is that of an update.
    pub(in crate::engine) async fn load(
        &self,
        key: &str,
    ) -> Result<AgentResult<Option<Value>>, StoreError> {
        let view = lock(&self.operations).view(key);
        let updates = match view {
            Ok(SessionView::Known(value)) => return Ok(Ok(Some(value))),
            Ok(SessionView::Stored(updates)) => updates,
            Err(error) => return Ok(Err(error)),
        };
        let look = || async {
            let thread = self.load_thread().await?;
            Ok(self.unexpired_state(thread).unwrap_or_default().session)
        };
        let session = self.session.get_or_try_init(look).await;
        let initial = session?.get(key).cloned();
        let result = updates
            .iter()
            .try_fold(initial, |value, update| update.0(value).map(Some));
        Ok(result)
    }

    /// Changes the operations of the turn.
    pub(in crate::engine) fn operations(&self) -> MutexGuard<'_, Operations> {
        lock(&self.operations)
    }

    /// An event of the thread. Its id names the task's incarnation, the turn, the scope and the
    /// number in the scope, so that it is the same in each run of the turn.
    pub(in crate::engine) fn event(&self, content: Content, scope: &str, number: u32) -> Message {
        let turn = self.turn;
        let suffix = match scope {
            "" => number.to_string(),
            scope => {
                let hash = hex::encode(Sha256::digest(scope));
                format!("{}-{number}", hash.get(..SCOPE_HASH).unwrap_or_default())
            }
        };
        let id = format!("evt-{}-{turn}-{suffix}", self.incarnation);
        let mut event = Message::from_agent(id, content.into_parts());
        event.task_id = Some(self.task.clone());
        event.context_id = Some(self.context.clone());
        event
    }

    /// What names a step of this turn, by its path, in each run, and no other step of any task.
    pub(in crate::engine) fn step_key(&self, path: &str) -> String {
        let hash = hex::encode(Sha256::digest(path));
        let hash = hash.get(..SCOPE_HASH).unwrap_or_default();
        format!("{}-{}-{hash}", self.incarnation, self.turn)
    }

    /// Whether the turn changes nothing in its thread.
    pub(in crate::engine) fn is_unchanged(&self) -> bool {
        lock(&self.operations).is_empty()
    }

    /// Refreshes the thread of a long turn.
    pub(in crate::engine) async fn extend(&self, record: &TaskRecord) {
        let now = self.commits.reader.clock.now();
        if self.commits.is_part_over(self.checked_at, LOOK, now) {
            self.commits.extend_thread(record).await;
        }
    }

    /// The write that applies this turn's changes, or those `updates` of its steps, to the
    /// thread as it is stored now; `None` if the context was deleted. A task keeps its thread alive, so an expired
    /// thread continues without its old state. A thread that an earlier context with
    /// the same id left is replaced.
    pub(in crate::engine) async fn write(
        &self,
        updates: Option<&[StepUpdates]>,
    ) -> Result<Option<ThreadWrite>, EngineError> {
        let now = self.commits.reader.clock.now();
        let thread = self.load_any_thread().await?;
        if thread.as_ref().is_some_and(ThreadRecord::is_cleared) {
            return Ok(None);
        }
        // The write replaces what is stored, whichever context left it.
        let version = thread.as_ref().map_or(0, |thread| thread.version);
        let mut record = match thread.filter(|thread| self.is_own(thread)) {
            Some(record) => record,
            None => {
                let began = self.began.unwrap_or(self.created_at);
                let (owner, context) = (self.owner.clone(), self.context.clone());
                let record = ThreadRecord::new(owner, context, began, now);
                ThreadRecord { version, ..record }
            }
        };
        if self.is_over(&record) {
            record.state = ThreadState::default();
        }
        let result = lock(&self.operations).apply(&mut record.state, updates);
        result.map_err(EngineError::of_skill)?;
        let policy = &self.commits.reader.policy;
        let size = policy.check_state_size(stored::state_size(&record.state));
        size.map_err(EngineError::of_skill)?;
        record.state_version = record.version + 1;
        Ok(Some(self.commits.thread_renewal(record, now)))
    }

    /// Stores a commit of the turn, in one transaction with the changes that
    /// [`write`](Self::write) applies, if there are any. It applies them again after another
    /// task was faster, those of a step until the run ends; [`CommitOutcome::ThreadMoved`] means
    /// that the time for it is over.
    pub(in crate::engine) fn commit(
        &self,
        commit: PreparedCommit,
        updates: Option<Vec<StepUpdates>>,
    ) -> impl Future<Output = Result<CommitOutcome, EngineError>> + Send {
        let changes_nothing = match &updates {
            Some(updates) => updates.is_empty(),
            None => self.is_unchanged(),
        };
        match changes_nothing {
            true => Either::Left(self.commits.write(commit)),
            false => Either::Right(self.commit_with_thread(commit, updates)),
        }
    }

    async fn commit_with_thread(
        &self,
        commit: PreparedCommit,
        updates: Option<Vec<StepUpdates>>,
    ) -> Result<CommitOutcome, EngineError> {
        let updates = updates.as_deref();
        let mut races = match updates {
            Some(_) => self.commits.races_of_run(self.stop_at),
            None => self.commits.races(self.stop_at),
        };
        loop {
            let thread = self.write(updates).await?;
            let keys = lock(&self.operations).keys(updates);
            let state = thread.as_ref().map(|write| write.record.state.clone());
            // All tries share the write id, so that a try that was stored without a response is
            // recognised.
            match self.commits.write(commit.with_thread(thread, keys)).await {
                Ok(CommitOutcome::ThreadMoved) => {}
                Err(error) if error.is_contended() => {}
                Ok(outcome @ CommitOutcome::Stored(_)) => {
                    let state = state.unwrap_or_default();
                    lock(&self.operations).note_applied(updates.unwrap_or_default(), &state);
                    return Ok(outcome);
                }
                result => return result,
            }
            if !self.commits.back_off(&mut races).await {
                return Ok(CommitOutcome::ThreadMoved);
            }
        }
    }
}

/// The messages of a task, with the one in its status.
fn messages_of(record: &TaskRecord) -> Vec<Message> {
    let messages = record.history.iter().chain(&record.status.message);
    let mut messages: Vec<_> = messages.cloned().collect();
    drop_commands(record.skill_name(), &mut messages);
    messages
}

/// Takes the command that names the skill of a task off the messages of its client. They are
/// stored with it.
fn drop_commands(skill: Option<&str>, messages: &mut [Message]) {
    let Some(id) = skill else { return };
    let of_client = messages.iter_mut().filter(|it| it.role == Role::User);
    of_client.for_each(|it| drop_command(id, &mut it.parts));
}

/// The client's message in the turn's opening. Credentials are not part of a thread.
const fn client_message(change: &Change) -> Option<&Message> {
    match change {
        Change::Accept { message }
        | Change::Resume {
            message,
            secret: None,
            ..
        } => Some(message),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
