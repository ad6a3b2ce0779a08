//! Gives a skill the services of its running turn.
//!
//! What the skill emits goes through a channel to the event loop, which groups it into commits.
//! The skill waits while the loop's buffer is full. A saved value or the value of a step is
//! acknowledged when it is stored.
//!
//! - here: the services
//! - `results`: the results of steps, waits and saved values
//! - `reads`: what the turn reads outside of steps

mod reads;
mod results;

use self::reads::ReadLog;
use super::command::{SkillCommand, artifact_update};
use super::output_rules::OutputRules;
use super::references::NamedTasks;
use super::replayed_output::ReplayedOutput;
use super::scopes::Scopes;
use super::spec::TurnSpec;
use super::thread::TurnThread;
use super::turn_brake::TurnBrake;
use crate::clock::lock;
use crate::engine::day_limits::{CallMeter, most_of_task};
use crate::engine::error::EngineError;
use crate::engine::files::chained_reader::ChainedReader;
use crate::engine::files::object_key::ObjectKeys;
use crate::engine::turn::Turns;
use crate::engine::turn_break::{BreakSignal, StepChangedError, TurnBreak};
use crate::store::documents::Documents;
use crate::store::{BlobReader, StoreError};
use crate::task::{
    Blob, Change, Metadata, PartContent, SavePlace, Saved, StepTries, TaskId, TaskKey, Timestamp,
    TokenUse, WriteId,
};
use crate::telemetry::scope::CallScope;
use crate::thread::Thread;
use a2a_lambda_model::store::read_up_to;
use a2a_lambda_skill::model::ModelRequest;
use a2a_lambda_skill::turn_host::{
    DocumentHost, Emission, References, ScopeEnd, ScopeId, SessionUpdate, Step, StepInput,
    TryPolicy, TurnHost,
};
use a2a_lambda_skill::{
    AgentError, AgentResult, Artifact, CallTokens, Content, MeterCalls, RunTrace, SkillOutcome,
};
use bytes::Bytes;
use futures::future::BoxFuture;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc};

/// The time left of a turn without a limit: 15 minutes, the longest timeout of a Lambda
/// function.
const UNBOUND: Duration = Duration::from_secs(15 * 60);

/// The services of a turn, lent to its skill.
pub(in crate::engine) struct TurnHandle<'e> {
    turns: &'e Turns,
    commands: mpsc::UnboundedSender<SkillCommand>,
    /// The one output that the event loop has not taken.
    output: Arc<Semaphore>,
    saved_turn: Mutex<Saved>,
    pub(super) scopes: Scopes,
    reads: ReadLog,
    /// How often the open steps were tried, by path.
    tries: Mutex<BTreeMap<String, StepTries>>,
    /// Whether the skill is dropped by the engine, and not by itself.
    is_closed: AtomicBool,
    /// How many results were kept without waiting until they are stored.
    backlog: AtomicU64,
    /// How many of them are stored at least.
    stored_backlog: AtomicU64,
    makes_task: bool,
    replay: ReplayedOutput,
    output_rules: OutputRules<'e>,
    /// Where earlier runs of the turn saved each value; those of this run have no place.
    saves: Mutex<BTreeMap<String, Option<SavePlace>>>,
    /// Ends the turn from inside the skill.
    pub(super) signal: Arc<BreakSignal>,
    pub(super) brake: TurnBrake<'e>,
    /// The meter of the calls of models.
    pub(super) meter: Arc<CallMeter<'e>>,
    /// The turn's view of its thread, with its own changes.
    pub(super) turn_thread: TurnThread<'e>,
    references: NamedTasks<'e>,
    task: TaskKey,
    task_id: TaskId,
    attempt: ObjectKeys,
    trace: Option<Arc<RunTrace>>,
    stop_at: Option<Timestamp>,
    ends_at: Option<Timestamp>,
}

