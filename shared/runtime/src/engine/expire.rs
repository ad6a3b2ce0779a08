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
}

impl ThreadSweep {
    const fn add(&mut self, other: &Self) {
        self.looked_at += other.looked_at;
        self.states_cleaned += other.states_cleaned;
        self.objects_removed += other.objects_removed;
        self.threads_expired += other.threads_expired;
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
    /// Removes the state of all conversations whose time is up, and leaves the
    /// tombstones of client-made ids.
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
                    let done = self.sweep_thread(threads, &hint, now, &mut report).await;
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
        now: Timestamp,
        report: &mut ThreadSweep,
    ) -> Result<(), EngineError> {
        report.looked_at += 1;
        let (owner, id) = (&hint.owner, &hint.context_id);
        let head = threads.load_thread_head(owner, id).await?;
        match (head, hint.what) {
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

    /// The thread without its state. To clean up is no activity, so its times
    /// stay.
    fn left_of(&self, thread: ThreadRecord, over: bool) -> ThreadWrite {
        let expect = thread.version;
        let status = if over {
            ThreadStatus::Expired
        } else {
            thread.status
        };
        ThreadWrite {
            record: ThreadRecord {
                version: expect + 1,
                status,
                state_version: 0,
                state: ThreadState::default(),
                ..thread
            },
            expect,
            write: WriteId::made_of(self.ids.next()),
        }
    }
}
