//! The event loop of a turn: polls the skill, its requests, the write in flight, the
//! heartbeat and the clock together.

use super::command::SkillCommand;
use super::heartbeat::Heartbeat;
use super::skill_future::SkillFuture;
use super::skill_host::TurnHandle;
use super::write_buffer::WriteBuffer;
use crate::clock::wake_up;
use crate::engine::commit::CommitOutcome;
use crate::engine::error::EngineError;
use crate::engine::turn_break::TurnBreak;
use a2a_lambda_skill::SkillOutcome;
use futures::future::BoxFuture;
use futures::{FutureExt as _, TryFutureExt as _};
use std::pin::pin;
use std::time::Duration;
use tokio::sync::mpsc;

/// After how long a skill counts as stuck that only a result could wake.
const STUCK: Duration = Duration::from_secs(600);

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

/// The write in flight, if there is one: a commit, or without an outcome what its task needs
/// before.
type PendingWrite<'a> = Option<BoxFuture<'a, Result<Option<CommitOutcome>, EngineError>>>;

/// Polls everything until the skill returns, another writer has the task or the time is
/// up. Then it applies the requests the skill has already sent and waits for the write in
/// flight.
pub(in crate::engine) async fn drive(
    skill: &mut SkillFuture<'_>,
    turn: &TurnHandle<'_>,
    mut inbox: mpsc::UnboundedReceiver<SkillCommand>,
    buffer: &mut WriteBuffer<'_>,
    heartbeat: &mut Heartbeat<'_>,
) -> Result<LoopEnd, EngineError> {
    let turns = buffer.turns;
    let last = turn.turn_thread.stop_at.map(|at| at.plus(GRACE));
    // The context learns of the task while the skill runs, so a short send waits for it no
    // longer. A skill that makes no task may answer with a message.
    let mut writing = buffer.makes_task.then(|| pending_link(buffer)).flatten();
    let mut stop = pin!(turn.brake.wait(&turn.scopes));
    let end = loop {
        // One write at a time: what arrives meanwhile goes into the next one.
        if writing.is_none() && buffer.due() {
            writing = pending_link(buffer).or_else(|| {
                let write = buffer.write_next(&turn.turn_thread);
                Some(write.map_ok(Some).boxed())
            });
        }
        let wake = buffer.wakes_at().filter(|_| writing.is_none());
        let stuck = turn.stuck();
        let stuck_at = stuck.as_ref().map(|_| skill.woken_at.plus(STUCK));
        tokio::select! {
            // Without `biased` the order is random, and the simulation could not replay a
            // run.
            biased;
            result = await_write(&mut writing) => {
                if let Some(outcome) = result? && !buffer.handle_outcome(outcome).await? {
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
            reason = turn.signal.wait() => break LoopEnd::Broken(reason),
            // A full write buffer is back-pressure: the skill waits until a write is
            // stored.
            Some(command) = inbox.recv(), if !buffer.full() => match command {
                SkillCommand::Stop => break LoopEnd::TimeUp,
                command => buffer.note(command),
            },
            outcome = &mut *skill => break LoopEnd::Returned(outcome),
            refusal = &mut stop => break LoopEnd::Broken(TurnBreak::Braked(refusal)),
            () = wake_up(&*turns.reader.clock, last) => break LoopEnd::TimeUp,
            () = wake_up(&*turns.reader.clock, wake) => {}
            () = wake_up(&*turns.reader.clock, stuck_at) => if let Some(changed) = stuck {
                break LoopEnd::Broken(TurnBreak::Changed(changed));
            },
        }
    };
    // What the skill sent before it ended belongs to the turn.
    while let Ok(command) = inbox.try_recv() {
        buffer.note(command);
    }
    if let Some(writing) = writing
        && let Some(outcome) = writing.await?
        && !buffer.handle_outcome(outcome).await?
    {
        return Ok(LoopEnd::Lost);
    }
    Ok(end)
}

/// What has to be stored before the task, as a write in flight.
fn pending_link<'e>(buffer: &mut WriteBuffer<'e>) -> PendingWrite<'e> {
    let placement = buffer.context_link(false)?;
    Some(placement.map_ok(|()| None).boxed())
}

/// Waits for the write in flight; never returns if there is none.
async fn await_write(writing: &mut PendingWrite<'_>) -> Result<Option<CommitOutcome>, EngineError> {
    match writing {
        Some(write) => {
            let result = write.await;
            *writing = None;
            result
        }
        None => std::future::pending().await,
    }
}