impl<'e> TurnHandle<'e> {
    /// Creates the turn of `spec`, and the receiver from which the event loop reads.
    pub(in crate::engine) fn new(
        turns: &'e Turns,
        spec: &TurnSpec,
    ) -> (Self, mpsc::UnboundedReceiver<SkillCommand>) {
        let (commands, inbox) = mpsc::unbounded_channel();
        let (saved_turn, base) = spec.replay();
        let saves = base.saves.clone().into_iter();
        let skill = spec.input.skill().map(|skill| *skill.metadata());
        let tenant = spec.record.owner.tenant.clone();
        let turn = Self {
            turns,
            commands,
            output: Arc::new(Semaphore::new(1)),
            saves: Mutex::new(
                saves
                    .map(|(key, save_place)| (key, Some(save_place)))
                    .collect(),
            ),
            scopes: Scopes::new(&saved_turn, &base, spec.began_at()),
            reads: ReadLog::new(base.reads, turns.reader.policy.state_max_bytes),
            tries: Mutex::new(base.tries),
            is_closed: AtomicBool::new(false),
            backlog: AtomicU64::new(0),
            stored_backlog: AtomicU64::new(0),
            makes_task: spec.input.makes_task(),
            replay: ReplayedOutput::new(&spec.record),
            output_rules: OutputRules::new(
                turns.output_faults.as_ref(),
                spec.record.id.clone(),
                skill,
            ),
            signal: Arc::default(),
            brake: TurnBrake::new(&turns.reader, tenant, skill.map(|skill| skill.id)),
            meter: Arc::new(CallMeter::of_task(
                &turns.reader,
                &spec.record,
                most_of_task(&turns.reader.policy.limits, spec.messages()),
            )),
            saved_turn: Mutex::new(saved_turn),
            turn_thread: TurnThread::new(&turns.commits, spec),
            references: NamedTasks::new(&turns.reader, spec),
            task: spec.record.key(),
            task_id: spec.record.id.clone(),
            attempt: ObjectKeys::of(&spec.record, turns.reader.clock.now()),
            trace: turns.commits.trace(),
            stop_at: spec.budget.stop_at,
            ends_at: spec.budget.ends_at(),
        };
        (turn, inbox)
    }

    /// The error of a skill that waits, if only a result could wake it.
    pub(in crate::engine) fn stuck(&self) -> Option<StepChangedError> {
        self.scopes.is_stuck().then(|| self.scopes.stuck())
    }

    /// The engine is about to drop the skill: what is open then is not abandoned.
    pub(in crate::engine) fn close(&self) {
        self.is_closed.store(true, Ordering::Relaxed);
    }

    /// How often the steps were tried that are open.
    pub(in crate::engine) fn tries(&self) -> BTreeMap<String, StepTries> {
        lock(&self.tries).clone()
    }

    /// Checks what the skill has returned. Returns the outcome, or a failure if the task would
    /// keep too much with it.
    ///
    /// # Errors
    /// [`StepChangedError`] if the skill has not asked for a stored result.
    pub(in crate::engine) fn check_outcome(
        &self,
        outcome: SkillOutcome,
    ) -> Result<SkillOutcome, StepChangedError> {
        self.scopes.check_end("")?;
        self.output_rules.check_outcome(&outcome);
        let slot = match &outcome {
            SkillOutcome::InputRequired { slot, .. } | SkillOutcome::AuthRequired { slot, .. } => {
                slot.clone()
            }
            _ => return Ok(outcome),
        };
        Ok(match self.keep(|saved_turn| saved_turn.slot = Some(slot)) {
            Ok(()) => outcome,
            Err(error) => SkillOutcome::Failed { error },
        })
    }

    /// The value, or the error that the skill gets. If the store was unavailable, the turn ends
    /// and this never returns.
    async fn value_or_end_turn<T>(&self, result: Result<T, StoreError>) -> AgentResult<T> {
        match result {
            Ok(value) => Ok(value),
            Err(error) => Err(self.store_failed(error).await),
        }
    }

