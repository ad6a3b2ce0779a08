//! Runs the invocations of a message: the call, and the workers that continue its turn.

use super::store::Hold;
use super::{SkillTest, SkillTestError, cancel};
use crate::auth::Caller;
use crate::engine::{CallBudget, Clock as _, Leases};
use crate::store::StoreError;
use crate::store::queue::{Receipt, WorkItem, WorkMessage, WorkQueue};
use crate::task::{Frame, SendCommand, TaskId, TaskRecord};
use async_trait::async_trait;
use futures::FutureExt as _;
use std::future::Future;
use std::pin::pin;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// The most workers that continue one turn.
const WORKERS: u32 = 64;
/// The sweep takes a turn over this long after its lease, and a little later.
const AFTER_LEASE: Duration = Duration::from_secs(60);

/// What happens to a turn while it runs.
#[derive(Debug, Clone, Copy)]
pub(super) enum Interruption {
    /// Its task is cancelled after so many events.
    CancelAfter(u64),
    /// Its process dies after the skill has stored so many things.
    CrashAfter(u64),
    /// Its process dies before the skill has stored so many things.
    CrashBefore(u64),
}

/// How an invocation ended.
enum InvocationEnd<T> {
    /// By itself.
    Done(T),
    /// A worker has to continue the turn, or to begin it.
    Left(TaskId),
}

impl SkillTest {
    /// Runs the turn of a message in a call, and as long as it is not at rest in workers.
    /// Returns the frames of the call.
    ///
    /// # Errors
    /// Those of [`SkillTest::send`].
    pub(super) async fn invoke(
        &self,
        command: SendCommand,
        interruption: Option<Interruption>,
    ) -> Result<(Vec<Frame>, Option<TaskId>), SkillTestError> {
        let (caller, engine) = (self.calling()?, self.engine());
        let mut hold = interruption.map(|it| (it, self.store.hold(it)));
        let queue_signal = self.store.when_queued();
        let (frames, mut receiver) = mpsc::unbounded_channel();
        let turn = Box::pin(engine.stream(&caller, command, self.budget(), frames));
        let end = self
            .watched(&caller, &mut hold, Some(queue_signal), turn)
            .await?;
        let task_id = match end {
            InvocationEnd::Done(result) => {
                result?;
                None
            }
            InvocationEnd::Left(id) => {
                self.workers(&caller, &mut hold, &id).await?;
                Some(id)
            }
        };
        if let Some((Interruption::CrashAfter(things) | Interruption::CrashBefore(things), _)) =
            hold
        {
            return Err(SkillTestError::NoCrash { things });
        }
        let mut frames = Vec::new();
        while let Ok(frame) = receiver.try_recv() {
            frames.push(frame);
        }
        Ok((frames, task_id))
    }

    fn budget(&self) -> CallBudget {
        CallBudget::until(
            self.time_left
                .map(|duration| self.clock.now().plus(duration)),
        )
    }

    /// Runs `future` until it ends, its turn goes to a queue, or its process dies.
    async fn watched<T>(
        &self,
        caller: &Caller,
        hold: &mut Option<(Interruption, Hold)>,
        queue_signal: Option<oneshot::Receiver<TaskId>>,
        future: impl Future<Output = T>,
    ) -> Result<InvocationEnd<T>, SkillTestError> {
        let mut future = pin!(future);
        let mut queue_signal = pin!(received(queue_signal));
        loop {
            let stop_signal = received(hold.as_mut().map(|(_, hold)| &mut hold.signal));
            let id = tokio::select! {
                biased;
                id = &mut queue_signal => return Ok(InvocationEnd::Left(id)),
                id = stop_signal => id,
                result = &mut future => {
                    // A stream may end in the moment in which its turn goes to a queue.
                    let queue_signal = queue_signal.now_or_never();
                    return Ok(queue_signal.map_or(InvocationEnd::Done(result), InvocationEnd::Left));
                }
            };
            match hold.take() {
                Some((Interruption::CancelAfter(_), hold)) => {
                    self.engine().tasks.cancel(caller, &cancel(id)).await?;
                    // The send fails when the turn has ended meanwhile: nothing to release.
                    let _gone = hold.go_on.send(());
                }
                // The future of the turn is dropped, as a process that dies drops it.
                Some(_) | None => {
                    return Ok(InvocationEnd::Left(id));
                }
            }
        }
    }

    /// Runs workers until the task is at rest. Their time is that of the bench's clock.
    async fn workers(
        &self,
        caller: &Caller,
        hold: &mut Option<(Interruption, Hold)>,
        id: &TaskId,
    ) -> Result<(), SkillTestError> {
        for _ in 0..WORKERS {
            let engine = self.engine();
            let Some(record) = self.stored(caller, id).await? else {
                return Ok(());
            };
            if record.state().is_at_rest() {
                return Ok(());
            }
            if let Some(at) = record.not_before {
                // An outage ended its last run.
                let now = self.clock.now();
                self.clock.advance(at.since(now));
            }
            let Some(dispatch) = record.dispatch() else {
                // Its process died: the sweep notices it when the lease has ended.
                self.clock
                    .advance(engine.reader().policy.lease + AFTER_LEASE);
                engine.sweeper.sweep(&Dropped, Leases::Respect).await?;
                continue;
            };
            let item = WorkItem {
                owner: record.owner.clone(),
                task: id.clone(),
                incarnation: record.incarnation.clone(),
                turn: record.turn,
                dispatch,
            };
            let deadline = self
                .time_left
                .map(|duration| self.clock.now().plus(duration));
            let future = Box::pin(engine.turns.work(&item, &Unhidden, deadline));
            self.watched(caller, hold, None, future).await?;
        }
        Err(SkillTestError::NeverRests { workers: WORKERS })
    }

    /// The task as it is stored.
    pub(super) async fn stored(
        &self,
        caller: &Caller,
        id: &TaskId,
    ) -> Result<Option<TaskRecord>, SkillTestError> {
        let now = self.clock.now();
        let result = self.store.records.load(&caller.owner, id, now).await;
        Ok(result.map_err(crate::engine::EngineError::from)?)
    }

    /// The names of the stored steps of the current task.
    #[cfg(test)]
    pub(crate) async fn steps(&self) -> Vec<String> {
        let id = self.task.clone().unwrap();
        let record = self.stored(&self.calling().unwrap(), &id).await;
        let record = record.unwrap().unwrap();
        record.saved.steps.keys().cloned().collect()
    }
}

/// The value, when it comes; never without a sender.
async fn received<R>(receiver: Option<R>) -> TaskId
where
    R: Future<Output = Result<TaskId, oneshot::error::RecvError>>,
{
    if let Some(receiver) = receiver
        && let Ok(id) = receiver.await
    {
        return id;
    }
    std::future::pending().await
}

/// A queue without memory: the bench reads from the task which turn has to run.
struct Dropped;

#[async_trait]
impl WorkQueue for Dropped {
    async fn send(&self, messages: &[WorkMessage]) -> Result<Vec<bool>, StoreError> {
        Ok(vec![true; messages.len()])
    }

    async fn waiting(&self) -> Result<usize, StoreError> {
        Ok(0)
    }
}

/// A receipt of a message that no other worker can see.
struct Unhidden;

#[async_trait]
impl Receipt for Unhidden {
    async fn hide(&self, _: Duration) -> Result<(), StoreError> {
        Ok(())
    }
}
