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
use super::host::TurnHandle;
use super::write_buffer::WriteBuffer;
use crate::engine::accept::context_status::ContextStatus;
use crate::engine::commit::send_key::SendKey;
use crate::engine::{Engine, EngineError};
use crate::skill::{AgentError, Content, TaskContext, TurnFacts};
use crate::skill::{AnySkill, SkillOutcome, TurnStart};
use crate::store::queue::Receipt;
use crate::task::{Change, Message, SavedSlot, TaskRecord, Timestamp};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

/// The least time reserved for a hand-over.
const MARGIN: Duration = Duration::from_secs(2);

/// A turn that is ready to run.
pub(in crate::engine) struct TurnSpec {
    /// The task as stored; version 0 if it is not stored yet.
    pub(in crate::engine) record: TaskRecord,
    /// The changes that open the turn: message, skill, start.
    pub(in crate::engine) opening: Vec<Change>,
    /// The idempotency key of the send, stored with the opening.
    pub(in crate::engine) key: Option<SendKey>,
    /// Whether the opening must be stored before the skill runs.
    pub(in crate::engine) force: bool,
    pub(in crate::engine) job: TurnInput,
    pub(in crate::engine) facts: TurnFacts,
    /// The context as found when the message was accepted; `None` if no message opened
    /// the turn.
    pub(in crate::engine) standing: Option<ContextStatus>,
    /// Whether a worker runs the turn instead.
    pub(in crate::engine) queued: bool,
    /// The time from which no new step may start here.
    pub(in crate::engine) stop_at: Option<Timestamp>,
    /// When the invocation ends.
    pub(in crate::engine) deadline: Option<Timestamp>,
    /// When the caller gets its response, even if the turn has not ended.
    pub(in crate::engine) waits_until: Option<Timestamp>,
}

impl TurnSpec {
    /// Whether the thread state had expired when the message arrived.
    pub(in crate::engine) fn is_reset(&self) -> bool {
        self.standing.as_ref().is_some_and(|it| it.reset)
    }
}

/// What a turn does.
pub(in crate::engine) enum TurnInput {
    /// A skill runs.
    Skill(Arc<dyn AnySkill>, TurnStart),
    /// The router asks the client which skill is meant.
    Ask {
        /// The question.
        question: String,
        /// The candidate skills.
        slot: SavedSlot,
    },
    /// The stored turn cannot be resumed: its task fails.
    Fail(AgentError),
}

impl TurnInput {
    /// Whether the turn makes a task, whatever its outcome.
    pub(in crate::engine) fn makes_task(&self) -> bool {
        match self {
            Self::Skill(skill, _) => skill.makes_task(),
            Self::Ask { .. } | Self::Fail(_) => true,
        }
    }
}

/// How a turn ended.
#[derive(Debug)]
pub(in crate::engine) enum TurnEnd {
    /// The task is at rest, and stored.
    Stopped(TaskRecord),
    /// The skill answered with a message; no task was made.
    Message(Message),
    /// The turn was handed over to another invocation.
    HandedOver(TaskRecord),
    /// Another writer has the task; the record as it is stored now.
    Superseded(Option<TaskRecord>),
    /// An earlier send has the idempotency key; its task.
    Duplicate(TaskRecord),
}

