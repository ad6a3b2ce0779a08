//! Counters that many processes share.

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
