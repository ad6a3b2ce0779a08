//! The write buffer of a running turn: groups its changes, stores them, and shows their
//! events.
//!
//! What arrives while a write is in flight goes into the next write. That begins when its
//! oldest event is as old as the flush interval, or at once after a longer pause. Events
//! are batched and never merged. Each is shown after its commit.
//!
//! - here: the groups and their writes, and the hand-over
//! - `changes`: makes the changes from what the skill does
//! - `chunked`: ends the artifacts that the skill wrote in chunks

mod changes;
mod chunked;

use super::event_sink::EventSink;
use super::skill_host::TurnHandle;
use super::spec::{TurnCall, TurnEnd, TurnSpec};
use super::thread::{StepUpdates, TurnThread};
use crate::auth::Caller;
use crate::engine::budget::TurnBudget;
use crate::engine::commit::contention::contention_error;
use crate::engine::commit::{
    Commit, CommitOutcome, OnConflict, PreparedCommit, registers_push, task_of_key,
};
use crate::engine::day_limits::CallMeter;
use crate::engine::error::EngineError;
use crate::engine::repeat::MessagePrint;
use crate::engine::turn::Turns;
use crate::store::{IdempotencyEntry, KeyWrite, ThreadWrite};
use crate::task::{
    A2aError, BuildId, Change, OutputCounts, PartContent, StepOutcome, TaskRecord, Timestamp,
    WriteId,
};
use crate::telemetry::scope::CallScope;
use a2a_lambda_skill::AgentError;
use futures::future::BoxFuture;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// A group is written immediately when it holds this many changes …
const MAX_CHANGES: usize = 64;
/// … or this many bytes; then the skill waits.
const MAX_BYTES: usize = 64 * 1024;

/// The write buffer of a turn.
pub(in crate::engine) struct WriteBuffer<'e> {
    /// Where committed events go.
    sink: &'e mut EventSink,
    pub(in crate::engine) turns: &'e Turns,
    /// The task as last stored.
    pub(in crate::engine) record: TaskRecord,
    /// Whether the skill makes tasks.
    pub(in crate::engine) makes_task: bool,
    /// The record that another writer stored, when the turn has lost its task.
    pub(in crate::engine) winner: Option<TaskRecord>,
    budget: TurnBudget,
    pending: Vec<Change>,
    /// Since when the oldest of them waits.
    waits_since: Option<Timestamp>,
    bytes: usize,
    /// Bytes of the group in the last write.
    last_group_bytes: usize,
    has_output: bool,
    /// Whether this invocation has written a step or a saved value.
    progress: bool,
    waiters: Vec<oneshot::Sender<()>>,
    in_flight: Vec<oneshot::Sender<()>>,
    /// Whether a write is in flight.
    is_writing: bool,
    /// The group in the last write.
    last_changes: Arc<Vec<Change>>,
    /// The thread to store before the first write.
    opens: Option<ThreadWrite>,
    /// Whether the context has the pointer to the task.
    has_pointer: bool,
    /// Recognises the message that opened the turn.
    print: Option<MessagePrint>,
    /// How many outputs the turn has said, by scope.
    outputs: OutputCounts,
    /// The build that has stored the last result.
    build: Option<BuildId>,
    /// The updates of session values that the next commit applies.
    updates: Vec<StepUpdates>,
    /// When the last write began.
    last_group: Option<Timestamp>,
    /// The last write id that the turn made itself.
    last_write: Option<WriteId>,
    /// Knows what calls of models have used; `None` if no skill runs.
    pub(super) meter: Option<Arc<CallMeter<'e>>>,
}

