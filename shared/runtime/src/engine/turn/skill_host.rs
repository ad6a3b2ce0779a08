//! Gives a skill the services of its running turn.
//!
//! What the skill emits goes through a channel of capacity one to the event loop, which
//! groups it into commits. The skill waits while the loop's buffer is full. A saved
//! value or a step's result is acknowledged when it is stored.

use super::command::SkillCommand;
use super::output_rules::OutputRules;
use super::references::NamedTasks;
use super::replayed_output::ReplayedOutput;
use super::scopes::{Scopes, StepPlace};
use super::spec::TurnSpec;
use super::thread::TurnThread;
use super::turn_break::{BreakSignal, TurnBreak};
use crate::engine::clock::lock;
use crate::engine::files::chained_reader::ChainedReader;
use crate::engine::files::object_key::Attempt;
use crate::engine::{Engine, EngineError};
use crate::store::documents::Documents;
use crate::store::{BlobReader, StoreError, stored};
use crate::task::{
    Blob, OutputCounts, PartContent, Saved, StepResult, TaskId, TaskKey, Timestamp, WriteId,
};
use crate::telemetry::scope::CallScope;
use crate::thread::Thread;
use a2a_lambda_model::store::read_up_to;
use a2a_lambda_skill::turn_host::{
    DocumentHost, Emission, References, ScopeId, SessionUpdate, Step, StepInput, TurnHost,
};
use a2a_lambda_skill::{AgentError, AgentResult, Artifact, Content, RunTrace, SkillOutcome};
use bytes::Bytes;
use futures::future::BoxFuture;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// The time left of a turn without a limit: 15 minutes, the longest timeout of a Lambda
/// function.
const UNBOUND: Duration = Duration::from_secs(15 * 60);

/// The services of a turn, lent to its skill.
pub(in crate::engine) struct TurnHandle<'e> {
    engine: &'e Engine,
    commands: mpsc::Sender<SkillCommand>,
    saved_turn: Mutex<Saved>,
    scopes: Scopes,
    replay: ReplayedOutput,
    output_rules: OutputRules<'e>,
    /// The outputs before each value that an earlier run of the turn saved.
    earlier_saves: Mutex<BTreeMap<String, OutputCounts>>,
    /// Ends the turn from inside the skill.
    signal: Arc<BreakSignal>,
    turn_thread: TurnThread<'e>,
    references: NamedTasks<'e>,
    task: TaskKey,
    task_id: TaskId,
    attempt: Attempt,
    trace: Option<Arc<RunTrace>>,
    stop_at: Option<Timestamp>,
    ends_at: Option<Timestamp>,
}

impl<'e> TurnHandle<'e> {
    /// Creates the turn of `spec`, and the receiver from which the event loop reads.
    pub(in crate::engine) fn new(
        engine: &'e Engine,
        spec: &TurnSpec,
    ) -> (Self, mpsc::Receiver<SkillCommand>) {
        let (commands, inbox) = mpsc::channel(1);
        let (saved_turn, base) = spec.replay();
        let skill = spec.input.skill().map(|skill| *skill.metadata());
        let turn = Self {
            engine,
            commands,
            earlier_saves: Mutex::new(base.saves),
            scopes: Scopes::new(&saved_turn, base.outputs),
            replay: ReplayedOutput::new(&spec.record),
            output_rules: OutputRules::new(engine, spec.record.id().clone(), skill),
            signal: Arc::default(),
            saved_turn: Mutex::new(saved_turn),
            turn_thread: TurnThread::new(engine, spec),
            references: NamedTasks::new(engine, spec),
            task: spec.record.key(),
            task_id: spec.record.id().clone(),
            attempt: Attempt::of(&spec.record, engine.reader.clock.now()),
            trace: engine.trace(),
            stop_at: spec.budget.stop_at,
            ends_at: spec.budget.ends_at(),
        };
        (turn, inbox)
    }