    /// Stores a file under a key of this attempt, before any commit names it. A file of
    /// at most `inline_max` bytes goes into the commit instead.
    async fn keep_file(
        &self,
        mut source: BlobReader,
    ) -> Result<AgentResult<PartContent>, StoreError> {
        let inline_max = self.turns.reader.policy.inline_max;
        let head = read_up_to(&mut source, inline_max.saturating_add(1)).await?;
        if head.len() <= inline_max {
            return Ok(Ok(PartContent::Raw(head)));
        }
        let first = head.len() as u64;
        if let Err(error) = self.charge(first).await {
            return Ok(Err(error));
        }
        let mut source: BlobReader = Box::pin(ChainedReader {
            head,
            rest: source,
            remaining: self.turns.reader.policy.upload_max,
        });
        let key = self.attempt.early_key(self.turns.reader.ids.next());
        let blobs = &self.turns.commits.files.blobs;
        let measure = blobs.put_from(&self.task, &key, &mut source).await?;
        let rest = measure.size.saturating_sub(first);
        let charge = self.charge(rest).await;
        Ok(charge.map(|()| {
            PartContent::Stored(Blob {
                key,
                size: measure.size,
                sha256: measure.sha256,
                upload: None,
            })
        }))
    }

    /// Adds to the bytes that the tenant may store in one day.
    async fn charge(&self, bytes: u64) -> AgentResult<()> {
        let files = &self.turns.commits.files;
        let charge = files.charge_bytes(self.task.tenant(), bytes).await;
        charge.map_err(|error| error.ends_task(0).unwrap_or_else(|| error.into()))
    }

    /// The change that an emission makes to the task.
    fn change_of(&self, emission: Emission) -> Change {
        let thread = &self.turn_thread;
        match emission {
            Emission::Update(content, metadata) => {
                let mut message = self
                    .turns
                    .agent_message(&self.task_id, &thread.context, content);
                message.metadata = metadata;
                Change::Update {
                    message: Some(message),
                    metadata: Metadata::new(),
                }
            }
            Emission::Artifact {
                artifact,
                append,
                last_chunk,
                writer,
            } => {
                let append = self.replay.begin(&artifact.name) && append;
                let mut update = artifact_update(&thread.incarnation, artifact, append, last_chunk);
                update.artifact.chunks_of = writer.map(|_| thread.turn);
                Change::Artifact(update)
            }
        }
    }

    fn ask(&self, command: SkillCommand) -> AgentResult<()> {
        let result = self.commands.send(command);
        result.map_err(|_| AgentError::canceled())
    }
}

impl DocumentHost for TurnHandle<'_> {
    fn documents(&self) -> AgentResult<Documents> {
        let documents = self.turns.documents.clone();
        documents.ok_or_else(|| AgentError::internal("the runtime has no store of documents"))
    }

    fn write_stamp(&self) -> (Timestamp, WriteId) {
        let id = WriteId::made_of(self.turns.reader.ids.next());
        (self.turns.reader.clock.now(), id)
    }

    fn store_failed(&self, error: StoreError) -> BoxFuture<'_, AgentError> {
        Box::pin(async move {
            if error.is_outage() {
                self.signal.end(TurnBreak::Outage(error)).await;
            }
            AgentError::from(EngineError::from(error))
        })
    }
}

impl MeterCalls for TurnHandle<'_> {
    fn reserve<'a>(
        &'a self,
        request: &'a mut ModelRequest,
    ) -> BoxFuture<'a, AgentResult<CallTokens>> {
        Box::pin(async move {
            self.value_or_end_turn(self.meter.reserve_call(request).await)
                .await?
        })
    }

    fn settle<'a>(
        &'a self,
        model: &'a str,
        call: CallTokens,
        usage: TokenUse,
    ) -> BoxFuture<'a, ()> {
        self.meter.settle(model, call, usage)
    }

    fn call_is_braked(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.brake.wait_in_call(&self.scopes))
    }

    fn tokens_left(&self) -> Option<u64> {
        self.read_tokens_left()
    }

    fn hold(&self, tokens: u64) {
        self.meter.hold(tokens);
    }

    fn release(&self, tokens: u64) {
        self.meter.release(tokens);
    }

    fn note_partial(&self) {
        self.meter.note_partial();
    }
}