impl<'e> WriteBuffer<'e> {
    /// The buffer of a turn, and what else `spec` has.
    pub(in crate::engine) fn new(
        turns: &'e Turns,
        spec: TurnSpec,
        sink: &'e mut EventSink,
    ) -> (Self, TurnCall) {
        let (_, base) = spec.replay();
        let buffer = Self {
            sink,
            turns,
            record: spec.record,
            makes_task: spec.input.makes_task(),
            winner: None,
            budget: spec.budget,
            pending: spec.opening,
            waits_since: None,
            bytes: 0,
            last_group_bytes: 0,
            has_output: false,
            progress: false,
            waiters: Vec::new(),
            in_flight: Vec::new(),
            is_writing: false,
            last_changes: Arc::default(),
            opens: spec.context_status.and_then(|context| context.opens),
            has_pointer: false,
            print: spec.print,
            outputs: base.outputs,
            build: base.build,
            updates: Vec::new(),
            last_group: None,
            last_write: None,
            meter: None,
        };
        let call = TurnCall {
            input: spec.input,
            facts: spec.facts,
            key: spec.key,
        };
        (buffer, call)
    }

    /// What has to be stored before the next write: the thread that the task opens, and
    /// the pointer to the task unless that write is a transaction, which takes it along.
    /// `None` if the context knows the task. It can run while the skill runs.
    pub(in crate::engine) fn context_link(
        &mut self,
        in_transaction: bool,
    ) -> Option<BoxFuture<'e, Result<(), EngineError>>> {
        let in_transaction = in_transaction || self.pending.iter().any(registers_push);
        let is_known = self.record.version > 0 || self.record.names_its_context();
        let points = !is_known && !in_transaction && !self.has_pointer;
        let pointer = points.then(|| self.record.clone());
        let opens = self.opens.take();
        if pointer.is_none() && opens.is_none() {
            return None;
        }
        self.has_pointer |= points;
        let turns = self.turns;
        Some(Box::pin(turns.commits.link_context(pointer, opens)))
    }

    /// Stores what has to be stored before the next write.
    pub(in crate::engine) async fn link_context(
        &mut self,
        in_transaction: bool,
    ) -> Result<(), EngineError> {
        match self.context_link(in_transaction) {
            Some(placement) => placement.await,
            None => Ok(()),
        }
    }

    /// Stores the opening of the turn; `false` if another writer was faster.
    pub(in crate::engine) async fn open(&mut self) -> Result<bool, EngineError> {
        self.link_context(false).await?;
        let commit = self.next_commit(OnConflict::Return);
        let outcome = self.turns.commits.commit(commit).await?;
        self.handle_outcome(outcome).await
    }

    /// Stores the opening in one transaction with the key of the send. Returns the task
    /// of an earlier send that has the key, or of another copy of the message.
    ///
    /// # Errors
    /// [`A2aError::TaskBusy`] if another writer was faster;
    /// [`A2aError::IdempotencyKeyReused`] if the earlier send asked for something else.
    pub(in crate::engine) async fn open_as(
        &mut self,
        key: Option<KeyWrite>,
    ) -> Result<Option<TaskRecord>, EngineError> {
        self.link_context(key.is_some()).await?;
        let mut commit = self.next_commit(OnConflict::Return);
        commit.key.clone_from(&key);
        let outcome = self.turns.commits.commit(commit).await?;
        if let (CommitOutcome::KeyTaken(entry), Some(key)) = (&outcome, key) {
            return Ok(Some(task_of_key(&key, IdempotencyEntry::clone(entry))?));
        }
        if self.handle_outcome(outcome).await? {
            return Ok(None);
        }
        if let (Some(current), Some(print)) = (&self.winner, &self.print)
            && self.turns.secrets.is_repeat(current, print).await?
        {
            return Ok(self.winner.take());
        }
        Err(A2aError::TaskBusy.into())
    }

    /// Whether clients can see nothing of the task.
    pub(in crate::engine) fn is_unseen(&self) -> bool {
        !self.has_output && self.record.version == 0
    }

    /// Whether the next write should start now.
    pub(in crate::engine) fn due(&self) -> bool {
        let now = self.turns.reader.clock.now();
        self.wakes_at().is_some_and(|at| at <= now)
    }

    /// When the next write is due; `None` if there is nothing to write.
    ///
    /// The first write of a short send waits while the skill runs, so that the finished
    /// task is one write. An event, a value to save or the timer forces it.
    pub(in crate::engine) fn wakes_at(&self) -> Option<Timestamp> {
        let policy = &self.turns.reader.policy;
        if self.pending.is_empty() {
            return None;
        }
        // A time in the past: the write is due now.
        if self.full() || !self.waiters.is_empty() {
            return Some(Timestamp::default());
        }
        if self.record.version > 0 {
            return Some(self.flushes_at(policy.flush_interval));
        }
        if self.has_output {
            return Some(Timestamp::default());
        }
        self.makes_task
            .then(|| self.record.created_at.plus(policy.deferral))
    }

    /// When the pending changes are written: each waits for others for one interval at most.
    /// After a pause of an interval nothing waits.
    fn flushes_at(&self, interval: Duration) -> Timestamp {
        match (self.last_group, self.waits_since) {
            (Some(last), Some(since)) if since < last.plus(interval) => since.plus(interval),
            _ => Timestamp::default(),
        }
    }

    /// Whether another invocation can continue the turn: there is a task.
    pub(in crate::engine) fn can_go_on(&self) -> bool {
        self.makes_task || self.record.version > 0
    }

    /// Hands the turn over: one commit stores what is buffered, ends the lease and asks
    /// for a worker. A task that becomes too large by it fails.
    pub(in crate::engine) async fn hand_over(
        self,
        turn: &TurnHandle<'_>,
    ) -> Result<TurnEnd, EngineError> {
        let progress = self.progress || self.pending.iter().any(is_progress);
        let repeats = !progress && self.record.saved.steps.is_empty();
        let end = self.give_turn(turn, Change::HandOver { progress }).await?;
        if let TurnEnd::HandedOver(record) = &end {
            log_hand_over(record, repeats);
        }
        Ok(end)
    }

    /// Gives the turn to another run by the change `last`, with all that this one has met.
    pub(in crate::engine) async fn give_turn(
        mut self,
        turn: &TurnHandle<'_>,
        last: Change,
    ) -> Result<TurnEnd, EngineError> {
        self.keep_trace();
        for (path, tries) in turn.tries() {
            if self.record.base.tries.get(&path) != Some(&tries) {
                self.push(Change::Tries(path, tries));
            }
        }
        self.push(last);
        match self.context_link(false) {
            Some(placement) => placement.await?,
            None => self.turns.commits.extend_thread(&self.record).await,
        }
        let result = self.write_next(&turn.turn_thread).await;
        self.end(result).await
    }

    /// Ends the turn with the result of its last write. A task for which that can never be
    /// stored fails.
    pub(in crate::engine) async fn end(
        mut self,
        result: Result<CommitOutcome, EngineError>,
    ) -> Result<TurnEnd, EngineError> {
        let outcome = match result {
            Err(error) => match self.give_up(&error) {
                Some(error) => self.fail(self.turns.failure(&self.record, &error)).await?,
                None => return Err(error),
            },
            Ok(outcome) => outcome,
        };
        Ok(if !self.handle_outcome(outcome).await? {
            TurnEnd::Superseded(self.winner)
        } else if self.record.state().is_at_rest() {
            TurnEnd::AtRest(self.record)
        } else {
            TurnEnd::HandedOver(self.record)
        })
    }

    /// Fails the task, and stores with it what is in the buffer.
    pub(super) async fn fail(&mut self, fail: Change) -> Result<CommitOutcome, EngineError> {
        self.push(fail);
        self.link_context(false).await?;
        let commit = self.next_commit(OnConflict::Reapply);
        self.turns.commits.commit(commit).await
    }

    /// Whether the client of a task that is not stored yet reads text and no data.
    pub(in crate::engine) fn reads_text_alone(&self) -> bool {
        self.pending
            .iter()
            .any(|change| matches!(change, Change::Request(request) if request.reads_text_alone()))
    }

    /// Keeps the trace of the call for the worker that continues the turn.
    fn keep_trace(&mut self) {
        let trace = CallScope::current().trace().map(|trace| trace.to_string());
        let pending = self.pending.iter().find_map(|change| match change {
            Change::Request(request) => Some(request),
            _ => None,
        });
        let request = pending.or(self.record.request.as_ref());
        if trace.is_none() || request.is_some_and(|request| request.trace_parent.is_some()) {
            return;
        }
        let caller = Caller::behind(&self.record.owner, request);
        let modes = request.map_or(&[][..], |request| &request.accepted_output_modes);
        let consent = request.and_then(|request| request.consent.clone());
        if let Some(request) = caller.request(modes, trace, consent) {
            self.push(Change::Request(request));
        }
    }

    /// Reads the task as another writer stored it.
    pub(in crate::engine) async fn reload(&mut self) -> Result<(), EngineError> {
        let (owner, id) = (&self.record.owner, &self.record.id);
        let now = self.turns.reader.clock.now();
        let record = self.turns.commits.records.load(owner, id, now).await?;
        self.winner = record.filter(|record| record.is_same_task(&self.record));
        Ok(())
    }

    /// Whether the skill has to wait for a write.
    pub(in crate::engine) const fn full(&self) -> bool {
        self.pending.len() >= MAX_CHANGES || self.bytes >= MAX_BYTES
    }

    /// The next group as a commit.
    pub(in crate::engine) fn next_commit(&mut self, on_conflict: OnConflict) -> Commit {
        let usage = self.meter.as_ref().and_then(|meter| meter.take());
        // The last change of a turn is the one that ends it.
        self.pending.splice(..0, usage);
        self.progress |= self.pending.iter().any(is_progress);
        // A commit extends the lease too. It must not set back what a heartbeat has
        // extended since the record was read.
        if self.record.lease_until.is_some() {
            self.record
                .set_lease(Some(self.turns.commits.lease_until(self.budget.deadline)));
        }
        self.last_group = Some(self.turns.reader.clock.now());
        self.waits_since = None;
        self.last_group_bytes = std::mem::take(&mut self.bytes);
        self.in_flight = std::mem::take(&mut self.waiters);
        self.is_writing = true;
        let base = self.record.clone();
        let write = self.next_write(&base);
        let changes = Arc::new(std::mem::take(&mut self.pending));
        self.last_changes = Arc::clone(&changes);
        Commit {
            on_conflict,
            has_pointer: self.has_pointer,
            ..Commit::new(base, changes, write)
        }
    }

    /// Stores the next group of the running turn, with the session updates of its steps.
    pub(in crate::engine) fn write_next<'t>(
        &mut self,
        turn_thread: &'t TurnThread<'_>,
    ) -> impl Future<Output = Result<CommitOutcome, EngineError>> + Send + use<'t, 'e> {
        let updates = std::mem::take(&mut self.updates);
        let commit = self.next_commit(OnConflict::Reapply);
        let turns = self.turns;
        async move {
            let commit = commit.prepare(&turns.commits.files).await?;
            turn_thread.commit(commit, Some(updates)).await
        }
    }

    /// The id of the next write on `base`. Only the first one of a turn is random: the others
    /// count on from it, so that the record has them in few bytes. No other writer makes ids
    /// from this number.
    fn next_write(&mut self, base: &TaskRecord) -> WriteId {
        if base.version == 0 {
            return self.turns.commits.write_id(base);
        }
        let next = self.last_write.as_ref().and_then(WriteId::following);
        let next = next.unwrap_or_else(|| self.turns.commits.write_id(base));
        self.last_write = Some(next.clone());
        next
    }

    /// Handles the result of a write: shows its events and wakes what waits for it;
    /// `false` if the task is lost.
    pub(in crate::engine) async fn handle_outcome(
        &mut self,
        outcome: CommitOutcome,
    ) -> Result<bool, EngineError> {
        self.is_writing = false;
        match outcome {
            CommitOutcome::Stored(record) => {
                self.record = record;
                for waiter in self.in_flight.drain(..) {
                    // A skill that stopped waiting has dropped its receiver.
                    let _gone = waiter.send(());
                }
                self.turns.reader.show(&self.record, self.sink).await?;
                Ok(true)
            }
            CommitOutcome::Lost(current) => {
                self.winner = current;
                Ok(false)
            }
            CommitOutcome::ThreadMoved => Err(contention_error().into()),
            CommitOutcome::KeyTaken(_) => {
                Err(EngineError::internal("unexpected key conflict in turn"))
            }
        }
    }

    /// Drops what is not stored if `error` says that the last group can never be: returns the
    /// error with which the task fails. A new task keeps its opening.
    pub(super) fn give_up(&mut self, error: &EngineError) -> Option<AgentError> {
        let error = error.ends_task(self.last_group_bytes + self.bytes)?;
        let is_new = self.record.version == 0;
        let group = self.last_changes.iter();
        let opening = group.filter(|change| match change {
            Change::Use(..) => true,
            change => is_new && opens_a_turn(change),
        });
        self.pending = opening.cloned().collect();
        self.bytes = 0;
        self.waiters.clear();
        self.in_flight.clear();
        Some(error)
    }

    /// Notes the objects that the last group has stored, so that it stores them once if it is
    /// taken back.
    pub(super) fn note_objects(&mut self, commit: &PreparedCommit) {
        self.last_changes = Arc::clone(commit.changes());
    }

    /// Takes the last group back; returns its last change, which ends the turn.
    pub(super) fn take_back(&mut self) -> Option<Change> {
        self.pending = self.last_changes.to_vec();
        self.pending.pop()
    }

    /// Adds a change to the next group.
    pub(in crate::engine) fn push(&mut self, change: Change) {
        self.bytes += size_of(&change);
        if self.pending.is_empty() {
            self.waits_since = Some(self.turns.reader.clock.now());
        }
        self.pending.push(change);
    }
}

