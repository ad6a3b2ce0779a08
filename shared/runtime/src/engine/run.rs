//! One turn of a skill: the same for every way a turn can be asked for.
//!
//! The skill's future, the commits and the clock are polled by one loop. What
//! the skill emits while a write is in flight goes into the next one; an event
//! is shown when its commit is acknowledged. Dropping the skill's future ends
//! the turn at once, since nothing of it runs elsewhere.

use super::commit::{Outcome as Write, Race};
use super::journal::Journal;
use super::sink::Sink;
use super::turn::{Ask, Turn};
use super::{Engine, EngineError};
use crate::skill::{AgentError, Content, TaskContext, TurnFacts};
use crate::skill::{AnySkill, Call, Outcome};
use crate::task::{Change, Message, Refusal, SavedSlot, TaskRecord, Timestamp};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use tokio::sync::mpsc;

/// A turn that is ready to run.
pub(super) struct Work {
    /// The task as stored; version 0 if it is not.
    pub(super) record: TaskRecord,
    /// What opens the turn: the message, the skill, the start.
    pub(super) opening: Vec<Change>,
    /// Whether the opening has to be stored before the skill runs.
    pub(super) force: bool,
    pub(super) job: Job,
    pub(super) facts: TurnFacts,
    /// When the invocation ends.
    pub(super) deadline: Option<Timestamp>,
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
}

/// How a turn ended.
#[derive(Debug)]
pub(super) enum Ended {
    /// The task is at rest, and stored so.
    Rested(TaskRecord),
    /// The skill answered with a message and no task was made.
    Message(Message),
    /// Another writer decided; the record as it stands.
    Lost(Option<TaskRecord>),
}

/// A write on its way.
type Writing<'a> = Option<BoxFuture<'a, Result<Write, EngineError>>>;

impl Engine {
    /// Runs the turn until the task rests or is taken away.
    ///
    /// # Errors
    /// When the opening cannot be stored; then nothing has happened. A later
    /// error of the store ends the turn and leaves the task to a takeover.
    pub(super) async fn run(&self, work: Work, sink: &mut Sink) -> Result<Ended, EngineError> {
        let (turn, inbox) = Turn::new(self, &work.record, &work.opening, work.deadline);
        let makes_task = match &work.job {
            Job::Skill(skill, _) => skill.makes_task(),
            Job::Ask { .. } => true,
        };
        let mut journal = Journal::new(self, work.record, work.opening, makes_task);
        if work.force && !journal.open(sink).await? {
            return Err(Refusal::TaskBusy.into());
        }
        let (skill, call) = match work.job {
            Job::Skill(skill, call) => (skill, call),
            Job::Ask { question, slot } => {
                let message = Content::from_text(question);
                let outcome = Outcome::InputRequired { message, slot };
                return journal.settle(outcome, turn.conversation(), sink).await;
            }
        };
        let mut context = TaskContext::new(&turn, &work.facts);
        let mut running = guarded(&*skill, &mut context, call);
        // A skill that answers at once with a message makes no task, not even
        // on a stream; any other stream shows the stored task first.
        if sink.is_stream() && !work.force {
            let first = (&mut running).now_or_never();
            if !matches!(first, Some(Outcome::Message(_))) && journal.makes_task {
                journal.open(sink).await?;
            }
            if let Some(outcome) = first {
                // What it has shown before it returned is still in the inbox.
                running = Box::pin(std::future::ready(outcome));
            }
        }
        let outcome = attend(&mut running, inbox, &mut journal, sink).await?;
        drop(running);
        let Some(outcome) = outcome else {
            turn.end();
            return Ok(Ended::Lost(journal.lost));
        };
        let ended = journal.settle(outcome, turn.conversation(), sink).await?;
        if let Ended::Rested(record) = &ended {
            self.completed(&*skill, &work.facts, record).await;
        }
        Ok(ended)
    }
}

/// Polls the skill, its asks, the write in flight and the clock until the skill
/// returns; `None` if the task was lost to another writer before.
async fn attend(
    skill: &mut BoxFuture<'_, Outcome>,
    mut inbox: mpsc::Receiver<Ask>,
    journal: &mut Journal<'_>,
    sink: &mut Sink,
) -> Result<Option<Outcome>, EngineError> {
    let engine = journal.engine;
    let mut writing: Writing<'_> = None;
    let outcome = loop {
        if writing.is_none() && journal.due() {
            let (base, changes) = journal.take();
            writing = Some(Box::pin(engine.commit(base, changes, None, Race::Reapply)));
        }
        let wake = journal.wakes_at().filter(|_| writing.is_none());
        tokio::select! {
            biased;
            written = finished(&mut writing) => {
                if !journal.stored(written?, sink).await? {
                    return Ok(None);
                }
            }
            Some(ask) = inbox.recv(), if !journal.full() => journal.note(ask),
            outcome = &mut *skill => break outcome,
            () = wake_up(engine, wake) => {}
        }
    };
    while let Ok(ask) = inbox.try_recv() {
        journal.note(ask);
    }
    if let Some(writing) = writing
        && !journal.stored(writing.await?, sink).await?
    {
        return Ok(None);
    }
    Ok(Some(outcome))
}

/// The answer of the write in flight; never, if there is none.
async fn finished(writing: &mut Writing<'_>) -> Result<Write, EngineError> {
    match writing {
        Some(write) => {
            let written = write.await;
            *writing = None;
            written
        }
        None => std::future::pending().await,
    }
}

async fn wake_up(engine: &Engine, at: Option<Timestamp>) {
    match at {
        Some(at) => engine.reader.clock.sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// The skill's future. A panic in it is a failed turn, not a dead process; what
/// it said goes to the log, never to the client.
fn guarded<'a>(
    skill: &'a dyn AnySkill,
    context: &'a mut TaskContext<'_>,
    call: Call,
) -> BoxFuture<'a, Outcome> {
    let turn = AssertUnwindSafe(async move { skill.turn(context, call).await });
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
