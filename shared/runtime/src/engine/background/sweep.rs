//! The scheduled sweep: dispatches dead turns again, repeats unconfirmed push
//! deliveries, removes expired thread state, and collects unreferenced objects.
//!
//! Tasks, threads and objects each have a share of the time. A part that does not
//! finish continues in the next round, so that a backlog of one part does not delay the
//! others.

use super::collect_objects::CollectReport;
use super::expire_contexts::ThreadSweepReport;
use super::push_delivery::resend_pushes;
use super::redispatch::{QUEUED, Redispatch};
use super::shard_walk::ShardWalk;
use crate::engine::background::Sweeper;
use crate::engine::error::EngineError;
use crate::store::queue::{TaskImage, WorkItem, WorkQueue};
use crate::store::records::Sweep;
use crate::task::{Change, TaskRecord, TenantId, Timestamp};
use crate::telemetry::events;
use crate::telemetry::outcomes::{EVENTS, class_of};
use std::collections::BTreeMap;
use std::time::Duration;

/// How long after its end the sweep still respects a lease.
const OVERDUE: Duration = Duration::from_secs(30);
/// Tasks read at a time.
const SWEPT: usize = 100;
/// A round ends this long before its deadline, to finish what it has begun.
const CLOSING: Duration = Duration::from_secs(10);

/// How a sweep treats the leases of turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leases {
    /// As stored.
    Respect,
    /// As expired: the processes that held them died with the process before this one.
    CountAsExpired,
    /// As given back: somebody ended the process before this one to run another program. That says
    /// nothing about the tasks, so it is no attempt.
    GivenBack,
}

/// What a sweep of tasks did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SweepReport {
    /// Open tasks read.
    pub looked_at: usize,
    /// Turns dispatched again.
    pub redispatched: usize,
    /// Those of them that the sweep itself sent to the queue, as no relay had.
    pub resent: usize,
    /// Tasks failed, because no attempts are left.
    pub failed: usize,
    /// Push deliveries queued again.
    pub pushed: usize,
}

/// Where the next round of sweeps continues. It is kept in memory; a new process begins
/// at a random shard.
#[derive(Debug, Default)]
pub struct SweepPlaces {
    tasks: ShardWalk,
    threads: ShardWalk,
}

impl SweepPlaces {
    /// Whether the last round reached the end of the open tasks and of the threads.
    #[must_use]
    pub(crate) fn are_done(&self) -> bool {
        self.tasks.is_done() && self.threads.is_done()
    }
}

/// What a round of sweeps did.
#[derive(Debug, Default)]
pub struct SweepRound {
    /// What it did to tasks.
    pub tasks: SweepReport,
    /// What it did to threads.
    pub threads: ThreadSweepReport,
    /// What it did to objects.
    pub objects: CollectReport,
    /// The first error. The rest was swept anyway.
    pub error: Option<EngineError>,
}

/// Logs the one line of a round, from whose fields operators make metrics. Seed
/// RAD-H5 sets the name `a2a_states_cleaned_total`.
fn report(swept: &SweepRound, is_done: bool) {
    tracing::event!(
        target: events::SWEEP,
        tracing::Level::INFO,
        class = (swept.tasks.resent > 0).then(|| class_of(EVENTS, "sweep.resent").word()),
        sweep.looked_at = swept.tasks.looked_at,
        sweep.redispatched = swept.tasks.redispatched,
        sweep.resent = swept.tasks.resent,
        sweep.failed = swept.tasks.failed,
        sweep.pushed = swept.tasks.pushed,
        sweep.threads_looked_at = swept.threads.looked_at,
        sweep.threads_removed = swept.threads.threads_removed,
        sweep.tasks_removed = swept.threads.tasks_removed,
        a2a_states_cleaned_total = swept.threads.states_cleaned,
        sweep.state_objects = swept.threads.objects_removed,
        sweep.objects = swept.objects.looked_at,
        sweep.removed = swept.objects.removals,
        sweep.objects_whole = swept.objects.is_complete,
        sweep.is_done = is_done,
        "swept"
    );
}

