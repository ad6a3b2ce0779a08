//! Runs one turn of a skill, in the same way for every kind of call.
//!
//! One event loop polls the skill's future, the commits, the heartbeat and the clock.
//! What the skill emits while a write is in flight goes into the next write. An event
//! is shown after its commit is acknowledged. Nothing of the skill runs outside its
//! future, so dropping the future ends the turn immediately.

use super::event_loop::{LoopEnd, drive};
use super::event_sink::EventSink;
use super::heartbeat::Heartbeat;
use super::report::{TurnReport, note};
use super::skill_future::SkillFuture;
use super::skill_host::TurnHandle;
use super::spec::{Acceptance, TurnCall, TurnEnd, TurnInput, TurnSpec};
use super::write_buffer::WriteBuffer;
use crate::auth::Caller;
use crate::engine::commit::{Commit, OnConflict, registers_push};
use crate::engine::error::EngineError;
use crate::engine::turn::Turns;
use crate::engine::turn_break::{StepChangedError, TurnBreak};
use crate::store::queue::Receipt;
use crate::task::{A2aError, Change, TaskRecord, Timestamp};
use crate::telemetry::outcomes::{EVENTS, class_of};
use a2a_lambda_skill::begin_session;
use a2a_lambda_skill::{
    AgentError, AnySkill, Content, RunTrace, SessionAdapter, SkillOutcome, TaskContext, TurnStart,
};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use std::any::Any;
use std::future::ready;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

/// The shortest wait of a turn that is given back.
const WAIT_MIN: Duration = Duration::from_secs(10);
/// The longest wait: the longest delay of a message.
const WAIT_MAX: Duration = crate::store::queue::DELAY_MAX;

impl Turns {
    /// Carries out an accepted message. Its client waits for a turn until `waits_until`.
    ///
    /// # Errors
    /// Those of [`run`](Self::run), [`enqueue`](Self::enqueue) and
    /// [`cancel_task`](Self::cancel_task).
    pub(in crate::engine) async fn run_accepted(
        &self,
        caller: &Caller,
        acceptance: Acceptance,
        waits_until: Option<Timestamp>,
        sink: &mut EventSink,
    ) -> Result<TurnEnd, EngineError> {
        let mut spec = match acceptance {
            Acceptance::Repeat(record) => return Ok(TurnEnd::Duplicate(record)),
            Acceptance::Cancel(record, key) => {
                let record = Box::pin(self.cancel_task(caller, *record, key)).await?;
                return Ok(TurnEnd::Duplicate(record));
            }
            Acceptance::Run(spec) => spec,
        };
        sink.is_context_reset |= spec.is_reset();
        // Another invocation runs the turn, as that of a repeated send.
        if spec.is_queued {
            let record = Box::pin(self.enqueue(*spec, sink)).await?;
            return Ok(TurnEnd::Duplicate(record));
        }
        if let Some(at) = waits_until {
            spec.budget = spec.budget.waiting_until(at);
        }
        self.run(*spec, None, sink).await
    }