/// Logs a hand-over. It warns if the turn has no finished step, because the skill then
/// does all its work again.
fn log_hand_over(record: &TaskRecord, repeats: bool) {
    let (id, skill) = (&record.id, record.skill_name());
    if repeats {
        tracing::warn!(a2a.task = %id, skill, "a turn of task `{id}` is handed over and starts again: it has finished no step");
    } else {
        tracing::info!(a2a.task = %id, skill, "a turn of task `{id}` is handed over");
    }
}

/// Whether the change belongs to the opening of a turn, and not to the output of its skill.
const fn opens_a_turn(change: &Change) -> bool {
    matches!(
        change,
        Change::Accept { .. }
            | Change::Seal(_)
            | Change::Pin(..)
            | Change::Request(_)
            | Change::RegisterPush(_)
            | Change::Start { .. }
    )
}

/// Whether a repeated turn does not do this work again.
const fn is_progress(change: &Change) -> bool {
    match change {
        Change::Save { .. } => true,
        Change::Step { result, .. } => result.outcome.is_progress(),
        _ => false,
    }
}

/// About how many bytes a change adds to the store.
fn size_of(change: &Change) -> usize {
    let parts = match change {
        Change::Update {
            message: Some(message),
            ..
        } => &message.parts,
        Change::Artifact(update) => &update.artifact.parts,
        Change::Save { value, .. } => return value.to_string().len(),
        Change::Step { result, .. } => {
            return match &result.outcome {
                StepOutcome::Value(value) => value.to_string().len(),
                StepOutcome::Error(error) => error.text.len(),
                _ => 0,
            };
        }
        _ => return 0,
    };
    parts
        .iter()
        .map(|part| match &part.content {
            PartContent::Text(text) => text.len(),
            PartContent::Raw(bytes) => bytes.len(),
            PartContent::Url(url) => url.len(),
            PartContent::Data(value) => value.to_string().len(),
            PartContent::Stored(_) => 0,
        })
        .sum()
}

#[cfg(test)]
mod tests;
