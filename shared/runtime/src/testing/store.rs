//! The store behind a bench, in memory: it can hold a turn after a number of its events.

use super::invocations::Interruption;
use super::table_layer::{TableHooks, TableLayer, committed_task};
use crate::clock::lock;
use crate::store::StoreError;
use crate::store::memory::{MemoryBlobs, MemoryTable};
use crate::store::records::Records;
use crate::store::table::{Table, Write, WriteResult};
use crate::task::{TaskId, TaskRecord};
use async_trait::async_trait;
use std::sync::{Arc, Mutex};
use tokio::sync::oneshot;

/// The store of one bench.
#[derive(Debug)]
pub(super) struct TestStore {
    pub(super) table: Arc<TableLayer<Brakes>>,
    pub(super) blobs: Arc<MemoryBlobs>,
    pub(super) records: Records,
}

impl Default for TestStore {
    fn default() -> Self {
        let memory = Arc::new(MemoryTable::default());
        let table = TableLayer::new(memory, Brakes::default());
        let blobs = Arc::<MemoryBlobs>::default();
        Self {
            records: Records::new(table.clone()).with_blobs(blobs.clone()),
            table,
            blobs,
        }
    }
}

/// What waits for the next commits.
#[derive(Debug, Default)]
pub(super) struct Brakes {
    brake: Mutex<Option<Brake>>,
    /// Gets the id of the next task whose turn a worker has to run.
    queue_sender: Mutex<Option<oneshot::Sender<TaskId>>>,
}

/// Holds a commit of a turn.
#[derive(Debug)]
struct Brake {
    after: Interruption,
    /// What was there before the turn began: the number of the last event, and the commits.
    /// The first commit of a running turn sets this.
    base: Option<(u64, u64)>,
    commits: u64,
    signal: oneshot::Sender<TaskId>,
    go_on: oneshot::Receiver<()>,
}

/// The test's side of a turn that will be held.
#[derive(Debug)]
pub(super) struct Hold {
    /// Receives the task's id when the turn is held.
    pub(super) signal: oneshot::Receiver<TaskId>,
    /// Releases the turn.
    pub(super) go_on: oneshot::Sender<()>,
}

impl TestStore {
    /// Holds the next turn where `after` says.
    pub(super) fn hold(&self, after: Interruption) -> Hold {
        let (sender, receiver) = oneshot::channel();
        let (on_go, go_on) = oneshot::channel();
        *lock(&self.table.hooks.brake) = Some(Brake {
            after,
            base: None,
            commits: 0,
            signal: sender,
            go_on,
        });
        Hold {
            signal: receiver,
            go_on: on_go,
        }
    }

    /// Receives the id of the next task whose turn a worker has to run.
    pub(super) fn when_queued(&self) -> oneshot::Receiver<TaskId> {
        let (sender, receiver) = oneshot::channel();
        *lock(&self.table.hooks.queue_sender) = Some(sender);
        receiver
    }
}

impl Brakes {
    /// Holds a turn that stores `record`, or is about to: `is_before`.
    async fn brake(&self, record: &TaskRecord, is_before: bool) {
        if record.dispatch().is_some() {
            if !is_before
                && !record.state().is_at_rest()
                && let Some(sender) = lock(&self.queue_sender).take()
            {
                // It fails when the bench waits no more.
                let _gone = sender.send(record.id.clone());
            }
            return;
        }
        let Some(mut brake) = lock(&self.brake).take() else {
            return;
        };
        brake.commits += u64::from(!is_before);
        let (events, commits) = (record.last_seq, brake.commits);
        if !is_before {
            brake.base.get_or_insert((events, commits));
        }
        let (first, before) = brake.base.unwrap_or((u64::MAX, u64::MAX));
        let is_reached = match brake.after {
            Interruption::CancelAfter(many) => !is_before && events >= first.saturating_add(many),
            Interruption::CrashAfter(many) => !is_before && commits >= before.saturating_add(many),
            Interruption::CrashBefore(many) => {
                is_before && commits + 1 >= before.saturating_add(many)
            }
        };
        if !is_reached {
            *lock(&self.brake) = Some(brake);
            return;
        }
        // Both fail when the bench has been dropped: then the turn is not held.
        let _gone = brake.signal.send(record.id.clone());
        let _gone = brake.go_on.await;
    }
}

#[async_trait]
impl TableHooks for Brakes {
    async fn write(&self, table: &dyn Table, write: Write) -> Result<WriteResult, StoreError> {
        let task = committed_task(&write);
        if let Some(task) = &task {
            self.brake(task, true).await;
        }
        let outcome = table.write(write).await?;
        if let Some(task) = task {
            self.brake(&task, false).await;
        }
        Ok(outcome)
    }
}