    /// The turn's view of its thread, with its own changes.
    pub(in crate::engine) const fn turn_thread(&self) -> &TurnThread<'e> {
        &self.turn_thread
    }

    /// Waits until the turn ends from inside its skill.
    pub(in crate::engine) async fn broken(&self) -> TurnBreak {
        self.signal.wait().await
    }

    /// Checks what the skill has returned, and logs the results of steps that it has not
    /// asked for. Returns the outcome, or a failure if the task would keep too much with it.
    pub(in crate::engine) fn checked(&self, outcome: SkillOutcome) -> SkillOutcome {
        self.output_rules.check_outcome(&outcome);
        let steps = self.scopes.unasked();
        if !steps.is_empty() {
            let id = &self.task_id;
            tracing::warn!(task.id = %id, steps = ?steps, "a turn of task `{id}` ended without asking for the stored results of some steps");
        }
        let slot = match &outcome {
            SkillOutcome::InputRequired { slot, .. } | SkillOutcome::AuthRequired { slot, .. } => {
                slot.clone()
            }
            _ => return outcome,
        };
        match self.keep(|saved_turn| saved_turn.slot = Some(slot)) {
            Ok(()) => outcome,
            Err(error) => SkillOutcome::Failed { error },
        }
    }

    /// The value, or the error that the skill gets. If the store was unavailable, the turn ends
    /// and this never returns.
    async fn for_skill<T>(&self, result: Result<T, StoreError>) -> AgentResult<T> {
        match result {
            Ok(value) => Ok(value),
            Err(error) => Err(self.store_failed(error).await),
        }
    }

    /// Stores a file under a key of this attempt, before any commit names it. A file of
    /// at most `inline_max` bytes goes into the commit instead.
    async fn keep_file(&self, mut source: BlobReader) -> Result<PartContent, StoreError> {
        let inline_max = self.engine.reader.policy.inline_max;
        let head = read_up_to(&mut source, inline_max.saturating_add(1)).await?;
        if head.len() <= inline_max {
            return Ok(PartContent::Raw(head));
        }
        let mut source: BlobReader = Box::pin(ChainedReader {
            head,
            rest: source,
            remaining: self.engine.reader.policy.upload_max,
        });
        let key = self.attempt.early_key(self.engine.ids.next());
        let blobs = &self.engine.blobs;
        let measure = blobs.put_from(&self.task, &key, &mut source).await?;
        Ok(PartContent::Stored(Blob {
            key,
            size: measure.size,
            sha256: measure.sha256,
            upload: None,
        }))
    }

    async fn ask(&self, command: SkillCommand) -> AgentResult<()> {
        self.commands
            .send(command)
            .await
            .map_err(|_| AgentError::canceled())
    }

    /// Changes what the task keeps, unless it would keep too much. The skill may continue
    /// after the error, with the values from before.
    fn keep(&self, change: impl FnOnce(&mut Saved)) -> AgentResult<()> {
        let mut saved_turn = lock(&self.saved_turn);
        let mut next = saved_turn.clone();
        change(&mut next);
        self.engine.check_state_size(stored::saved_size(&next))?;
        *saved_turn = next;
        Ok(())
    }

    /// Logs that a stored result depends on something that is different now.
    fn note_circumstances(&self, key: &str, hash: Option<&String>, input: &StepInput) {
        if hash != input.circumstances.as_ref() {
            let id = &self.task_id;
            tracing::info!(task.id = %id, step = key, "task `{id}` keeps the result of a step that would be asked differently now");
        }
    }

    /// Sends a change to the event loop; returns when it is stored.
    async fn stored_change(
        &self,
        command: impl FnOnce(oneshot::Sender<()>) -> SkillCommand + Send,
    ) -> AgentResult<()> {
        let (ack, receiver) = oneshot::channel();
        self.ask(command(ack)).await?;
        receiver.await.map_err(|_| AgentError::canceled())
    }
}

