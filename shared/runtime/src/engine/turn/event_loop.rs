//! The event loop of a turn: polls the skill, its requests, the write in flight, the
//! heartbeat and the clock together.

use super::command::SkillCommand;
use super::heartbeat::Heartbeat;
use super::skill_host::TurnHandle;
use super::turn_break::TurnBreak;
use super::write_buffer::WriteBuffer;
use crate::engine::EngineError;
use crate::engine::budget::TurnBudget;
use crate::engine::clock::wake_up;
use crate::engine::commit::CommitOutcome;
use crate::skill::SkillOutcome;
use futures::future::BoxFuture;
use std::time::Duration;
use tokio::sync::mpsc;

/// How long a step may still run after the time to stop.
const GRACE: Duration = Duration::from_secs(2);

/// How the event loop of a turn ended.
pub(in crate::engine) enum LoopEnd {
    /// The skill returned.
    Returned(SkillOutcome),
    /// Another writer has the task.
    Lost,
    /// The time is up: a worker continues the turn.
    TimeUp,
    /// The turn ends without the return value of its skill.
    Broken(TurnBreak),
}

/// The write in flight, if there is one.
type PendingWrite<'a> = Option<BoxFuture<'a, Result<CommitOutcome, EngineError>>>;

/// Polls everything until the skill returns, another writer has the task or the time is
/// up. Then it applies the requests the skill has already sent and waits for the write in
/// flight.
///
/// # Errors
/// When the store fails.
pub(in crate::engine) async fn drive(
    skill: &mut BoxFuture<'_, SkillOutcome>,
    turn: &TurnHandle<'_>,
    mut inbox: mpsc::Receiver<SkillCommand>,
    buffer: &mut WriteBuffer<'_>,
    heartbeat: &mut Heartbeat<'_>,
    budget: TurnBudget,
) -> Result<LoopEnd, EngineError> {
    let engine = buffer.engine;
    let last = budget.stop_at.map(|at| at.plus(GRACE));
    let mut writing: PendingWrite<'_> = None;
    let ended = loop {
        // One write at a time: what arrives meanwhile goes into the next one.
        if writing.is_none() && buffer.due() {
            let commit = buffer.next_turn_commit();
            writing = Some(Box::pin(turn.turn_thread().commit(commit)));
        }
        let wake = buffer.wakes_at().filter(|_| writing.is_none());
        tokio::select! {
            // Without `biased` the order is random, and the simulation could not replay a
            // run.
            biased;
            written = finished(&mut writing) => {
                if !buffer.stored(written?).await? {
                    return Ok(LoopEnd::Lost);
                }
            }
            alive = heartbeat.tick(&buffer.record) => {
                if !alive {
                    // Another writer has the task: the fresh record holds its decision.
                    buffer.reload().await?;
                    return Ok(LoopEnd::Lost);
                }
            }
            reason = turn.broken() => break LoopEnd::Broken(reason),
            // A full write buffer is back-pressure: the skill waits until a write is
            // stored.
            Some(ask) = inbox.recv(), if !buffer.full() => match ask {
                SkillCommand::Stop => break LoopEnd::TimeUp,
                ask => buffer.note(ask),
            },
            outcome = &mut *skill => break LoopEnd::Returned(outcome),
            () = wake_up(&*engine.reader.clock, last) => break LoopEnd::TimeUp,
            () = wake_up(&*engine.reader.clock, wake) => {}
        }
    };
    // What the skill sent before it ended belongs to the turn.
    while let Ok(ask) = inbox.try_recv() {
        buffer.note(ask);
    }
    if let Some(writing) = writing
        && !buffer.stored(writing.await?).await?
    {
        return Ok(LoopEnd::Lost);
    }
    Ok(ended)
}

/// Waits for the write in flight; never returns if there is none.
async fn finished(writing: &mut PendingWrite<'_>) -> Result<CommitOutcome, EngineError> {
    match writing {
        Some(write) => {
            let written = write.await;
            *writing = None;
            written
        }
        None => std::future::pending().await,
    }
}