    /// Runs a turn until the task rests, another writer takes it, or the
    /// turn is handed over. `receipt` is that of the queue message that brought the turn
    /// to a worker. The report of the turn begins with this call, in the scope of its caller.
    ///
    /// # Errors
    /// When the opening cannot be stored; then nothing has changed. A later outage ends
    /// this run and releases the turn; another store error leaves it to a takeover.
    pub(in crate::engine) fn run<'a>(
        &'a self,
        mut spec: TurnSpec,
        receipt: Option<&'a dyn Receipt>,
        sink: &'a mut EventSink,
    ) -> impl Future<Output = Result<TurnEnd, EngineError>> + Send + use<'a> {
        let report = TurnReport::begin(self, &spec, receipt.is_some());
        spec.facts.model.clone_from(&self.model);
        spec.facts.states.clone_from(self.agent.states());
        let instructions = &self.agent.manifest().instructions;
        spec.facts.instructions.clone_from(instructions);
        // A future is moved with room for all that it awaits, so the engine boxes large ones at
        // its borders: the turn here, a message that is accepted, and the work of a queue.
        report.follow(Box::pin(self.execute(spec, receipt, sink)))
    }

    async fn execute(
        &self,
        spec: TurnSpec,
        receipt: Option<&dyn Receipt>,
        sink: &mut EventSink,
    ) -> Result<TurnEnd, EngineError> {
        let (turn, inbox) = TurnHandle::new(self, &spec);
        let (mut no_sink, mut no_other) = (EventSink::default(), EventSink::default());
        // The client sees the task that gets its message, or the question that passes it on.
        let (sink, other_sink) = match spec.input {
            TurnInput::Forward(_, true) => (&mut no_sink, sink),
            _ => (sink, &mut no_other),
        };
        let is_stream = sink.is_stream();
        let is_watched = is_stream || spec.opening.iter().any(registers_push);
        let (is_forced, budget) = (spec.force, spec.budget);
        let (mut buffer, TurnCall { input, facts, key }) = WriteBuffer::new(self, spec, sink);
        if is_forced && let Some(first) = buffer.open_as(key).await? {
            return Ok(TurnEnd::Duplicate(first));
        }
        let input = match input {
            TurnInput::Forward(acceptance, is_response) => {
                let other = self
                    .run_other(&facts.caller, *acceptance, other_sink)
                    .await?;
                let end = buffer.finish_turn(outcome_of_forwarding(&other), &turn.turn_thread);
                let (end, other) = (end.await?, TurnEnd::Duplicate(other));
                return Ok(if is_response { other } else { end });
            }
            input => input,
        };
        let (skill, start) = match input.into_run() {
            Ok(run) => run,
            Err(outcome) => {
                // Clients that read status updates only get the question as one.
                if is_stream && !is_forced {
                    buffer.open().await?;
                }
                return buffer.finish_turn(outcome, &turn.turn_thread).await;
            }
        };
        buffer.meter = Some(Arc::clone(&turn.meter));
        let mut context = TaskContext::new(&turn, &facts);
        let adapter = self.agent.adapter(skill.metadata());
        let running = run_skill(&*skill, adapter, &mut context, start, self.commits.trace());
        let mut running = SkillFuture::new(running, &turn, &*self.reader.clock);
        if is_watched && !is_forced {
            poll_and_open(&mut running, &mut buffer).await?;
        }
        let mut heartbeat = Heartbeat::new(&self.commits, receipt, budget, is_stream);
        let ended_by = drive(&mut running, &turn, inbox, &mut buffer, &mut heartbeat).await;
        // INVARIANT: the skill's future is dropped before the turn is handed over, so
        // that a hand-over never makes two runs of one turn overlap. What is open then is not
        // abandoned: the next run continues with it.
        turn.close();
        drop(running);
        let last_record = buffer.record.clone();
        match self.end_turn(ended_by, &turn, buffer).await {
            Ok(TurnEnd::AtRest(record)) => {
                self.call_on_completed(&*skill, &facts, &record).await;
                Ok(TurnEnd::AtRest(record))
            }
            // A run that an outage ended releases its turn.
            Err(error) => self.release(last_record, error).await,
            end => end,
        }
    }

    /// Runs the turn of the task that the client chose for its message; the task as it is then.
    fn run_other<'a>(
        &'a self,
        caller: &'a Caller,
        acceptance: Acceptance,
        sink: &'a mut EventSink,
    ) -> BoxFuture<'a, Result<TaskRecord, EngineError>> {
        let turn = self.run_accepted(caller, acceptance, None, sink);
        let task = turn.map(|end| match end? {
            TurnEnd::AtRest(record)
            | TurnEnd::HandedOver(record)
            | TurnEnd::Duplicate(record)
            | TurnEnd::Superseded(Some(record)) => Ok(record),
            TurnEnd::Message(_) | TurnEnd::Superseded(None) => Err(A2aError::TaskNotFound.into()),
        });
        task.boxed()
    }

    /// Stores the outcome of the skill, or hands its turn over.
    fn end_turn<'a>(
        &'a self,
        ended_by: Result<LoopEnd, EngineError>,
        turn: &'a TurnHandle<'_>,
        mut buffer: WriteBuffer<'a>,
    ) -> BoxFuture<'a, Result<TurnEnd, EngineError>> {
        let outcome = match ended_by {
            Ok(LoopEnd::Returned(outcome)) => match turn.check_outcome(outcome) {
                Ok(outcome) => outcome,
                Err(error) => return Box::pin(self.end_changed(turn, buffer, error)),
            },
            Ok(LoopEnd::Lost) => {
                let end = TurnEnd::Superseded(buffer.winner);
                return Box::pin(ready(Ok(end)));
            }
            Ok(LoopEnd::TimeUp) if !buffer.can_go_on() => SkillOutcome::Failed {
                error: AgentError::deadline(),
            },
            Ok(LoopEnd::TimeUp) => match self.hand_over_limit(&buffer.record) {
                Some(error) => SkillOutcome::Failed { error },
                None => return Box::pin(buffer.hand_over(turn)),
            },
            Ok(LoopEnd::Broken(TurnBreak::Waits(not_before))) => {
                return Box::pin(buffer.give_turn(turn, Change::Release { not_before }));
            }
            Ok(LoopEnd::Broken(TurnBreak::Braked(refusal))) => {
                return Box::pin(self.end_braked(refusal, turn, buffer));
            }
            Ok(LoopEnd::Broken(TurnBreak::Changed(error))) => {
                return Box::pin(self.end_changed(turn, buffer, error));
            }
            Ok(LoopEnd::Broken(TurnBreak::Failed(error))) => SkillOutcome::Failed { error },
            Ok(LoopEnd::Broken(TurnBreak::Outage(error))) => {
                return Box::pin(ready(Err(error.into())));
            }
            Err(error) => match buffer.give_up(&error) {
                Some(error) => SkillOutcome::Failed { error },
                None => return Box::pin(ready(Err(error))),
            },
        };
        Box::pin(buffer.finish_turn(outcome, &turn.turn_thread))
    }

    /// Releases a braked turn: it runs again when the brake is lifted. A call whose task is not
    /// stored, and in which no step has begun, ends as a new one.
    async fn end_braked(
        &self,
        refusal: A2aError,
        turn: &TurnHandle<'_>,
        buffer: WriteBuffer<'_>,
    ) -> Result<TurnEnd, EngineError> {
        let has_work = buffer.record.version > 0 || turn.brake.has_begun();
        if !has_work || !buffer.can_go_on() {
            return Err(refusal.into());
        }
        let not_before = self.reader.clock.now();
        buffer.give_turn(turn, Change::Release { not_before }).await
    }

    /// Ends a run that did not ask for what is stored. The task fails if the build that stored it
    /// runs here: the skill is not the same function each time. Another build gives the turn
    /// back, since a deployment may put the step back, until the turn has waited too long.
    async fn end_changed(
        &self,
        turn: &TurnHandle<'_>,
        buffer: WriteBuffer<'_>,
        error: StepChangedError,
    ) -> Result<TurnEnd, EngineError> {
        let record = &buffer.record;
        let (id, before) = (&record.id, record.base.build.as_ref());
        let is_other_build = before.is_some() && before != self.agent.build_id();
        if is_other_build && buffer.can_go_on() && self.run_limit(record).is_none() {
            tracing::error!(class = class_of(EVENTS, "turn.changed").word(), a2a.task = %id, turn.changed = true, "a turn of task `{id}` waits for the build that stored its steps: {error}");
            if let Some(trace) = self.commits.trace() {
                let now = self.reader.clock.now();
                trace.event(record, ("failure", "STEP_CHANGED"), now, |row| {
                    let cause = format!("waits for the build that stored its steps: {error}");
                    row.add("cause", &cause);
                });
            }
            return self.give_back(buffer.record).await;
        }
        tracing::error!(a2a.task = %id, "a turn of task `{id}` did not ask for the same steps when it ran again: {error}");
        let outcome = SkillOutcome::Failed {
            error: AgentError::step_changed("").with_cause(&error),
        };
        buffer.finish_turn(outcome, &turn.turn_thread).await
    }

    /// Releases the turn that `record`, the task as this run last stored it, was in when
    /// `error` ended the run.
    ///
    /// # Errors
    /// `error`, if it is not an outage or the turn is not stored. When the release cannot
    /// be stored; then the lease runs out, which counts as an attempt.
    pub(in crate::engine) async fn release(
        &self,
        record: TaskRecord,
        error: EngineError,
    ) -> Result<TurnEnd, EngineError> {
        if !error.is_outage() || record.version == 0 || record.lease_until.is_none() {
            return Err(error);
        }
        let (id, cause) = (&record.id, error.cause.as_ref());
        tracing::warn!(a2a.task = %id, error.cause = cause.map(tracing::field::display), "an outage ended a run of task `{id}`");
        self.give_back(record).await
    }

    /// Stores that the turn of `record` runs again later: an outage ended its run, or another build
    /// began it. Neither is the fault of the task, so the run does not count as an attempt. The wait
    /// is as long as the turn has made no progress, so it doubles by itself.
    pub(in crate::engine) async fn give_back(
        &self,
        record: TaskRecord,
    ) -> Result<TurnEnd, EngineError> {
        let now = self.reader.clock.now();
        let wait = now.since(record.progress_at()).clamp(WAIT_MIN, WAIT_MAX);
        let not_before = now.plus(wait);
        let release = Change::Release { not_before };
        let release = Commit {
            on_conflict: OnConflict::Reapply,
            ..self.commits.commit_of(record, release)
        };
        let result = self.commits.commit(release).await?.of_task()?;
        Ok(result.map_or_else(TurnEnd::Superseded, TurnEnd::HandedOver))
    }

    /// Stores a turn for a worker and returns its task. If the message was accepted
    /// before, this is its task.
    pub(in crate::engine) async fn enqueue(
        &self,
        spec: TurnSpec,
        sink: &mut EventSink,
    ) -> Result<TaskRecord, EngineError> {
        note(&spec);
        let is_private = spec.hides_message();
        let (mut buffer, call) = WriteBuffer::new(self, spec, sink);
        let repeat = buffer.open_as(call.key).await?;
        if let Some(trace) = self.commits.trace() {
            trace.name_task(&buffer.record, is_private);
        }
        Ok(repeat.unwrap_or(buffer.record))
    }
}

