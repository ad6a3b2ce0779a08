//! The loop of a running turn: the skill, what it asks, the write in flight,
//! the signs of life and the clock, polled together.

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

/// How long a step may go on after the time to stop.
const GRACE: Duration = Duration::from_secs(2);

/// How the running of a turn ended.
pub(super) enum Attended {
    /// The skill returned.
    Returned(Outcome),
    /// Another writer has the task.
    Lost,
    /// The time is up: the turn goes on elsewhere.
    TimeUp,
}

/// A write on its way.
type Writing<'a> = Option<BoxFuture<'a, Result<Write, EngineError>>>;

/// Polls everything until the skill returns, the task is lost or the time is
/// up. What the skill has asked by then is noted, and what was being written is
/// stored.
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
        if writing.is_none() && journal.due() {
            let (base, changes) = journal.take();
            let opens = journal.take_opens(&base, &changes);
            let commit = engine.commit_opening(base, changes, (opens, None), Race::Reapply);
            writing = Some(Box::pin(commit));
        }
        let wake = journal.wakes_at().filter(|_| writing.is_none());
        tokio::select! {
            biased;
            written = finished(&mut writing) => {
                if !journal.stored(written?, sink).await? {
                    return Ok(Attended::Lost);
                }
            }
            alive = pulse.beat(&journal.record) => {
                if !alive {
                    journal.reload().await?;
                    return Ok(Attended::Lost);
                }
            }
            Some(ask) = inbox.recv(), if !journal.full() => match ask {
                Ask::Stop => break Attended::TimeUp,
                ask => journal.note(ask),
            },
            outcome = &mut *skill => break Attended::Returned(outcome),
            () = wake_up(engine, last) => break Attended::TimeUp,
            () = wake_up(engine, wake) => {}
        }
    };
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

/// Returns at `at`; never, if there is no such time.
pub(super) async fn wake_up(engine: &Engine, at: Option<Timestamp>) {
    match at {
        Some(at) => engine.reader.clock.sleep_until(at).await,
        None => std::future::pending().await,
    }
}
