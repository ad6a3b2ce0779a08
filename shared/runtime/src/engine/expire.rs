//! What the sweep does about conversations whose time is up. Nobody waits for
//! it: what has expired is refused anyway.

use super::sweep::Walk;
use super::{Engine, EngineError};
use crate::store::{
    Expiring, ExpiringThread, StateRemoved, SweepThreads, ThreadRecord, ThreadState, ThreadStatus,
    ThreadWrite,
};
use crate::task::{Timestamp, WriteId};
use futures::StreamExt as _;
use futures::stream;
use std::collections::BTreeMap;

/// Conversations read at a time.
const READ: usize = 100;
/// Conversations looked at at once: each costs a read and a write or two.
const AT_ONCE: usize = 8;

/// What a sweep of conversations did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ThreadSweep {
    /// Conversations looked at.
    pub looked_at: usize,
    /// States removed, since their time was up (`a2a_states_cleaned_total`).
    pub states_cleaned: usize,
    /// Objects that went with them.
    pub objects_removed: usize,
    /// Threads of client-made ids of which a tombstone is left.
    pub threads_expired: usize,
    /// Deletions finished: nothing is left of their conversations.
    pub threads_removed: usize,
    /// Tasks that a deletion had left.
    pub tasks_removed: usize,
}

impl ThreadSweep {
    const fn add(&mut self, other: &Self) {
        self.looked_at += other.looked_at;
        self.states_cleaned += other.states_cleaned;
        self.objects_removed += other.objects_removed;
        self.threads_expired += other.threads_expired;
        self.threads_removed += other.threads_removed;
        self.tasks_removed += other.tasks_removed;
    }

    fn removed(&mut self, removed: StateRemoved) {
        self.states_cleaned += usize::from(removed.state);
        self.objects_removed += removed.objects;
    }
}

/// Thread and state of one conversation are written one after the other, or one
/// of the writes would lose to the other.
fn by_conversation(found: Vec<ExpiringThread>) -> Vec<Vec<ExpiringThread>> {
    let mut conversations: BTreeMap<_, Vec<ExpiringThread>> = BTreeMap::new();
    for hint in found {
        let conversation = (hint.owner.clone(), hint.context_id.clone());
        conversations.entry(conversation).or_default().push(hint);
    }
    conversations.into_values().collect()
}

impl Engine {
    /// Removes the state of all conversations whose time is up, leaves the
    /// tombstones of client-made ids, and finishes deletions.
    ///
    /// # Errors
    /// When the index cannot be read. A conversation that cannot be decided on
    /// is left to the next sweep.
    pub async fn sweep_threads(
        &self,
        threads: &dyn SweepThreads,
    ) -> Result<ThreadSweep, EngineError> {
        let mut report = ThreadSweep::default();
        let mut walk = Walk::of(threads.expiry_shards(), 0);
        self.sweep_conversations(threads, &mut walk, None, &mut report)
            .await?;
        Ok(report)
    }

    /// The same from where `walk` goes on, until the time is up.
    pub(super) async fn sweep_conversations(
        &self,
        threads: &dyn SweepThreads,
        walk: &mut Walk,
        until: Option<Timestamp>,
        report: &mut ThreadSweep,
    ) -> Result<(), EngineError> {
        let mut failed = None;
        while !self.time_is_up(until)
            && let Some((shard, after)) = walk.next()
        {
            let now = self.reader.clock.now();
            let (found, next) = match threads.expiring_threads(shard, now, after, READ).await {
                Ok(page) => page,
                // The others have their turn all the same.
                Err(error) => {
                    failed = failed.or(Some(error));
                    continue;
                }
            };
            let swept = stream::iter(by_conversation(found)).map(|hints| async move {
                let mut report = ThreadSweep::default();
                for hint in hints {
                    let one = self.sweep_thread(threads, &hint, until, &mut report);
                    let done = Box::pin(one).await;
                    if let Err(error) = done {
                        error.log();
                    }
                }
                report
            });
            let mut swept = swept.buffer_unordered(AT_ONCE);
            while let Some(one) = swept.next().await {
                report.add(&one);
            }
            if let Some(next) = next {
                walk.goes_on(shard, next);
            }
        }
        failed.map_or(Ok(()), |error| Err(error.into()))
    }

