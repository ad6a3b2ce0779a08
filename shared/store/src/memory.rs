//! A table in memory, with the conditions, the changes, the limits and the lag of DynamoDB, and
//! records and bytes beside it.
//!
//! It has no clock, ids or background work of its own, so that a simulation can drive it.
//! Nothing outlives the process.
//!
//! - here: the items and the calls
//! - `blobs`: bytes beside the table
//! - `write`: what a statement does to an item
//! - `page`: a page of a query

mod blobs;
mod page;
#[cfg(test)]
mod store_tests;
#[cfg(test)]
mod tests;
mod write;

pub use self::blobs::MemoryBlobs;

use crate::check::check_keys;
use crate::item;
use crate::keys::Key;
use crate::records::Records;
use crate::table::{
    Action, ConditionCheck, Item, Query, QueryPage, QuerySource, ReadTable, Table, Write,
    WriteResult,
};
use a2a_lambda_model::store::StoreError;
use a2a_lambda_model::task::Timestamp;
use async_trait::async_trait;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

type Items = BTreeMap<Key, Item>;

/// The most bytes that one page of a query reads.
const PAGE: usize = 1024 * 1024;

/// A table in memory.
#[derive(Debug)]
pub struct MemoryTable {
    contents: Mutex<Contents>,
    /// The most bytes that one page of a query reads.
    page: usize,
}

impl Default for MemoryTable {
    fn default() -> Self {
        Self::with_pages_of(PAGE)
    }
}

#[derive(Debug, Default)]
struct Contents {
    items: Items,
    /// The items as the indexes see them while they lag.
    lagging: Option<Items>,
}

impl MemoryTable {
    /// A table whose queries read at most `page` bytes, and at least one item, at a time.
    #[must_use]
    pub fn with_pages_of(page: usize) -> Self {
        Self {
            contents: Mutex::default(),
            page,
        }
    }

    /// Freezes the indexes, as if they lagged, until [`MemoryTable::catch_up_indexes`].
    pub fn lag_indexes(&self) {
        let mut state = self.state();
        state.lagging = Some(state.items.clone());
    }

    /// Lets the indexes see every item again.
    pub fn catch_up_indexes(&self) {
        self.state().lagging = None;
    }

    /// Removes what the TTL of a table would remove at `now`.
    pub fn clean_up(&self, now: Timestamp) {
        let lives = |item: &Item| match item::optional_number(item, item::TTL) {
            Ok(Some(end)) => now < Timestamp::from_millis(end.saturating_mul(1000)),
            _ => true,
        };
        self.state().items.retain(|_, item| lives(item));
    }

    fn state(&self) -> MutexGuard<'_, Contents> {
        // Nothing between the changes of one write can panic, so the data behind a poisoned
        // lock is complete.
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl ReadTable for MemoryTable {
    async fn get(&self, keys: &[Key]) -> Result<Vec<Item>, StoreError> {
        check_keys(keys)?;
        let items = &self.state().items;
        Ok(keys
            .iter()
            .filter_map(|key| items.get(key).cloned())
            .collect())
    }

    async fn query(&self, query: &Query) -> Result<QueryPage, StoreError> {
        if !query.check()? {
            return Ok(QueryPage::default());
        }
        let state = self.state();
        let items = match query.partition.source() {
            QuerySource::Table => &state.items,
            QuerySource::Lists | QuerySource::Sweep => {
                state.lagging.as_ref().unwrap_or(&state.items)
            }
        };
        Ok(page::page(items, query, self.page))
    }
}

#[async_trait]
impl Table for MemoryTable {
    async fn write(&self, write: Write) -> Result<WriteResult, StoreError> {
        write.check()?;
        let items = &mut self.state().items;
        let (mut checks, mut next) = (Vec::new(), Vec::new());
        for statement in write.statements {
            let old = items.get(&statement.key);
            if let Action::Put(item) = &statement.action {
                item::check_size(item, item::size(&statement.key.item()))?;
            }
            if !statement.holds(old) {
                checks.push(ConditionCheck::Failed(old.cloned()));
                continue;
            }
            // What is impossible wins over a condition that another statement fails.
            next.push((statement.key.clone(), statement.apply(old)?));
            checks.push(ConditionCheck::Held);
        }
        if next.len() < checks.len() {
            return Ok(WriteResult::Refused(checks));
        }
        let mut old = None;
        for (key, item) in next {
            old = match item {
                Some(item) => items.insert(key, item),
                None => items.remove(&key),
            };
        }
        Ok(WriteResult::Done(old.filter(|_| write.wants_old)))
    }
}

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