impl TurnHost for TurnHandle<'_> {
    fn result_name(&self) -> &str {
        self.output_rules.result_name()
    }

    fn emit(&self, emission: Emission) -> BoxFuture<'_, AgentResult<()>> {
        Box::pin(async move {
            self.output_rules.check(&emission, self.scopes.step())?;
            let scope = self.scopes.next_output();
            let may_differ = self.scopes.is_in_step();
            let _call = self.scopes.call();
            // The event loop takes the output before this one. An output that an earlier run has
            // said takes as long, so that a race with it has the same winner.
            tokio::task::yield_now().await;
            let Some(emission) = self.replay.remainder(emission, scope.is_none(), may_differ)
            else {
                return Ok(());
            };
            let output = Arc::clone(&self.output).acquire_owned().await;
            let permit = output.map_err(|_| AgentError::canceled())?;
            let change = Box::new(self.change_of(emission));
            self.ask(SkillCommand::Emit(scope, change, permit))
        })
    }

    fn store_file(&self, mut artifact: Artifact) -> BoxFuture<'_, AgentResult<Artifact>> {
        Box::pin(async {
            let limit = self.turns.reader.policy.upload_max;
            for part in &artifact.parts {
                if let PartContent::Raw(bytes) = &part.content
                    && bytes.len() > limit
                {
                    let size = Some(bytes.len());
                    return Err(AgentError::artifact_too_large(&artifact.name, size, limit));
                }
            }
            if let Some(source) = artifact.source() {
                let content = self.keep_file(source.take()?).await;
                if let Err(StoreError::Source(error)) = &content
                    && error.kind() == ErrorKind::FileTooLarge
                {
                    return Err(AgentError::artifact_too_large(&artifact.name, None, limit));
                }
                artifact.fill(self.value_or_end_turn(content).await??);
            }
            Ok(artifact)
        })
    }

    fn read_file(&self, blob: Blob) -> BoxFuture<'_, AgentResult<Bytes>> {
        Box::pin(async move {
            self.value_or_end_turn(self.turns.reader.bytes_of(&blob).await)
                .await
        })
    }

    fn open_file(&self, blob: Blob) -> BoxFuture<'_, AgentResult<BlobReader>> {
        Box::pin(async move {
            // A reader fails when the signal says that the turn is over.
            let (reader, signal) = (&self.turns.reader, Arc::clone(&self.signal));
            self.value_or_end_turn(reader.open_blob(blob, signal).await)
                .await
        })
    }

    fn save(&self, key: String, value: Value) -> BoxFuture<'_, AgentResult<()>> {
        Box::pin(self.save_data(key, value))
    }

    fn load(&self, key: &str) -> AgentResult<Option<Value>> {
        let mut saves = lock(&self.saves);
        if let Some(save_place) = saves.get_mut(key) {
            self.scopes.check_alone(key)?;
            let saved_turn = lock(&self.saved_turn);
            let steps = &saved_turn.steps;
            if let Some(save_place) = save_place.take()
                && let Some(is_passed) = self.scopes.continue_behind(key, &save_place, steps)
            {
                // What the passed steps did to the thread stays.
                let mut results: Vec<_> = steps.iter().collect();
                results.retain(|(path, _)| is_passed(path));
                results.sort_unstable_by_key(|(_, result)| result.number);
                let mut operations = self.turn_thread.operations();
                let scope = save_place.scope.into();
                for (_, result) in results {
                    operations.replay(&scope, result);
                }
                operations.pass(scope, save_place.operations);
            }
        }
        Ok(lock(&self.saved_turn).data.get(key).cloned())
    }

    fn begin_step(&self, name: &str, input: StepInput) -> AgentResult<Step> {
        self.scopes.begin_step(name, input)
    }

    fn stored_result<'a>(&'a self, step: &'a Step) -> BoxFuture<'a, Option<AgentResult<Value>>> {
        Box::pin(self.find_result(step))
    }

    fn begin_try<'a>(&'a self, step: &'a Step) -> BoxFuture<'a, ()> {
        Box::pin(self.wait_for_try(step))
    }

    fn try_again<'a>(
        &'a self,
        step: &'a Step,
        policy: TryPolicy,
        error: &'a AgentError,
    ) -> BoxFuture<'a, bool> {
        Box::pin(self.wait_for_next_try(step, policy, error))
    }

    fn refusal(&self, skill: &str) -> Option<AgentError> {
        let refusal = self.brake.refusal_of(Some(skill))?;
        let path = self.scopes.step_path();
        // A turn that runs again continues the call that it has begun.
        let is_new = !path.is_empty() && self.scopes.check_end(&path).is_ok();
        is_new.then(|| AgentError::domain("UNAVAILABLE", refusal.to_string()))
    }

    fn sleep(&self, name: &str, duration: Duration) -> BoxFuture<'_, AgentResult<()>> {
        let name = name.to_owned();
        Box::pin(async move { self.wait(&name, duration).await })
    }

    fn begin_scope(&self, name: &str) -> AgentResult<ScopeId> {
        self.scopes.begin_scope(name)
    }

    fn enter(&self, scope: ScopeId) -> ScopeId {
        let before = self.scopes.enter(scope);
        if let Some(trace) = &self.trace {
            trace.enter(self.scopes.around());
        }
        before
    }

    fn end_scope(&self, scope: ScopeId) -> BoxFuture<'_, ()> {
        Box::pin(self.wait_to_end(scope))
    }

    fn leave(&self, scope: ScopeId, end: ScopeEnd) {
        let (path, outer, ordinal) = self.scopes.leave(scope);
        if end == ScopeEnd::Dropped && !self.is_closed.load(Ordering::Relaxed) {
            self.abandon(&path, ordinal);
        }
        self.turn_thread.operations().leave(&path, &outer);
        if let Some(trace) = &self.trace {
            trace.leave(scope);
        }
    }

    fn end_step<'a>(
        &'a self,
        step: &'a Step,
        result: AgentResult<Value>,
    ) -> BoxFuture<'a, AgentResult<()>> {
        Box::pin(self.keep_result(step, result))
    }

    fn now(&self) -> Timestamp {
        match self.scopes.is_in_step() {
            true => self.turns.reader.clock.now(),
            false => self.scopes.given_at(),
        }
    }

    fn step_key(&self) -> String {
        self.turn_thread.step_key(&self.scopes.step_path())
    }

    fn thread(&self) -> BoxFuture<'_, AgentResult<Thread>> {
        Box::pin(async {
            self.value_or_end_turn(self.turn_thread.thread().await)
                .await
        })
    }

    fn references(&self) -> BoxFuture<'_, AgentResult<&References>> {
        Box::pin(async { self.value_or_end_turn(self.references.load().await).await })
    }

    fn load_session(&self, key: String) -> BoxFuture<'_, AgentResult<Option<Value>>> {
        Box::pin(self.read_session(key))
    }

    fn save_session(&self, key: String, value: Value) -> AgentResult<()> {
        let scope = self.scopes.path();
        self.turn_thread.operations().set(scope, key, value);
        Ok(())
    }

    fn update_session(&self, key: String, update: SessionUpdate) -> AgentResult<()> {
        let scope = self.scopes.path();
        self.turn_thread.operations().update(scope, key, update);
        Ok(())
    }

    fn add_event(&self, content: Content) -> AgentResult<()> {
        let (scope, number) = self.scopes.next_event();
        let event = self.turn_thread.event(content, &scope, number);
        self.turn_thread.operations().append(scope, event);
        Ok(())
    }

    fn time_left(&self) -> Duration {
        let now = self.turns.reader.clock.now();
        self.ends_at.map_or(UNBOUND, |end| end.since(now))
    }

    fn trace_parent(&self) -> Option<String> {
        CallScope::current().trace().map(|trace| trace.to_string())
    }
}