impl Engine {
    /// Runs the turn until the task rests, another writer takes it, or the turn is
    /// handed over. `receipt` is that of the queue message that brought the turn to a
    /// worker.
    ///
    /// # Errors
    /// When the opening cannot be stored; then nothing has changed. A later store error
    /// ends the turn and leaves the task to a takeover.
    pub(in crate::engine) async fn run(
        &self,
        work: TurnSpec,
        receipt: Option<&dyn Receipt>,
        sink: &mut EventSink,
    ) -> Result<TurnEnd, EngineError> {
        let (turn, inbox) = TurnHandle::new(self, &work);
        let makes_task = work.job.makes_task();
        let watched = sink.is_stream() || work.opening.iter().any(registers_push);
        let opens = work.standing.and_then(|standing| standing.opens);
        let mut journal =
            WriteBuffer::new(self, work.record, work.opening, makes_task, work.deadline)
                .opening(opens);
        if work.force
            && let Some(first) = journal.open_as(work.key, sink).await?
        {
            return Ok(TurnEnd::Duplicate(first));
        }
        let (skill, call) = match work.job {
            TurnInput::Skill(skill, call) => (skill, call),
            TurnInput::Ask { question, slot } => {
                let message = Content::from_text(question);
                let outcome = SkillOutcome::InputRequired { message, slot };
                return Box::pin(journal.finish_turn(outcome, turn.conversation(), sink)).await;
            }
            TurnInput::Fail(error) => {
                let outcome = SkillOutcome::Failed(error);
                return Box::pin(journal.finish_turn(outcome, turn.conversation(), sink)).await;
            }
        };
        let mut context = TaskContext::new(&turn, &work.facts);
        let mut running = guarded(&*skill, &mut context, call);
        // A skill that returns a message on its first poll makes no task, even on a
        // stream. Any other stream shows the stored task first, and a push config gets
        // all events of the turn.
        if watched && !work.force {
            let first = (&mut running).now_or_never();
            if !matches!(first, Some(SkillOutcome::Message(_))) && journal.makes_task {
                journal.open(sink).await?;
            }
            if let Some(outcome) = first {
                // What the skill emitted before it returned is still in the inbox.
                running = Box::pin(std::future::ready(outcome));
            }
        }
        let mut pulse = Heartbeat::new(self, receipt, work.deadline, sink.is_stream());
        let stop_at = work.stop_at;
        let attended = drive(&mut running, inbox, &mut journal, &mut pulse, stop_at, sink).await;
        // INVARIANT: the skill's future is dropped before the turn is handed over, so
        // that a hand-over never makes two runs of one turn overlap.
        drop(running);
        let outcome = match attended {
            Ok(LoopEnd::Returned(outcome)) => outcome,
            Ok(LoopEnd::Lost) => {
                turn.end();
                return Ok(TurnEnd::Superseded(journal.lost));
            }
            Ok(LoopEnd::TimeUp) if journal.can_go_on() => {
                return Box::pin(journal.hand_over(sink)).await;
            }
            Ok(LoopEnd::TimeUp) => SkillOutcome::Failed(AgentError::deadline()),
            Err(error) if too_large(&error) => SkillOutcome::Failed(journal.overflow()),
            Err(error) => return Err(error),
        };
        let ended = Box::pin(journal.finish_turn(outcome, turn.conversation(), sink)).await?;
        if let TurnEnd::Stopped(record) = &ended {
            self.completed(&*skill, &work.facts, record).await;
        }
        Ok(ended)
    }

    /// Stores a turn for a worker and returns its task. If an earlier send has the
    /// idempotency key, this is the task of that send.
    pub(in crate::engine) async fn enqueue(
        &self,
        work: TurnSpec,
        sink: &mut EventSink,
    ) -> Result<TaskRecord, EngineError> {
        let opens = work.standing.and_then(|standing| standing.opens);
        let mut journal =
            WriteBuffer::new(self, work.record, work.opening, true, work.deadline).opening(opens);
        let repeated = journal.open_as(work.key, sink).await?;
        Ok(repeated.unwrap_or(journal.record))
    }

    /// When a turn must stop so that it can be handed over before the invocation ends:
    /// a tenth of the time left (at least 2 s) plus 2 s early. A running step may use
    /// the 2 s.
    pub(in crate::engine) fn stop_at(&self, deadline: Option<Timestamp>) -> Option<Timestamp> {
        let deadline = deadline?;
        let now = self.reader.clock.now();
        let margin = (deadline.since(now) / 10).max(MARGIN);
        Some(now.plus(deadline.since(now).saturating_sub(margin + MARGIN)))
    }
}

const fn registers_push(change: &Change) -> bool {
    matches!(change, Change::RegisterPush(_))
}

/// The skill's future. A panic in it fails the turn and not the process. The panic's
/// text is logged and never sent to the client.
fn guarded<'a>(
    skill: &'a dyn AnySkill,
    context: &'a mut TaskContext<'_>,
    call: TurnStart,
) -> BoxFuture<'a, SkillOutcome> {
    let turn = AssertUnwindSafe(async move {
        let outcome = skill.turn(context, call).await;
        context.deliver(outcome).await
    });
    Box::pin(
        turn.catch_unwind()
            .map(|done| done.unwrap_or_else(|panic| panicked(&*panic))),
    )
}

fn panicked(panic: &(dyn std::any::Any + Send)) -> SkillOutcome {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    SkillOutcome::Failed(AgentError::from(SkillPanicError(
        text.unwrap_or("no text").to_owned(),
    )))
}

/// A panic of a skill, as the private cause of its failure.
#[derive(Debug, thiserror::Error)]
#[error("the skill panicked: {0}")]
struct SkillPanicError(String);