    async fn sweep_thread(
        &self,
        threads: &dyn SweepThreads,
        hint: &ExpiringThread,
        until: Option<Timestamp>,
        report: &mut ThreadSweep,
    ) -> Result<(), EngineError> {
        report.looked_at += 1;
        let now = self.reader.clock.now();
        let (owner, id) = (&hint.owner, &hint.context_id);
        let head = threads.load_thread_head(owner, id).await?;
        let over = |head: &ThreadRecord| head.status == ThreadStatus::Expired;
        match (head, hint.what) {
            (Some(head), Expiring::Thread) if head.cleared_at.is_some() && !over(&head) => {
                if head.settles_at().is_some_and(|at| at <= now) {
                    self.finish_deletion(threads, hint, (head, until), report)
                        .await?;
                }
            }
            (Some(head), Expiring::Thread) if head.lives(now) => {
                threads.note_expiry(hint, &head).await?;
            }
            (Some(head), Expiring::Thread) if head.status == ThreadStatus::Active => {
                let left = threads.put_thread(&self.left_of(head, true)).await?;
                report.threads_expired += usize::from(left);
            }
            (Some(head), Expiring::State) if head.state_version > 0 => {
                if head.state_expires_at > now {
                    threads.note_expiry(hint, &head).await?;
                // The thread gives its state up first, on the condition of its
                // version: a message that came meanwhile keeps it.
                } else if threads.put_thread(&self.left_of(head, false)).await? {
                    report.removed(threads.remove_state(owner, id, now).await?);
                }
            }
            (_, Expiring::State) => {
                report.removed(threads.remove_state(owner, id, now).await?);
            }
            (_, Expiring::Thread) => {}
        }
        Ok(())
    }

    /// Removes what a deletion has left: what no index showed then, and what some
    /// function was still at. Then nothing is left of the conversation but the one
    /// that has its id by now, if there is one.
    async fn finish_deletion(
        &self,
        threads: &dyn SweepThreads,
        hint: &ExpiringThread,
        (head, until): (ThreadRecord, Option<Timestamp>),
        report: &mut ThreadSweep,
    ) -> Result<(), EngineError> {
        let removal = self.remove_cleared(&head, until).await?;
        report.tasks_removed += removal.tasks;
        let (whole, cut) = (removal.is_whole(), removal.cut);
        if let Some(error) = removal.error {
            return Err(error);
        }
        match (head.status, whole) {
            (ThreadStatus::Cleared, true) => {
                let gone = self.threads.remove_thread(&head).await?;
                report.threads_removed += usize::from(gone);
            }
            // Somebody still works: it has to be known until he has ended.
            (ThreadStatus::Cleared, false) if !cut => {
                let expires_at = self.reader.clock.now();
                let later = ThreadRecord { expires_at, ..head };
                threads.put_thread(&self.next_of(later)).await?;
            }
            (_, false) => {}
            (_, true) => {
                let next = self.next_of(ThreadRecord {
                    cleared_at: None,
                    ..head
                });
                if threads.put_thread(&next).await? {
                    report.threads_removed += 1;
                    threads.note_expiry(hint, &next.record).await?;
                }
            }
        }
        Ok(())
    }

    /// The write after `thread`, of what it is now. To clean up is no activity, so
    /// its times stay.
    fn next_of(&self, thread: ThreadRecord) -> ThreadWrite {
        let expect = thread.version;
        ThreadWrite {
            record: ThreadRecord {
                version: expect + 1,
                ..thread
            },
            expect,
            write: WriteId::made_of(self.ids.next()),
        }
    }

    /// The thread without its state. To clean up is no activity, so its times
    /// stay.
    fn left_of(&self, thread: ThreadRecord, over: bool) -> ThreadWrite {
        let status = if over {
            ThreadStatus::Expired
        } else {
            thread.status
        };
        self.next_of(ThreadRecord {
            status,
            state_version: 0,
            state: ThreadState::default(),
            ..thread
        })
    }
}
