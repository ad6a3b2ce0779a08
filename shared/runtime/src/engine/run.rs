//! One turn of a skill: the same for every way a turn can be asked for.
//!
//! The skill's future, the commits and the clock are polled by one loop. What
//! the skill emits while a write is in flight goes into the next one; an event
//! is shown when its commit is acknowledged. Dropping the skill's future ends
//! the turn at once, since nothing of it runs elsewhere.

use super::attend::{Attended, attend};
use super::context::Standing;
use super::idempotent::SendKey;
use super::journal::Journal;
use super::pulse::Pulse;
use super::settle::too_large;
use super::sink::Sink;
use super::turn::Turn;
use super::{Engine, EngineError};
use crate::skill::{AgentError, Content, TaskContext, TurnFacts};
use crate::skill::{AnySkill, Call, Outcome};
use crate::store::queue::Receipt;
use crate::task::{Change, Message, SavedSlot, TaskRecord, Timestamp};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

/// The least time kept for giving a turn away.
const MARGIN: Duration = Duration::from_secs(2);

/// A turn that is ready to run.
pub(super) struct Work {
    /// The task as stored; version 0 if it is not.
    pub(super) record: TaskRecord,
    /// What opens the turn: the message, the skill, the start.
    pub(super) opening: Vec<Change>,
    /// The idempotency key of the send, stored with the opening.
    pub(super) key: Option<SendKey>,
    /// Whether the opening has to be stored before the skill runs.
    pub(super) force: bool,
    pub(super) job: Job,
    pub(super) facts: TurnFacts,
    /// How the conversation stands, when a message opened the turn.
    pub(super) standing: Option<Standing>,
    /// Whether a worker is asked for instead.
    pub(super) queued: bool,
    /// When no new step may start here.
    pub(super) stop_at: Option<Timestamp>,
    /// When the invocation ends.
    pub(super) deadline: Option<Timestamp>,
    /// When the caller is answered, whether the turn has ended or not.
    pub(super) waits_until: Option<Timestamp>,
}

impl Work {
    /// Whether the state of the conversation was gone when the message came.
    pub(super) fn is_reset(&self) -> bool {
        self.standing.as_ref().is_some_and(|it| it.reset)
    }
}

/// What a turn does.
pub(super) enum Job {
    /// A skill works.
    Skill(Arc<dyn AnySkill>, Call),
    /// The router asks which skill is meant.
    Ask {
        /// The question.
        question: String,
        /// The skills it may be.
        slot: SavedSlot,
    },
    /// The stored turn cannot be taken up.
    Fail(AgentError),
}

impl Job {
    /// Whether there is a task for it, whatever comes of it.
    pub(super) fn makes_task(&self) -> bool {
        match self {
            Self::Skill(skill, _) => skill.makes_task(),
            Self::Ask { .. } | Self::Fail(_) => true,
        }
    }
}

/// How a turn ended.
#[derive(Debug)]
pub(super) enum Ended {
    /// The task is at rest, and stored so.
    Rested(TaskRecord),
    /// The skill answered with a message and no task was made.
    Message(Message),
    /// The turn goes on in another invocation, which is asked for.
    HandedOver(TaskRecord),
    /// Another writer decided; the record as it stands.
    Lost(Option<TaskRecord>),
    /// The same send was taken meanwhile, under its idempotency key: its task.
    Repeated(TaskRecord),
}

