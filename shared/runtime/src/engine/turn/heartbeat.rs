//! Sends heartbeats: a running turn extends its lease, and finds out when it has lost
//! its task.
//!
//! The lease only permits a takeover; incarnation and version decide every write. A
//! late or lost heartbeat can therefore waste work, but never damage a task.

use crate::engine::budget::TurnBudget;
use crate::engine::commit::Commits;
use crate::store::StoreError;
use crate::store::queue::Receipt;
use crate::task::{TaskRecord, TaskState, Timestamp};
use futures::future::BoxFuture;
use std::time::Duration;

/// How often a turn with an open stream checks whether its task was canceled, so that
/// the stream closes soon after the end.
const WATCH: Duration = Duration::from_secs(2);

/// The heartbeat of one running turn.
pub(in crate::engine) struct Heartbeat<'e> {
    commits: &'e Commits,
    receipt: Option<&'e dyn Receipt>,
    budget: TurnBudget,
    every: Duration,
    next: Timestamp,
    extend_at: Timestamp,
    /// When the turn last checked whether its thread needs a refresh.
    checked_at: Timestamp,
    beating: Option<BoxFuture<'e, Result<bool, StoreError>>>,
}

impl<'e> Heartbeat<'e> {
    /// Beats three times per lease, and at least every 2 s if a stream watches the
    /// turn. `receipt` is that of the queue message that brought the turn.
    pub(in crate::engine) fn new(
        commits: &'e Commits,
        receipt: Option<&'e dyn Receipt>,
        budget: TurnBudget,
        is_watched: bool,
    ) -> Self {
        let now = commits.reader.clock.now();
        let third = commits.reader.policy.lease / 3;
        let every = if is_watched { WATCH.min(third) } else { third };
        Self {
            commits,
            receipt,
            budget,
            every,
            next: now.plus(every),
            extend_at: now.plus(third),
            checked_at: now,
            beating: None,
        }
    }

    /// Waits for the next heartbeat; returns whether the turn still has its task. A
    /// store error decides nothing: the next heartbeat tries again.
    pub(in crate::engine) async fn tick(&mut self, record: &TaskRecord) -> bool {
        if self.beating.is_none() {
            self.commits.reader.clock.sleep_until(self.next).await;
            // A deferred create is not stored yet, so there is no lease to extend.
            if record.version > 0 {
                self.beating = Some(self.start(record));
            }
        }
        let now = self.commits.reader.clock.now();
        self.next = now.plus(self.every);
        let Some(beating) = &mut self.beating else {
            return true;
        };
        let beaten = beating.await;
        self.beating = None;
        beaten.unwrap_or_else(|error| {
            tracing::warn!(a2a.task = %&record.id, "a heartbeat failed: {error}");
            true
        })
    }

    fn start(&mut self, record: &TaskRecord) -> BoxFuture<'e, Result<bool, StoreError>> {
        let now = self.commits.reader.clock.now();
        let record = record.clone();
        let commits = self.commits;
        // A watched turn beats more often than its lease needs: in between it only
        // reads.
        if now < self.extend_at {
            return Box::pin(async move {
                let head = commits.records.head(&record.owner, &record.id, now).await?;
                Ok(head.is_some_and(|task| {
                    task.is_same_turn(&record) && task.state() == TaskState::Working
                }))
            });
        }
        let lease = commits.reader.policy.lease;
        self.extend_at = now.plus(lease / 3);
        let until = commits.lease_until(self.budget.deadline);
        let receipt = self.receipt;
        let is_half_over = commits.is_part_over(self.checked_at, 2, now);
        if is_half_over {
            self.checked_at = now;
        }
        Box::pin(async move {
            let alive = commits.records.heartbeat(&record, until).await?;
            // The visibility timeout follows the lease, so that the queue redelivers
            // the message soon after a crash.
            if let Some(receipt) = receipt.filter(|_| alive) {
                receipt.hide(lease).await?;
            }
            if is_half_over && alive {
                commits.extend_thread(&record).await;
            }
            Ok(alive)
        })
    }
}
