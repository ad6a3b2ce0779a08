//! Tasks, threads and bytes in memory.
//!
//! It has no clock, ids or background work of its own, so that a simulation can drive
//! it. Nothing outlives the process.

#[cfg(test)]
mod tests;

use crate::memory::{MemoryBlobs, MemoryTable};
use crate::records::Records;
use std::sync::Arc;

/// Records over a [`MemoryTable`], and [`MemoryBlobs`] for large values and files.
#[derive(Debug, Clone)]
pub struct MemoryStore {
    /// The table.
    pub table: Arc<MemoryTable>,
    /// Tasks, threads and push configs in it.
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
}
