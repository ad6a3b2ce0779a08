//! Takes tokens of a bucket.
//!
//! A table has no maximum of two numbers in an update. So an idle bucket and a bucket in use
//! need different updates. A process remembers the last state of each bucket to send the
//! right one first; then a decision is one write.

use super::gcra::{Grant, forgotten_at, full_at, grant, micros, time_of};
use super::{Limits, PAUSE, ROUNDS, Rate, RateBucket, Tokens, contended, pauses};
use crate::item::{self, TTL};
use crate::keys;
use crate::table::{Comparison, Condition, ItemChange, Statement};
use a2a_lambda_model::store::StoreError;
use a2a_lambda_model::task::Timestamp;

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
        let take = ItemChange::Plus {
            at: self.tat.clone(),
            start: None,
            amount,
        };
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
            let Some(item) = self.refused(write).await? else {
                self.buckets.took(bucket, micros(now), time_of(rate, lot));
                return Ok(Tokens::Taken(lot));
            };
            if let Some(pause) = pauses::pause(&item)? {
                return Ok(Tokens::Paused(pause));
            }
            let tat = item::optional_number(&item, &taker.tat)?.unwrap_or(0);
            busy = tat >= micros(now);
            self.buckets.correct(bucket, tat, busy);
            match grant(tat, rate, lot, now) {
                Grant::Tokens(tokens) => lot = tokens,
                Grant::NoneUntil(at) => return Ok(Tokens::NoneUntil(at)),
                Grant::Stale => {
                    if self.done(taker.reset(tat)).await? {
                        return Ok(Tokens::NoneUntil(now.plus(rate.every)));
                    }
                }
            }
        }
        Err(contended())
    }
}
