//! Runs one turn of a skill, in the same way for every kind of call.
//!
//! One event loop polls the skill's future, the commits, the heartbeat and the clock.
//! What the skill emits while a write is in flight goes into the next write. An event
//! is shown after its commit is acknowledged. Nothing of the skill runs outside its
//! future, so dropping the future ends the turn immediately.

use super::event_loop::{LoopEnd, drive};
use super::event_sink::EventSink;
use super::finish::too_large;
use super::heartbeat::Heartbeat;
use super::report::{TurnReport, note, skill_of};
use super::skill_host::TurnHandle;
use super::spec::{TurnEnd, TurnSpec};
use super::turn_break::TurnBreak;
use super::write_buffer::{WriteBuffer, registers_push};
use crate::engine::{Engine, EngineError};
use crate::store::queue::Receipt;
use crate::task::TaskRecord;
use a2a_lambda_skill::begin_session;
use a2a_lambda_skill::{
    AgentError, AnySkill, SessionAdapter, SkillOutcome, TaskContext, TurnStart,
};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use std::panic::AssertUnwindSafe;

impl Engine {
    /// Runs a turn until the task rests, another writer takes it, or the
    /// turn is handed over. `receipt` is that of the queue message that brought the turn
    /// to a worker.
    ///
    /// # Errors
    /// When the opening cannot be stored; then nothing has changed. A later outage ends
    /// this run and releases the turn; another store error leaves it to a takeover.
    pub(in crate::engine) async fn run(
        &self,
        spec: TurnSpec,
        receipt: Option<&dyn Receipt>,
        sink: &mut EventSink,
    ) -> Result<TurnEnd, EngineError> {
        let report = TurnReport::begin(self, &spec, receipt.is_some());
        // Boxed here, so that the wrappers of the report hold a pointer, not the whole turn.
        let turn = Box::pin(self.run_turn(spec, receipt, sink));
        let result = report.run(turn).await;
        report.end(&result);
        result
    }

    async fn run_turn(
        &self,
        spec: TurnSpec,
        receipt: Option<&dyn Receipt>,
        sink: &mut EventSink,
    ) -> Result<TurnEnd, EngineError> {
        let (_, base) = spec.replay();
        let (turn, inbox) = TurnHandle::new(self, &spec);
        let makes_task = spec.input.makes_task();
        let is_stream = sink.is_stream();
        let is_watched = is_stream || spec.opening.iter().any(registers_push);
        let opens = spec.context_status.and_then(|context| context.opens);
        let budget = spec.budget;
        let (record, opening) = (spec.record, spec.opening);
        let buffer = WriteBuffer::new(self, record, opening, makes_task, budget, sink);
        let mut buffer = buffer
            .opening(opens, spec.print)
            .after_outputs(base.outputs);
        if spec.force
            && let Some(first) = buffer.open_as(spec.key).await?
        {
            return Ok(TurnEnd::Duplicate(first));
        }
        let (skill, start) = match spec.input.into_run() {
            Ok(run) => run,
            Err(outcome) => {
                return Box::pin(buffer.finish_turn(outcome, turn.turn_thread())).await;
            }
        };
        let mut context = TaskContext::new(&turn, &spec.facts);
        let adapter = self.agent.adapter(skill.metadata());
        let mut running = guarded(&*skill, adapter, &mut context, start);
        if is_watched && !spec.force {
            poll_and_open(&mut running, &mut buffer).await?;
        }
        let mut heartbeat = Heartbeat::new(self, receipt, budget, is_stream);
        let ended_by = drive(&mut running, &turn, inbox, &mut buffer, &mut heartbeat).await;
        // INVARIANT: the skill's future is dropped before the turn is handed over, so
        // that a hand-over never makes two runs of one turn overlap.
        drop(running);
        if let Ok(LoopEnd::Returned(outcome)) = &ended_by {
            turn.check_end(outcome);
        }
        let last_record = buffer.record.clone();
        let result = match self.outcome(ended_by, &mut buffer) {
            Ok(Ok(outcome)) => Box::pin(buffer.finish_turn(outcome, turn.turn_thread())).await,
            Ok(Err(reason)) => Box::pin(leave(reason, &turn, buffer)).await,
            Err(error) => Err(error),
        };
        match result {
            Ok(TurnEnd::Stopped(record)) => {
                self.completed(&*skill, &spec.facts, &record).await;
                Ok(TurnEnd::Stopped(record))
            }
            // A run that an outage ended releases its turn.
            Err(error) => Box::pin(self.release(last_record, error)).await,
            result => result,
        }
    }