impl Sweeper {
    /// One round over tasks, threads and objects, each from where the last round
    /// stopped, in the time until `deadline`. Turns that wait for a worker go to
    /// `queue`.
    pub async fn sweep_round(
        &self,
        queue: &dyn WorkQueue,
        places: &mut SweepPlaces,
        deadline: Option<Timestamp>,
    ) -> SweepRound {
        let (mut swept, sweep) = (SweepRound::default(), self.commits.records.sweep());
        let until = self.share(deadline, 3);
        let walk = &mut places.tasks;
        self.restart(walk, sweep.open_shards());
        let again = Redispatch::new(queue);
        let result = self.sweep_tasks(
            &sweep,
            again,
            Leases::Respect,
            walk,
            until,
            &mut swept.tasks,
        );
        let result = Box::pin(result).await;
        swept.note(result);
        let until = self.share(deadline, 2);
        let walk = &mut places.threads;
        self.restart(walk, sweep.expiry_shards());
        let result = self.sweep_threads_from(&sweep, walk, until, &mut swept.threads);
        let result = Box::pin(result).await;
        swept.note(result);
        let until = self.share(deadline, 1);
        if !self.reader.time_is_up(until) {
            match Box::pin(self.sweep_objects()).await {
                Ok(report) => swept.objects = report,
                Err(error) => swept.note(Err(error)),
            }
        }
        report(&swept, places.are_done());
        swept
    }

    /// When a part has to end while `parts` parts, itself included, still need time.
    fn share(&self, deadline: Option<Timestamp>, parts: u32) -> Option<Timestamp> {
        let now = self.reader.clock.now();
        deadline.map(|end| now.plus(end.since(now).saturating_sub(CLOSING) / parts))
    }

    /// Starts a finished walk again, at a random shard, so that no shard is the last in
    /// every process.
    pub(in crate::engine) fn restart(&self, walk: &mut ShardWalk, shards: u32) {
        if walk.is_done() {
            let first = self.reader.ids.next() % u128::from(shards.max(1));
            *walk = ShardWalk::of(shards, u32::try_from(first).unwrap_or_default());
        }
    }

    /// Looks at all open tasks. Dead turns are dispatched again, turns that wait for a
    /// worker go to `queue` again. Tasks without attempts left, and those without progress
    /// for [`Policy::task_run_max`](crate::engine::Policy::task_run_max), are failed.
    ///
    /// # Errors
    /// When the index cannot be read. A task with an error is left to the next sweep.
    pub async fn sweep(
        &self,
        queue: &dyn WorkQueue,
        leases: Leases,
    ) -> Result<SweepReport, EngineError> {
        let (mut report, sweep) = (SweepReport::default(), self.commits.records.sweep());
        let mut walk = ShardWalk::of(sweep.open_shards(), 0);
        let again = Redispatch::new(queue);
        self.sweep_tasks(&sweep, again, leases, &mut walk, None, &mut report)
            .await?;
        Ok(report)
    }

    pub(in crate::engine) async fn sweep_tasks(
        &self,
        sweep: &Sweep,
        mut again: Redispatch<'_>,
        leases: Leases,
        walk: &mut ShardWalk,
        until: Option<Timestamp>,
        report: &mut SweepReport,
    ) -> Result<(), EngineError> {
        let mut first_error = None;
        'pages: while !self.reader.time_is_up(until)
            && let Some((shard, after)) = walk.next()
        {
            let (open, next) = match sweep.open_tasks(shard, after.clone(), SWEPT).await {
                Ok(page) => page,
                // The other shards are still read.
                Err(error) => {
                    first_error = first_error.or(Some(error));
                    continue;
                }
            };
            let (mut standing, mut waiters) = (Vec::new(), Vec::new());
            let now = self.reader.clock.now();
            let heads = self.commits.records.heads(&open, now).await;
            let heads = heads.unwrap_or_else(|error| {
                EngineError::from(error).log();
                Vec::new()
            });
            for head in heads {
                if self.reader.time_is_up(until) {
                    walk.again(shard, after);
                    break 'pages;
                }
                match self.sweep_one(head, leases, report).await {
                    Ok(Some((item, true))) => waiters.push(item),
                    Ok(item) => standing.extend(item.map(|(item, _)| item)),
                    Err(error) => error.log(),
                }
            }
            let standing = self.with_free_slots(standing).await;
            let count = again.send_now(waiters).await + again.send_if_nearly_empty(standing).await;
            report.redispatched += count;
            report.resent += count;
            if let Some(next) = next {
                walk.continue_after(shard, next);
            }
        }
        first_error.map_or(Ok(()), |error| Err(error.into()))
    }

