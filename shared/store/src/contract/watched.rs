//! A table in memory for tests: it notes its calls, and can be out of order.

use crate::keys::Key;
use crate::memory::MemoryTable;
use crate::table::{Item, Query, QueryPage, ReadTable, Table, Write, WriteResult};
use a2a_lambda_model::store::StoreError;
use async_trait::async_trait;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What is wrong with a table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    #[default]
    None,
    /// No call reaches it.
    Down,
    /// No call returns.
    Hangs,
    /// Writes are done, and their replies are lost.
    NoReply,
    /// The first reply of each write that may be repeated is lost, and the write comes again.
    /// (Not one that wants the old item: only the first finds it.)
    SentTwice,
}

/// A table in memory that notes its calls.
#[derive(Debug, Default)]
pub struct WatchedTable {
    table: MemoryTable,
    fault: Mutex<Fault>,
    reads: Mutex<Vec<Key>>,
    writes: Mutex<u32>,
}

impl WatchedTable {
    /// An empty table with this fault.
    #[must_use]
    pub fn with(fault: Fault) -> Self {
        let table = Self::default();
        table.set(fault);
        table
    }

    /// Sets what is wrong from now on.
    pub fn set(&self, fault: Fault) {
        *lock(&self.fault) = fault;
    }

    /// The keys of the items that were read since the last call.
    pub fn take_reads(&self) -> Vec<Key> {
        std::mem::take(&mut *lock(&self.reads))
    }

    /// How many writes were sent, each statement of a transaction once.
    pub fn writes(&self) -> u32 {
        *lock(&self.writes)
    }

    async fn reach(&self) -> Result<Fault, StoreError> {
        let fault = *lock(&self.fault);
        match fault {
            Fault::Down => Err(StoreError::Unavailable("no table `secret-name`".to_owned())),
            Fault::Hangs => std::future::pending().await,
            Fault::None | Fault::NoReply | Fault::SentTwice => Ok(fault),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[async_trait]
impl ReadTable for WatchedTable {
    async fn get(&self, keys: &[Key]) -> Result<Vec<Item>, StoreError> {
        lock(&self.reads).extend_from_slice(keys);
        self.reach().await?;
        self.table.get(keys).await
    }

    async fn query(&self, query: &Query) -> Result<QueryPage, StoreError> {
        self.reach().await?;
        self.table.query(query).await
    }
}

#[async_trait]
impl Table for WatchedTable {
    async fn write(&self, write: Write) -> Result<WriteResult, StoreError> {
        *lock(&self.writes) += u32::try_from(write.statements.len()).unwrap_or(u32::MAX);
        let fault = self.reach().await?;
        let repeats = write.repeats && !write.wants_old;
        let again = repeats.then(|| write.clone());
        let outcome = self.table.write(write).await?;
        match (fault, again) {
            (Fault::SentTwice, Some(again)) => self.table.write(again).await,
            (Fault::NoReply, _) => Ok(WriteResult::Unknown("no reply".to_owned())),
            _ => Ok(outcome),
        }
    }
}
