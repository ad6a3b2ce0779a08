//! A store for tasks, threads and bytes in memory.
//!
//! It has no clock, ids or background work of its own, so that a simulation can drive
//! it. Nothing outlives the process.

#[cfg(test)]
mod tests;

use crate::memory::{MemoryBlobs, MemoryTable};
use crate::records::Records;
use a2a_lambda_model::store::push::Pushes;
use a2a_lambda_model::store::queue::{SweepObjects, SweepTasks};
use a2a_lambda_model::store::wrap::{
    WrapBlobs, WrapObjects, WrapPushes, WrapSweepTasks, WrapSweepThreads, WrapTasks, WrapThreads,
};
use a2a_lambda_model::store::{Blobs, SweepThreads, WriteTasks, WriteThreads};
use a2a_lambda_model::task::Timestamp;
use std::sync::Arc;

/// A store in memory: records over a [`MemoryTable`], and [`MemoryBlobs`] for large values and
/// files.
#[derive(Debug)]
pub struct MemoryStore {
    table: Arc<MemoryTable>,
    /// Tasks, threads and push configs.
    pub records: Records,
    /// Large values and files.
    pub blobs: Arc<MemoryBlobs>,
}

impl Default for MemoryStore {
    fn default() -> Self {
        let (table, blobs) = (Arc::<MemoryTable>::default(), Arc::<MemoryBlobs>::default());
        Self {
            records: Records::new(table.clone()).with_blobs(blobs.clone()),
            table,
            blobs,
        }
    }
}

impl MemoryStore {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Freezes the indexes, as if they lagged, until
    /// [`MemoryStore::catch_up_index`].
    pub fn lag_index(&self) {
        self.table.lag_indexes();
    }

    /// Lets the indexes see every item again.
    pub fn catch_up_index(&self) {
        self.table.catch_up_indexes();
    }

    /// Removes what the TTL of a table would remove at `now`.
    pub fn clean_up(&self, now: Timestamp) {
        self.table.clean_up(now);
    }
}

impl WrapTasks for MemoryStore {
    fn tasks(&self) -> &dyn WriteTasks {
        &self.records
    }
}

impl WrapThreads for MemoryStore {
    fn threads(&self) -> &dyn WriteThreads {
        &self.records
    }
}

impl WrapPushes for MemoryStore {
    fn webhooks(&self) -> &dyn Pushes {
        &self.records
    }
}

impl WrapSweepTasks for MemoryStore {
    fn open_index(&self) -> &dyn SweepTasks {
        &self.records
    }
}

impl WrapSweepThreads for MemoryStore {
    fn expiry_index(&self) -> &dyn SweepThreads {
        &self.records
    }
}

impl WrapObjects for MemoryStore {
    fn objects(&self) -> &dyn SweepObjects {
        &self.records
    }
}

impl WrapBlobs for MemoryStore {
    fn blobs(&self) -> &dyn Blobs {
        &*self.blobs
    }
}
