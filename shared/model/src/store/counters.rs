//! Declares how a store sums counters that many processes share.

use super::StoreError;
use async_trait::async_trait;
use std::collections::BTreeMap;

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
#[async_trait]
pub trait Counters: Send + Sync {
    /// Adds to the counters of one shard, which is below [`COUNTER_SHARDS`]. Each amount is
    /// added once or, if the store does not answer, possibly not at all; never twice.
    ///
    /// # Errors
    /// [`StoreError`] when amounts may be missing. The caller must not repeat the call.
    async fn add_counters(&self, shard: u32, counters: &[Counter]) -> Result<(), StoreError>;

    /// All counters of all shards, in any order. A series can be there several times.
    ///
    /// # Errors
    /// [`StoreError`] when the store does not answer.
    async fn read_counters(&self) -> Result<Vec<Counter>, StoreError>;
}