    /// The outcome of the skill, or how its turn leaves this process.
    ///
    /// # Errors
    /// When the store failed.
    fn outcome(
        &self,
        ended_by: Result<LoopEnd, EngineError>,
        buffer: &mut WriteBuffer<'_>,
    ) -> Result<Result<SkillOutcome, Leave>, EngineError> {
        Ok(match ended_by {
            Ok(LoopEnd::Returned(outcome)) => Ok(outcome),
            Ok(LoopEnd::Lost) => Err(Leave::Lost),
            Ok(LoopEnd::TimeUp) if buffer.can_go_on() => {
                match self.hand_over_limit(&buffer.record) {
                    Some(error) => Ok(SkillOutcome::Failed(error)),
                    None => Err(Leave::HandOver),
                }
            }
            Ok(LoopEnd::TimeUp) => Ok(SkillOutcome::Failed(AgentError::deadline())),
            Ok(LoopEnd::Broken(TurnBreak::Failed(error))) => Ok(SkillOutcome::Failed(error)),
            Ok(LoopEnd::Broken(TurnBreak::Outage(error))) => return Err(error.into()),
            Err(error) if too_large(&error) => Ok(SkillOutcome::Failed(buffer.overflow())),
            Err(error) => return Err(error),
        })
    }

    /// Stores a turn for a worker and returns its task. If the message was accepted
    /// before, this is its task.
    pub(in crate::engine) async fn enqueue(
        &self,
        spec: TurnSpec,
        sink: &mut EventSink,
    ) -> Result<TaskRecord, EngineError> {
        note(&spec, skill_of(&spec).as_deref());
        let opens = spec.context_status.and_then(|context| context.opens);
        let mut buffer = WriteBuffer::new(self, spec.record, spec.opening, true, spec.budget, sink)
            .opening(opens, spec.print);
        let repeat = buffer.open_as(spec.key).await?;
        Ok(repeat.unwrap_or(buffer.record))
    }
}

/// How a turn leaves this process before its end.
enum Leave {
    /// Another writer has the task.
    Lost,
    /// A worker continues the turn.
    HandOver,
}

async fn leave(
    reason: Leave,
    turn: &TurnHandle<'_>,
    buffer: WriteBuffer<'_>,
) -> Result<TurnEnd, EngineError> {
    match reason {
        Leave::HandOver => buffer.hand_over(turn.turn_thread()).await,
        Leave::Lost => {
            turn.end();
            Ok(TurnEnd::Superseded(buffer.winner))
        }
    }
}

/// Polls the skill once, and stores the opening of its turn. A skill that returns a
/// message on its first poll makes no task, even on a stream. Any other stream shows the
/// stored task first, and a push config gets all events of the turn.
async fn poll_and_open(
    running: &mut BoxFuture<'_, SkillOutcome>,
    buffer: &mut WriteBuffer<'_>,
) -> Result<(), EngineError> {
    let first = (&mut *running).now_or_never();
    if !matches!(first, Some(SkillOutcome::Message(_))) && buffer.makes_task {
        buffer.open().await?;
    }
    if let Some(outcome) = first {
        // What the skill emitted before it returned is still in the inbox.
        *running = Box::pin(std::future::ready(outcome));
    }
    Ok(())
}

/// The skill's future. A panic in it fails the turn and not the process. The panic hook
/// has logged its place. Its text may hold content, so it goes nowhere.
fn guarded<'a>(
    skill: &'a dyn AnySkill,
    adapter: Option<&'a dyn SessionAdapter>,
    context: &'a mut TaskContext<'_>,
    start: TurnStart,
) -> BoxFuture<'a, SkillOutcome> {
    let turn = AssertUnwindSafe(async move {
        if let Some(adapter) = adapter {
            Box::pin(begin_session(context, adapter, skill.makes_task())).await;
        }
        let outcome = skill.turn(context, start).await;
        context.deliver(outcome).await
    });
    Box::pin(
        turn.catch_unwind()
            .map(|result| result.unwrap_or_else(|_| panicked())),
    )
}

fn panicked() -> SkillOutcome {
    SkillOutcome::Failed(AgentError::from(SkillPanicError))
}

/// A panic of a skill, as the private cause of its failure.
#[derive(Debug, thiserror::Error)]
#[error("the skill panicked")]
struct SkillPanicError;
