//! What the callers of one tenant may use.

use crate::store::limits::Rate;
use std::collections::BTreeMap;
use std::time::Duration;

/// The longest time in which one token is added: a rate of one a minute, in microseconds.
const MINUTE: u64 = 60_000_000;
/// A lot is this part of a rate (1/100). Lots of 20 processes that use nothing of them are
/// then a fifth of the rate.
const LOT: u32 = 100;

/// What the callers of one tenant may use. `None` is no limit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LimitPolicy {
    /// How many calls the callers of the tenant may make.
    pub rates: RatePolicy,
    /// The most streams that a tenant has open at once.
    pub streams_per_tenant: Option<u32>,
    /// The streams of all tenants together.
    pub shared_streams: Option<SharedStreams>,
    /// The most turns of a tenant that workers run at once; above 0.
    pub turns_per_tenant: Option<u32>,
    /// The most bytes of the uploads that a tenant orders, and of the objects that its tasks store,
    /// on one day (UTC).
    pub stored_bytes_per_day: Option<u64>,
    /// The most tokens of models that a tenant uses on one day (UTC).
    pub tokens_per_day: Option<u64>,
    /// The most tokens of models that a task uses.
    pub tokens_per_task: Option<u64>,
}

/// The rates of one tenant.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RatePolicy {
    /// The calls of each tier that `tiers` does not name. Each has a bucket of its own.
    pub calls: Option<CallRate>,
    /// The calls of tiers, by their names.
    pub tiers: BTreeMap<String, CallRate>,
    /// The sends to a skill by its id, and to all skills with a tag by `#` and the tag.
    pub skills: BTreeMap<String, CallRate>,
}

/// A rate of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallRate {
    /// Calls a minute; above 0.
    pub per_minute: u32,
    /// The most calls at once after a rest; above 0.
    pub burst: u32,
}

impl CallRate {
    /// A rate that admits the calls of a minute at once.
    #[must_use]
    pub const fn per_minute(calls: u32) -> Self {
        Self {
            per_minute: calls,
            burst: calls,
        }
    }

    /// The same rate for a store.
    pub(in crate::engine) fn rate(self) -> Rate {
        let every = (MINUTE / u64::from(self.per_minute.max(1))).max(1);
        Rate {
            every: Duration::from_micros(every),
            burst: self.burst.max(1),
        }
    }

    /// How many tokens a process takes with one write.
    pub(in crate::engine) fn lot(self) -> u32 {
        (self.per_minute.min(self.burst) / LOT).max(1)
    }
}

/// A pool of streams that functions share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedStreams {
    /// The name of the pool.
    pub pool: String,
    /// The most streams that are open in these functions at once; above 0.
    pub cap: u32,
}
