//! Takes tokens of a bucket, and pauses it.
//!
//! A table has no maximum of two numbers in an update. So an idle bucket and a bucket in use
//! need different updates. A process remembers the last state of each bucket to send the
//! right one first; then a decision is one write.
//!
//! The end of a pause gives no tokens: who may try whether it is over replaces it by a short
//! one.

use super::gcra::{Grant, forgotten_at, full_at, grant, micros, time_of};
use super::{BucketPause, Limits, ROUNDS, Rate, RateBucket, Tokens, contention_error};
use crate::item::{self, TTL};
use crate::keys;
use crate::table::{Comparison, Condition, Item, ItemChange, Statement};
use a2a_lambda_model::store::StoreError;
use a2a_lambda_model::task::Timestamp;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The attribute with the end of a bucket's pause.
const PAUSE: &str = "paused";
/// The attribute with the number of pauses in a row.
const PAUSES: &str = "pauses";
/// The largest number of buckets that a process remembers.
const KNOWN_MAX: usize = 10_000;

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
    fn guess(&self, bucket: &RateBucket, now: i64) -> bool {
        let state = self.buckets().get(bucket).copied().unwrap_or_default();
        state.is_shared || state.tat >= now
    }

    /// Remembers that tokens were taken for `cost`.
    fn took(&self, bucket: &RateBucket, now: i64, cost: i64) {
        let state = self.buckets().get(bucket).copied().unwrap_or_default();
        let tat = state.tat.max(now).saturating_add(cost);
        self.keep(bucket, tat, state.is_shared);
    }

    /// Remembers that the bucket is full at `tat`, and whether others take tokens of it.
    fn keep(&self, bucket: &RateBucket, tat: i64, is_shared: bool) {
        let mut buckets = self.buckets();
        if buckets.len() >= KNOWN_MAX && !buckets.contains_key(bucket) {
            // Without the memory a decision costs at most one more write.
            buckets.clear();
        }
        buckets.insert(bucket.clone(), KnownBucket { tat, is_shared });
    }

    fn buckets(&self) -> MutexGuard<'_, HashMap<RateBucket, KnownBucket>> {
        // Nothing that can panic runs between the changes under the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A bucket at a time.
struct Taker<'a> {
    bucket: &'a RateBucket,
    rate: Rate,
    now: Timestamp,
    /// The attribute with the time from which on the bucket is full, in microseconds.
    tat: String,
}

impl Taker<'_> {
    fn write(&self, change: ItemChange, condition: Condition) -> Statement {
        let ttl = forgotten_at(self.rate, self.now).ttl_seconds();
        let (key, _) = keys::bucket(self.bucket);
        let free = Condition::All(vec![Condition::absent(PAUSE), condition]);
        Statement::update(key, [change, ItemChange::set(TTL, ttl)]).when(free)
    }

    /// Takes `lot` tokens of a bucket in use.
    fn busy(&self, lot: u32) -> Statement {
        let amount = time_of(self.rate, lot);
        let most = full_at(self.rate, self.now).saturating_sub(amount);
        let take = ItemChange::plus(&self.tat, None, amount);
        let tat = self.tat.as_str().into();
        let some = Condition::Between(tat, micros(self.now).into(), most.into());
        self.write(take, some)
    }

    /// Takes `lot` tokens of a full bucket.
    fn idle(&self, lot: u32) -> Statement {
        let now = micros(self.now);
        let next = now.saturating_add(time_of(self.rate, lot));
        let full = Condition::Any(vec![
            Condition::absent(&self.tat),
            Condition::is(&self.tat, Comparison::Below, now),
        ]);
        self.write(ItemChange::set(&self.tat, next), full)
    }

    /// Empties a bucket whose state `tat` comes from a slower rate.
    fn reset(&self, tat: i64) -> Statement {
        let same = Condition::is(&self.tat, Comparison::Equal, tat);
        let full_at = full_at(self.rate, self.now);
        self.write(ItemChange::set(&self.tat, full_at), same)
    }
}

/// The pause of a bucket, also one that is over.
fn pause(bucket: &Item) -> Result<Option<BucketPause>, StoreError> {
    let until = item::optional_number(bucket, PAUSE)?;
    let number = item::optional_number(bucket, PAUSES)?.unwrap_or_default();
    Ok(until.map(|until| BucketPause {
        until: Timestamp::from_millis(until),
        number: u32::try_from(number).unwrap_or(u32::MAX),
    }))
}

impl Limits {
    /// Takes up to `lot` tokens of a bucket: as many as there are, at least one. A `lot` is at
    /// most the burst of the rate.
    ///
    /// # Errors
    /// [`StoreError`] when the table does not answer. Then tokens may be taken.
    pub async fn take_tokens(
        &self,
        bucket: &RateBucket,
        rate: Rate,
        lot: u32,
        now: Timestamp,
    ) -> Result<Tokens, StoreError> {
        let (_, tat) = keys::bucket(bucket);
        let taker = Taker {
            bucket,
            rate,
            now,
            tat,
        };
        let mut lot = lot.clamp(1, rate.burst.max(1));
        let mut busy = self.buckets.guess(bucket, micros(now));
        for _ in 0..ROUNDS {
            let write = if busy {
                taker.busy(lot)
            } else {
                taker.idle(lot)
            };
            let Some(item) = self.try_write(write).await? else {
                self.buckets.took(bucket, micros(now), time_of(rate, lot));
                return Ok(Tokens::Taken(lot));
            };
            if let Some(pause) = pause(&item)? {
                return Ok(Tokens::Paused(pause));
            }
            let tat = item::optional_number(&item, &taker.tat)?.unwrap_or(0);
            busy = tat >= micros(now);
            self.buckets.keep(bucket, tat, busy);
            match grant(tat, rate, lot, now) {
                Grant::Tokens(tokens) => lot = tokens,
                Grant::NoneUntil(at) => return Ok(Tokens::NoneUntil(at)),
                Grant::Stale => {
                    if self.table.try_write(taker.reset(tat)).await? {
                        return Ok(Tokens::NoneUntil(now.plus(rate.every)));
                    }
                }
            }
        }
        Err(contention_error())
    }

    /// Replaces the pause `before` of a bucket by `next`. Returns `false`, and changes nothing,
    /// if the bucket has another one.
    ///
    /// # Errors
    /// [`StoreError`] when the table does not answer. Then it may be replaced.
    pub async fn replace_pause(
        &self,
        bucket: &RateBucket,
        before: Option<BucketPause>,
        next: Option<BucketPause>,
    ) -> Result<bool, StoreError> {
        let same = match before {
            None => Condition::absent(PAUSE),
            Some(it) => Condition::is(PAUSE, Comparison::Equal, it.until.as_millis()),
        };
        let changes = match next {
            None => [PAUSE, PAUSES].map(|name| ItemChange::Remove(name.into())),
            Some(it) => [
                ItemChange::set(PAUSE, it.until.as_millis()),
                ItemChange::set(PAUSES, i64::from(it.number)),
            ],
        };
        let key = keys::bucket(bucket).0;
        let pause = Statement::update(key, changes).when(same);
        self.table.try_write(pause).await
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
        for number in 0..KNOWN_MAX * 2 + 1 {
            known.took(&bucket(number), 0, 5);
        }
        assert!(known.buckets().len() <= KNOWN_MAX);
        assert!(known.guess(&bucket(KNOWN_MAX * 2), 5));
        assert!(!known.guess(&bucket(KNOWN_MAX * 2), 6));
    }
}
