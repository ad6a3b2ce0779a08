//! What the sweep does about conversations whose time is up. Nobody waits for
//! it: what has expired is refused anyway.

use super::{Engine, EngineError};
use crate::store::{
    Expiring, ExpiringThread, StateRemoved, SweepThreads, ThreadRecord, ThreadState, ThreadStatus,
    ThreadWrite,
};
use crate::task::{Timestamp, WriteId};

/// Conversations read at a time.
const READ: usize = 100;
/// At most this many are looked at in one sweep.
const LOOKED_AT: usize = 10_000;

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
    fn removed(&mut self, removed: StateRemoved) {
        self.states_cleaned += usize::from(removed.state);
        self.objects_removed += removed.objects;
    }
}

impl Engine {
    /// Removes the state of conversations whose time is up, and leaves the
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
        let mut after = None;
        loop {
            let now = self.reader.clock.now();
            let (found, next) = threads.expiring_threads(now, after, READ).await?;
            for hint in &found {
                report.looked_at += 1;
                let swept = self.sweep_thread(threads, hint, now, &mut report);
                if let Err(error) = swept.await {
                    error.log();
                }
            }
            after = next;
            if after.is_none() || report.looked_at >= LOOKED_AT {
                return Ok(report);
            }
        }
    }

    async fn sweep_thread(
        &self,
        threads: &dyn SweepThreads,
        hint: &ExpiringThread,
        now: Timestamp,
        report: &mut ThreadSweep,
    ) -> Result<(), EngineError> {
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