impl Engine {
    /// Runs the turn until the task rests, is taken away, or goes on elsewhere.
    /// `receipt` is the message a worker took the turn by.
    ///
    /// # Errors
    /// When the opening cannot be stored; then nothing has happened. A later
    /// error of the store ends the turn and leaves the task to a takeover.
    pub(super) async fn run(
        &self,
        work: Work,
        receipt: Option<&dyn Receipt>,
        sink: &mut Sink,
    ) -> Result<Ended, EngineError> {
        let (turn, inbox) = Turn::new(self, &work);
        let makes_task = work.job.makes_task();
        let watched = sink.is_stream() || work.opening.iter().any(listens);
        let opens = work.standing.and_then(|standing| standing.opens);
        let mut journal =
            Journal::new(self, work.record, work.opening, makes_task, work.deadline).opening(opens);
        if work.force
            && let Some(first) = journal.open_as(work.key, sink).await?
        {
            return Ok(Ended::Repeated(first));
        }
        let (skill, call) = match work.job {
            Job::Skill(skill, call) => (skill, call),
            Job::Ask { question, slot } => {
                let message = Content::from_text(question);
                let outcome = Outcome::InputRequired { message, slot };
                return Box::pin(journal.settle(outcome, turn.conversation(), sink)).await;
            }
            Job::Fail(error) => {
                let outcome = Outcome::Failed(error);
                return Box::pin(journal.settle(outcome, turn.conversation(), sink)).await;
            }
        };
        let mut context = TaskContext::new(&turn, &work.facts);
        let mut running = guarded(&*skill, &mut context, call);
        // A skill that answers at once with a message makes no task, not even
        // on a stream; any other stream shows the stored task first, and a
        // webhook hears of it from the beginning.
        if watched && !work.force {
            let first = (&mut running).now_or_never();
            if !matches!(first, Some(Outcome::Message(_))) && journal.makes_task {
                journal.open(sink).await?;
            }
            if let Some(outcome) = first {
                // What it has shown before it returned is still in the inbox.
                running = Box::pin(std::future::ready(outcome));
            }
        }
        let mut pulse = Pulse::new(self, receipt, work.deadline, sink.is_stream());
        let stop_at = work.stop_at;
        let attended = attend(&mut running, inbox, &mut journal, &mut pulse, stop_at, sink).await;
        // INVARIANT: the skill is gone before the turn is given away, so that it
        // never runs twice at once on our own account.
        drop(running);
        let outcome = match attended {
            Ok(Attended::Returned(outcome)) => outcome,
            Ok(Attended::Lost) => {
                turn.end();
                return Ok(Ended::Lost(journal.lost));
            }
            Ok(Attended::TimeUp) if journal.can_go_on() => {
                return Box::pin(journal.hand_over(sink)).await;
            }
            Ok(Attended::TimeUp) => Outcome::Failed(AgentError::deadline()),
            Err(error) if too_large(&error) => Outcome::Failed(journal.overflow()),
            Err(error) => return Err(error),
        };
        let ended = Box::pin(journal.settle(outcome, turn.conversation(), sink)).await?;
        if let Ended::Rested(record) = &ended {
            self.completed(&*skill, &work.facts, record).await;
        }
        Ok(ended)
    }

    /// Stores a turn for a worker; gives its task, which is another one if the
    /// same send was taken meanwhile, under its idempotency key.
    pub(super) async fn enqueue(
        &self,
        work: Work,
        sink: &mut Sink,
    ) -> Result<TaskRecord, EngineError> {
        let opens = work.standing.and_then(|standing| standing.opens);
        let mut journal =
            Journal::new(self, work.record, work.opening, true, work.deadline).opening(opens);
        let repeated = journal.open_as(work.key, sink).await?;
        Ok(repeated.unwrap_or(journal.record))
    }

    /// When a turn has to stop so that it can be given away before the
    /// invocation ends: a tenth of the time left, at least two seconds, early.
    pub(super) fn stop_at(&self, deadline: Option<Timestamp>) -> Option<Timestamp> {
        let deadline = deadline?;
        let now = self.reader.clock.now();
        let margin = (deadline.since(now) / 10).max(MARGIN);
        Some(now.plus(deadline.since(now).saturating_sub(margin + MARGIN)))
    }
}

const fn listens(change: &Change) -> bool {
    matches!(change, Change::Listen(_))
}

/// The skill's future. A panic in it is a failed turn, not a dead process; what
/// it said goes to the log, never to the client.
fn guarded<'a>(
    skill: &'a dyn AnySkill,
    context: &'a mut TaskContext<'_>,
    call: Call,
) -> BoxFuture<'a, Outcome> {
    let turn = AssertUnwindSafe(async move {
        let outcome = skill.turn(context, call).await;
        context.deliver(outcome).await
    });
    Box::pin(
        turn.catch_unwind()
            .map(|done| done.unwrap_or_else(|panic| panicked(&*panic))),
    )
}

fn panicked(panic: &(dyn std::any::Any + Send)) -> Outcome {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    Outcome::Failed(AgentError::from(SkillPanic(
        text.unwrap_or("no text").to_owned(),
    )))
}

/// A panic of a skill, as the private cause of its failure.
#[derive(Debug, thiserror::Error)]
#[error("the skill panicked: {0}")]
struct SkillPanic(String);