    /// Those of `turns` whose tenants may run one more. The others have messages that wait, and
    /// each sweep would add one more of each.
    async fn with_free_slots(&self, turns: Vec<WorkItem>) -> Vec<WorkItem> {
        let mut full: BTreeMap<TenantId, bool> = BTreeMap::new();
        for turn in &turns {
            let tenant = &turn.owner.tenant;
            if !full.contains_key(tenant) {
                let is_full = self.reader.has_all_turn_slots(tenant).await;
                // Without an answer a turn is sent, as its worker would run it.
                full.insert(tenant.clone(), is_full.unwrap_or_default());
            }
        }
        let is_free = |turn: &WorkItem| full.get(&turn.owner.tenant) != Some(&true);
        turns.into_iter().filter(is_free).collect()
    }

    /// Looks at one task. Returns its turn if it has waited too long for a worker, or for a brake
    /// that was lifted, and whether it is the latter. A braked task is left as it is.
    async fn sweep_one(
        &self,
        head: TaskRecord,
        leases: Leases,
        report: &mut SweepReport,
    ) -> Result<Option<(WorkItem, bool)>, EngineError> {
        report.looked_at += 1;
        self.reader.brake().await?;
        if self.reader.refusal(&head).is_some() {
            return Ok(None);
        }
        if head.state().is_at_rest() {
            // A task at rest is in the index only while a push delivery is unconfirmed.
            if let Some(queue) = &self.push_queue {
                let deliveries = self.commits.records.deliveries();
                let now = self.reader.clock.now();
                report.pushed += resend_pushes(&deliveries, &**queue, &head, leases, now).await?;
            }
            return Ok(None);
        }
        let is_released =
            head.lease_until.is_none() && self.reader.has_released(&head, asked_at(&head));
        if !is_released && !self.is_overdue(&head, leases) {
            return Ok(None);
        }
        let most = self.reader.policy.max_attempts;
        let may_run = |record: &TaskRecord| {
            (leases == Leases::GivenBack || !record.is_spent(most))
                && self.turns.run_limit(record).is_none()
        };
        if let Some(item) = TaskImage::of(&head).asks().filter(|_| may_run(&head)) {
            return Ok(Some((item, is_released)));
        }
        // A write is decided on the whole task, not on its head.
        let record = self.commits.load_full(head).await?;
        let dead =
            |record: &TaskRecord| !record.state().is_at_rest() && self.is_overdue(record, leases);
        let Some(record) = record.filter(dead) else {
            return Ok(None);
        };
        if !may_run(&record) {
            report.failed += usize::from(self.turns.give_up_on(record).await?);
            return Ok(None);
        }
        self.commits.extend_thread(&record).await;
        let change = match (record.lease_until, leases) {
            (Some(_), Leases::GivenBack) => {
                let not_before = self.reader.clock.now();
                Change::Release { not_before }
            }
            _ => Change::Dispatch,
        };
        let record = self.turns.write_unclaimed(record, change).await?;
        report.redispatched += usize::from(record.is_some());
        Ok(None)
    }

    fn is_overdue(&self, record: &TaskRecord, leases: Leases) -> bool {
        let now = self.reader.clock.now();
        match (record.lease_until, leases) {
            (Some(_), Leases::CountAsExpired | Leases::GivenBack) => true,
            (Some(until), Leases::Respect) => until.plus(OVERDUE) <= now,
            (None, _) => asked_at(record).plus(QUEUED) <= now,
        }
    }
}

/// Since when a task without a lease has waited for a worker.
fn asked_at(record: &TaskRecord) -> Timestamp {
    let since = record.not_before.or(record.dispatched_at);
    since.unwrap_or(record.updated_at)
}

impl SweepRound {
    fn note(&mut self, result: Result<(), EngineError>) {
        if let Err(error) = result {
            error.log();
            self.error.get_or_insert(error);
        }
    }
}

#[cfg(test)]
mod tests;