/// How the task of the router's question ends when its client chose the open task `receiver`: with
/// the words and the id of that task, so a client that follows only the question finds it.
fn outcome_of_forwarding(receiver: &TaskRecord) -> SkillOutcome {
    let message = receiver.status.message.clone();
    let words = message.map(|message| Content::from_parts(message.parts));
    let words = words.as_ref().and_then(Content::first_text);
    let words = words.unwrap_or_else(|| receiver.state().as_str());
    let text = format!("{words}\n(task `{}`)", receiver.id);
    SkillOutcome::Message {
        message: Content::from_text(text),
    }
}

/// Polls the skill once, and stores the opening of its turn. A skill that returns a
/// message on its first poll makes no task, even on a stream. Any other stream shows the
/// stored task first, and a push config gets all events of the turn.
async fn poll_and_open(
    running: &mut SkillFuture<'_>,
    buffer: &mut WriteBuffer<'_>,
) -> Result<(), EngineError> {
    let first = (&mut *running).now_or_never();
    if !matches!(first, Some(SkillOutcome::Message { .. })) && buffer.makes_task {
        buffer.open().await?;
    }
    if let Some(outcome) = first {
        // What the skill emitted before it returned is still in the inbox.
        running.end(outcome);
    }
    Ok(())
}

/// The skill's future. A panic in it fails the turn and not the process. The panic hook
/// has logged its place. Its text may hold content, so only a local trace gets it.
fn run_skill<'a>(
    skill: &'a dyn AnySkill,
    adapter: Option<&'a dyn SessionAdapter>,
    context: &'a mut TaskContext<'_>,
    start: TurnStart,
    trace: Option<Arc<RunTrace>>,
) -> BoxFuture<'a, SkillOutcome> {
    let turn = AssertUnwindSafe(async move {
        if let Some(adapter) = adapter {
            begin_session(context, adapter, skill.makes_task()).await;
        }
        let outcome = skill.turn(context, start).await;
        context.deliver(outcome).await
    });
    let failure = move |panic: Box<dyn Any + Send>| {
        if let Some(trace) = trace {
            trace.note_panic(&*panic);
        }
        SkillOutcome::Failed {
            error: AgentError::internal("the skill panicked"),
        }
    };
    let turn = turn.catch_unwind();
    turn.map(|result| result.unwrap_or_else(failure)).boxed()
}
