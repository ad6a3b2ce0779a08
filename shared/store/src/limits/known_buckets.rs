//! Remembers the last known states of rate buckets, so that the first update that a process
//! sends is mostly the right one.

use crate::limits::RateBucket;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The largest number of buckets that a process remembers.
const KEPT: usize = 10_000;

/// The last known states of buckets.
#[derive(Debug, Default)]
pub(super) struct KnownBuckets(Mutex<HashMap<RateBucket, KnownBucket>>);

#[derive(Debug, Clone, Copy, Default)]
struct KnownBucket {
    /// When the bucket is full again, in microseconds; later if others took tokens since.
    tat: i64,
    /// Whether others had taken tokens at the last look.
    is_shared: bool,
}

impl KnownBuckets {
    /// Whether the bucket is probably in use.
    pub(super) fn guess(&self, bucket: &RateBucket, now: i64) -> bool {
        let state = self.buckets().get(bucket).copied().unwrap_or_default();
        state.is_shared || state.tat >= now
    }

    /// Remembers that a guess was wrong: the bucket is full at `tat`.
    pub(super) fn correct(&self, bucket: &RateBucket, tat: i64, is_shared: bool) {
        let state = KnownBucket { tat, is_shared };
        self.keep(bucket, state);
    }

    /// Remembers that tokens were taken for `cost`.
    pub(super) fn took(&self, bucket: &RateBucket, now: i64, cost: i64) {
        let mut state = self.buckets().get(bucket).copied().unwrap_or_default();
        state.tat = state.tat.max(now).saturating_add(cost);
        self.keep(bucket, state);
    }

    fn keep(&self, bucket: &RateBucket, state: KnownBucket) {
        let mut buckets = self.buckets();
        if buckets.len() >= KEPT && !buckets.contains_key(bucket) {
            // Without the memory a decision costs at most one more write.
            buckets.clear();
        }
        buckets.insert(bucket.clone(), state);
    }

    fn buckets(&self) -> MutexGuard<'_, HashMap<RateBucket, KnownBucket>> {
        // Nothing that can panic runs between the changes under the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_lambda_model::task::TenantId;

    #[test]
    fn a_process_remembers_a_bounded_number_of_buckets() {
        let known = KnownBuckets::default();
        let tenant = TenantId::parse("acme").unwrap();
        let bucket = |n: usize| RateBucket::Tier(tenant.clone(), n.to_string());
        for number in 0..KEPT * 2 + 1 {
            known.took(&bucket(number), 0, 5);
        }
        assert!(known.buckets().len() <= KEPT);
        assert!(known.guess(&bucket(KEPT * 2), 5));
        assert!(!known.guess(&bucket(KEPT * 2), 6));
    }
}
