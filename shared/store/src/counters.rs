//! Sums the counters of all processes in the table.
//!
//! Each label set of a metric has an item of its own. So no item comes near 400 KB, and a
//! write costs one unit.

use crate::item::as_i64;
use crate::keys;
use crate::table::{self, Item, ItemChange, Statement, Table, Value};
use a2a_lambda_model::store::StoreError;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Requests that run at the same time.
const AT_ONCE: usize = 8;

/// Over how many shards the processes spread their writes. One partition of the table takes
/// 1,000 writes a second. The number may grow: a reader that knows the new one finds all.
pub const COUNTER_SHARDS: u32 = 8;

/// Amounts that belong to one label set of one metric.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counter {
    /// The metric and its labels, in at most 1,000 bytes. A store does not read it.
    pub series: String,
    /// The amounts by name. A name has letters and digits only.
    pub amounts: BTreeMap<String, u64>,
}

/// Counters that many processes add to. They hold no content of a tenant.
#[derive(Debug, Clone)]
pub struct Counters(Arc<dyn Table>);

impl Counters {
    /// The counters in `table`.
    #[must_use]
    pub fn new(table: Arc<dyn Table>) -> Self {
        Self(table)
    }

    /// Adds to the counters of one shard, which is below [`COUNTER_SHARDS`]. Each amount is
    /// added once or, if the table does not answer, possibly not at all; never twice.
    ///
    /// # Errors
    /// [`StoreError`] when amounts may be missing. The caller must not repeat the call.
    pub async fn add_counters(&self, shard: u32, counters: &[Counter]) -> Result<(), StoreError> {
        let shard = shard % COUNTER_SHARDS;
        let counters = counters.iter().filter(|it| !it.amounts.is_empty());
        let writes: Vec<_> = counters.map(|counter| self.add(shard, counter)).collect();
        // All of them run, also after one has failed.
        let results: Vec<_> = stream::iter(writes)
            .buffer_unordered(AT_ONCE)
            .collect()
            .await;
        results.into_iter().collect()
    }

    /// All counters of all shards, in any order. A series can be there several times. The read
    /// is consistent: a sum that was smaller than the one before would look like a restart to
    /// the reader.
    ///
    /// # Errors
    /// [`StoreError`] when the table does not answer.
    pub async fn read_counters(&self) -> Result<Vec<Counter>, StoreError> {
        let shards: Vec<_> = (0..COUNTER_SHARDS)
            .map(|shard| table::query_all(&*self.0, keys::counters(shard).into()))
            .collect();
        let items: Vec<Vec<Item>> = stream::iter(shards)
            .buffer_unordered(AT_ONCE)
            .try_collect()
            .await?;
        Ok(items.iter().flatten().filter_map(counter).collect())
    }

    async fn add(&self, shard: u32, counter: &Counter) -> Result<(), StoreError> {
        let amounts = counter.amounts.iter();
        let adds = amounts.map(|(name, amount)| ItemChange::Add(name.clone(), as_i64(*amount)));
        let key = keys::counter(shard, &counter.series);
        let statement = Statement::update(key, adds.collect::<Vec<_>>());
        self.0.try_write(statement).await.map(drop)
    }
}

/// The counter in an item. Attributes that are not numbers belong to a later version.
fn counter(item: &Item) -> Option<Counter> {
    let amount = |(name, value): (&String, &Value)| match value {
        Value::Number(sum) => Some((name.clone(), u64::try_from(*sum).ok()?)),
        _ => None,
    };
    let Some(Value::Text(series)) = item.get(keys::SK) else {
        return None;
    };
    Some(Counter {
        series: series.clone(),
        amounts: item.iter().filter_map(amount).collect(),
    })
}
