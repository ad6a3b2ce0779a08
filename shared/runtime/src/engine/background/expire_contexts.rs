//! Removes the state of expired contexts and finishes deletions, as a step of the sweep.
//! No caller waits for it: an expired context is refused before it is removed.

use super::Sweeper;
use super::shard_walk::ShardWalk;
use crate::engine::error::EngineError;
use crate::store::records::Sweep;
use crate::store::{
    Expiring, ExpiringThread, StateRemoved, ThreadRecord, ThreadState, ThreadWrite,
};
use crate::task::{Timestamp, WriteId};
use futures::StreamExt as _;
use futures::stream;
use std::time::Duration;

/// Contexts read at a time.
const READ: usize = 100;
/// Contexts handled in parallel: each costs a read and one or two writes.
const AT_ONCE: usize = 8;
/// The longest pause until the sweep looks again at an expired state that an open task keeps.
const DAY: Duration = Duration::from_secs(24 * 3600);

/// What a sweep of contexts did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ThreadSweepReport {
    /// Contexts looked at.
    pub looked_at: usize,
    /// States removed after their expiry (`a2a_states_cleaned_total`).
    pub states_cleaned: usize,
    /// Objects removed with them.
    pub objects_removed: usize,
    /// Deletions finished: nothing is left of these contexts.
    pub threads_removed: usize,
    /// Tasks removed that a deletion had left.
    pub tasks_removed: usize,
}

impl ThreadSweepReport {
    const fn add(&mut self, other: &Self) {
        self.looked_at += other.looked_at;
        self.states_cleaned += other.states_cleaned;
        self.objects_removed += other.objects_removed;
        self.threads_removed += other.threads_removed;
        self.tasks_removed += other.tasks_removed;
    }

    fn add_removal(&mut self, removal: StateRemoved) {
        self.states_cleaned += usize::from(removal.state);
        self.objects_removed += removal.objects;
    }
}

impl Sweeper {
    /// Removes the state of all expired contexts, and finishes deletions.
    ///
    /// # Errors
    /// When the index cannot be read. A context that fails is left to the next sweep.
    pub async fn sweep_threads(&self) -> Result<ThreadSweepReport, EngineError> {
        let (mut report, sweep) = (ThreadSweepReport::default(), self.commits.records.sweep());
        let mut walk = ShardWalk::of(sweep.expiry_shards(), 0);
        self.sweep_threads_from(&sweep, &mut walk, None, &mut report)
            .await?;
        Ok(report)
    }

    /// Continues a sweep at the position of `walk`, until the time is up.
    pub(in crate::engine) async fn sweep_threads_from(
        &self,
        sweep: &Sweep,
        walk: &mut ShardWalk,
        until: Option<Timestamp>,
        report: &mut ThreadSweepReport,
    ) -> Result<(), EngineError> {
        let mut first_error = None;
        while !self.reader.time_is_up(until)
            && let Some((shard, after)) = walk.next()
        {
            let now = self.reader.clock.now();
            let (hints, next) = match sweep.expiring_threads(shard, now, after, READ).await {
                Ok(page) => page,
                // The other shards are swept all the same.
                Err(error) => {
                    first_error = first_error.or(Some(error));
                    continue;
                }
            };
            let swept = stream::iter(hints).map(|hint| async move {
                let mut report = ThreadSweepReport::default();
                let one = self.sweep_thread(sweep, &hint, until, &mut report);
                if let Err(error) = one.await {
                    error.log();
                }
                report
            });
            let mut swept = swept.buffer_unordered(AT_ONCE);
            while let Some(one) = swept.next().await {
                report.add(&one);
            }
            if let Some(next) = next {
                walk.continue_after(shard, next);
            }
        }
        first_error.map_or(Ok(()), |error| Err(error.into()))
    }

    async fn sweep_thread(
        &self,
        sweep: &Sweep,
        hint: &ExpiringThread,
        until: Option<Timestamp>,
        report: &mut ThreadSweepReport,
    ) -> Result<(), EngineError> {
        report.looked_at += 1;
        let now = self.reader.clock.now();
        let (owner, id) = (&hint.owner, &hint.context_id);
        let head = self.commits.records.load_thread_head(owner, id).await?;
        let due = |head: &ThreadRecord| head.swept_at(hint.what).is_some_and(|at| at <= now);
        match (head, hint.what) {
            (Some(head), Expiring::Deleted) if due(&head) => {
                self.finish_deletion(head, until, report).await?;
            }
            (_, Expiring::Deleted) => {}
            (Some(head), Expiring::State) if head.state_version > 0 => {
                let is_over = head.state_expires_at <= now;
                if !is_over || self.commits.records.has_open_task(owner, id, now).await? {
                    sweep.note_expiry(&self.expiry_of(head, now)).await?;
                    return Ok(());
                }
                // The thread drops its state first, on the condition of its version: if a
                // message came meanwhile, the state stays.
                let write = self.next_of(ThreadRecord {
                    state_version: 0,
                    state: ThreadState::default(),
                    ..head
                });
                if self.commits.records.put_thread(&write).await? {
                    report.add_removal(sweep.remove_state(owner, id, now).await?);
                }
            }
            (_, Expiring::State) => {
                report.add_removal(sweep.remove_state(owner, id, now).await?);
            }
        }
        Ok(())
    }

    /// Removes the tasks that a deletion has left: those the call had no time for, and
    /// those a function was still working on. Then the id is free again.
    async fn finish_deletion(
        &self,
        head: ThreadRecord,
        until: Option<Timestamp>,
        report: &mut ThreadSweepReport,
    ) -> Result<(), EngineError> {
        let removal = self.tasks.remove_cleared(&head, until).await?;
        report.tasks_removed += removal.tasks;
        let (is_whole, is_cut) = (removal.is_whole(), removal.cut);
        if let Some(error) = removal.error {
            return Err(error);
        }
        if is_whole {
            let is_removed = self.commits.records.remove_thread(&head).await?;
            report.threads_removed += usize::from(is_removed);
        } else if !is_cut {
            // A function still works on a task: a later sweep removes that task.
            let expires_at = self.reader.clock.now();
            let write = self.next_of(ThreadRecord { expires_at, ..head });
            self.commits.records.put_thread(&write).await?;
        }
        Ok(())
    }

    /// The thread whose state the sweep looks at again at its expiry. If an open task keeps a
    /// state that has expired, that is when the context has been idle twice as long.
    fn expiry_of(&self, mut thread: ThreadRecord, now: Timestamp) -> ThreadRecord {
        if thread.state_expires_at <= now {
            let idle = now.since(thread.updated_at);
            thread.state_expires_at = now.plus(idle.min(DAY));
        }
        self.commits.keep(&mut thread, now);
        thread
    }

    /// The next write of `thread`. Cleaning up is not activity, so the times stay.
    fn next_of(&self, mut thread: ThreadRecord) -> ThreadWrite {
        let expect = thread.version;
        thread.version = expect + 1;
        self.commits.keep(&mut thread, self.reader.clock.now());
        ThreadWrite {
            record: thread,
            expect,
            write: WriteId::made_of(self.reader.ids.next()),
        }
    }
}
