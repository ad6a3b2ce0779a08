//! A store for tasks, threads and bytes in memory: the reference implementation of
//! the store contract.
//!
//! It has no clock, ids or background work of its own, so that a simulation can drive
//! it. Nothing outlives the process.
//!
//! - `tables`: what the store keeps, and the condition of each write
//! - `tasks`, `threads`, `pushes`, `blobs`: the store traits, by what they store
//! - `sweep`: what a sweep reads of tasks

mod blobs;
mod pushes;
mod sweep;
mod tables;
mod tasks;
#[cfg(test)]
mod tests;
mod threads;

pub use a2a_lambda_store::memory::MemoryTable;

use self::tables::Tables;
use crate::task::Timestamp;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A store in memory.
#[derive(Debug, Default)]
pub struct MemoryStore {
    tables: Mutex<Tables>,
}

impl MemoryStore {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Freezes the list index, as if it lagged, until
    /// [`MemoryStore::catch_up_index`].
    pub fn lag_index(&self) {
        let mut tables = self.tables();
        tables.lagging = Some(tables.tasks.clone());
    }

    /// Lets the list index see every task again.
    pub fn catch_up_index(&self) {
        self.tables().lagging = None;
    }

    /// Removes what the TTL of a table would remove at `now`: expired tasks and keys,
    /// and threads past their time. A thread of a client-made id stays for
    /// `tombstone` after its expiry.
    pub fn clean_up(&self, now: Timestamp, tombstone: Duration) {
        let mut tables = self.tables();
        tables.tasks.retain(|_, task| !task.expired(now));
        tables.keys.retain(|_, key| now < key.kept_until);
        tables
            .threads
            .retain(|_, thread| now < thread.record.kept_until(tombstone));
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        // Nothing between the changes of one commit can panic, so the data behind a
        // poisoned lock is complete.
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