impl DocumentHost for TurnHandle<'_> {
    fn documents(&self) -> AgentResult<Documents> {
        let documents = self.engine.documents.clone();
        documents.ok_or_else(|| AgentError::internal("the runtime has no store of documents"))
    }

    fn write_stamp(&self) -> (Timestamp, WriteId) {
        let id = WriteId::made_of(self.engine.ids.next());
        (self.engine.reader.clock.now(), id)
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

impl TurnHost for TurnHandle<'_> {
    fn result_name(&self) -> &str {
        self.output_rules.result_name()
    }

    fn emit(&self, emission: Emission) -> BoxFuture<'_, AgentResult<()>> {
        Box::pin(async move {
            self.output_rules.check(&emission, self.scopes.step())?;
            let scope = self.scopes.next_output();
            let may_differ = self.scopes.is_in_step();
            match self.replay.left(emission, scope.is_none(), may_differ) {
                Some(emission) => self.ask(SkillCommand::Emit(scope, emission)).await,
                None => Ok(()),
            }
        })
    }

    fn store_file(&self, mut artifact: Artifact) -> BoxFuture<'_, AgentResult<Artifact>> {
        Box::pin(async {
            let limit = self.engine.reader.policy.upload_max;
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
                artifact.fill(self.for_skill(content).await?);
            }
            Ok(artifact)
        })
    }

    fn read_file(&self, blob: Blob) -> BoxFuture<'_, AgentResult<Bytes>> {
        Box::pin(async move {
            self.for_skill(self.engine.reader.bytes_of(&blob).await)
                .await
        })
    }

    fn open_file(&self, blob: Blob) -> BoxFuture<'_, AgentResult<BlobReader>> {
        Box::pin(async move {
            // A reader fails when the signal says that the turn is over.
            let (reader, signal) = (&self.engine.reader, Arc::clone(&self.signal));
            self.for_skill(reader.open_blob(blob, signal).await).await
        })
    }

    fn save(&self, key: String, value: Value) -> BoxFuture<'_, AgentResult<()>> {
        Box::pin(async move {
            lock(&self.earlier_saves).remove(&key);
            let (name, data) = (key.clone(), value.clone());
            self.keep(|saved_turn| drop(saved_turn.data.insert(name, data)))?;
            self.stored_change(|ack| SkillCommand::Save { key, value, ack })
                .await
        })
    }

    fn load(&self, key: &str) -> Option<Value> {
        if let Some(counts) = lock(&self.earlier_saves).get(key) {
            self.scopes.skip_outputs(counts);
        }
        lock(&self.saved_turn).data.get(key).cloned()
    }

    fn begin_step(&self, name: &str, input: StepInput) -> BoxFuture<'_, AgentResult<Step>> {
        let around = self.scopes.around();
        let step_place = self.scopes.begin_step(name);
        Box::pin(async move {
            let step_place = step_place?;
            let StepPlace {
                scope,
                key,
                ordinal,
                ..
            } = step_place.clone();
            let result = lock(&self.saved_turn).steps.get(&key).cloned();
            if let Err(error) = self.scopes.check(&step_place, result.as_ref(), &input) {
                // The stored results are those of other steps.
                let id = &self.task_id;
                tracing::error!(task.id = %id, "a step of task `{id}` has changed while its turn was open: {error}");
                let error = AgentError::step_changed("").with_cause(&error);
                self.signal.end(TurnBreak::Failed(error)).await;
            }
            if let Some(result) = &result {
                self.note_circumstances(&key, result.circumstances_hash.as_ref(), &input);
                let mut operations = self.turn_thread.operations();
                operations.replay(&key.as_str().into(), result);
            }
            let step = Step {
                scope,
                key,
                ordinal,
                input,
                value: result.map(|result| result.value),
            };
            if let Some(trace) = &self.trace {
                trace.begin_step(around, &step);
            }
            Ok(step)
        })
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

    fn leave(&self, scope: ScopeId) {
        let (path, outer) = self.scopes.leave(scope);
        self.turn_thread.operations().leave(&path, &outer);
        if let Some(trace) = &self.trace {
            trace.leave(scope);
        }
    }

    fn may_start(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            let now = self.engine.reader.clock.now();
            if self.stop_at.is_some_and(|at| at <= now) {
                // The event loop drops this future when it takes the request. If the
                // loop has ended already, nothing continues the turn.
                let _ended = self.commands.send(SkillCommand::Stop).await;
                std::future::pending::<()>().await;
            }
        })
    }

    fn end_step<'a>(&'a self, step: &'a Step, value: Value) -> BoxFuture<'a, AgentResult<()>> {
        Box::pin(async move {
            let (updates, operations) = {
                let operations = self.turn_thread.operations();
                let updates = operations.updates_of(&step.key);
                let thread_operations = operations.stored_of(&updates);
                (updates, thread_operations)
            };
            let result = StepResult {
                value,
                ordinal: step.ordinal,
                input_hash: step.input.hash.clone(),
                circumstances_hash: step.input.circumstances.clone(),
                operations,
            };
            let (key, copy) = (step.key.clone(), result.clone());
            self.keep(|saved_turn| saved_turn.complete_step(key, copy))?;
            if let Some(trace) = &self.trace {
                trace.output(step.scope, &result.value);
            }
            self.stored_change(|ack| SkillCommand::Step {
                key: step.key.clone(),
                result: Box::new(result),
                updates,
                ack,
            })
            .await
        })
    }

    fn thread(&self) -> BoxFuture<'_, AgentResult<Thread>> {
        Box::pin(async { self.for_skill(self.turn_thread.thread().await).await })
    }

    fn references(&self) -> BoxFuture<'_, AgentResult<&References>> {
        Box::pin(async { self.for_skill(self.references.load().await).await })
    }

    fn load_session(&self, key: String) -> BoxFuture<'_, AgentResult<Option<Value>>> {
        Box::pin(async move { self.for_skill(self.turn_thread.load(&key).await).await? })
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
        let now = self.engine.reader.clock.now();
        self.ends_at.map_or(UNBOUND, |end| end.since(now))
    }

    fn trace_parent(&self) -> Option<String> {
        CallScope::current().trace().map(|trace| trace.to_string())
    }
}
