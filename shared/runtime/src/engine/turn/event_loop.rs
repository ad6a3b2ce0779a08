//! The event loop of a turn: polls the skill, its requests, the write in flight, the
//! heartbeat and the clock together.

use super::commit::{Outcome as Write, Race};
use super::journal::Journal;
use super::pulse::Pulse;
use super::sink::Sink;
use super::turn::Ask;
use super::{Engine, EngineError};
use crate::skill::Outcome;
use crate::task::Timestamp;
use futures::future::BoxFuture;
use std::time::Duration;
use tokio::sync::mpsc;

/// How long a step may still run after the time to stop.
const GRACE: Duration = Duration::from_secs(2);

/// How the event loop of a turn ended.
pub(super) enum Attended {
    /// The skill returned.
    Returned(Outcome),
    /// Another writer has the task.
    Lost,
    /// The time is up: a worker continues the turn.
    TimeUp,
}

/// The write in flight, if there is one.
type Writing<'a> = Option<BoxFuture<'a, Result<Write, EngineError>>>;

/// Polls everything until the skill returns, another writer has the task or the time is
/// up. Then it applies the requests the skill has already sent and waits for the write in
/// flight.
///
/// # Errors
/// When the store fails.
pub(super) async fn attend(
    skill: &mut BoxFuture<'_, Outcome>,
    mut inbox: mpsc::Receiver<Ask>,
    journal: &mut Journal<'_>,
    pulse: &mut Pulse<'_>,
    stop_at: Option<Timestamp>,
    sink: &mut Sink,
) -> Result<Attended, EngineError> {
    let engine = journal.engine;
    let last = stop_at.map(|at| at.plus(GRACE));
    let mut writing: Writing<'_> = None;
    let ended = loop {
        // One write at a time: what arrives meanwhile goes into the next one.
        if writing.is_none() && journal.due() {
            let (base, changes) = journal.take();
            let opens = journal.take_opens(&base, &changes);
            let commit = engine.commit_opening(base, changes, (opens, None), Race::Reapply);
            writing = Some(Box::pin(commit));
        }
        let wake = journal.wakes_at().filter(|_| writing.is_none());
        tokio::select! {
            // Without `biased` the order is random, and the simulation could not replay a
            // run.
            biased;
            written = finished(&mut writing) => {
                if !journal.stored(written?, sink).await? {
                    return Ok(Attended::Lost);
                }
            }
            alive = pulse.beat(&journal.record) => {
                if !alive {
                    // Another writer has the task: the fresh record holds its decision.
                    journal.reload().await?;
                    return Ok(Attended::Lost);
                }
            }
            // A full write buffer is back-pressure: the skill waits until a write is
            // stored.
            Some(ask) = inbox.recv(), if !journal.full() => match ask {
                Ask::Stop => break Attended::TimeUp,
                ask => journal.note(ask),
            },
            outcome = &mut *skill => break Attended::Returned(outcome),
            () = wake_up(engine, last) => break Attended::TimeUp,
            () = wake_up(engine, wake) => {}
        }
    };
    // What the skill sent before it ended belongs to the turn.
    while let Ok(ask) = inbox.try_recv() {
        journal.note(ask);
    }
    if let Some(writing) = writing
        && !journal.stored(writing.await?, sink).await?
    {
        return Ok(Attended::Lost);
    }
    Ok(ended)
}

/// Waits for the write in flight; never returns if there is none.
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

/// Returns at `at`; never returns if it is `None`.
pub(super) async fn wake_up(engine: &Engine, at: Option<Timestamp>) {
    match at {
        Some(at) => engine.reader.clock.sleep_until(at).await,
        None => std::future::pending().await,
    }
}
