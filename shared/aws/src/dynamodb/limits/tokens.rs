//! Takes tokens of a bucket.
//!
//! DynamoDB has no maximum of two numbers in an update. So an idle bucket and a bucket in
//! use need different updates. A process remembers the last state of each bucket to send
//! the right one first; then a decision is one write.

use super::{OPEN, ROUNDS, contended, refused, update};
use crate::dynamodb::conditional_write::ConditionalWrite;
use crate::dynamodb::item::{self, Item};
use crate::dynamodb::key;
use crate::dynamodb::store::DynamoStore;
use crate::dynamodb::write::WriteResult;
use a2a_lambda_model::store::StoreError;
use a2a_lambda_model::store::limits::gcra::{Grant, forgotten_at, full_at, grant, micros, time_of};
use a2a_lambda_model::store::limits::{Rate, RateBucket, Tokens};
use a2a_lambda_model::task::Timestamp;

/// A bucket at a time.
#[derive(Clone, Copy)]
struct Taker<'a> {
    bucket: &'a RateBucket,
    rate: Rate,
    now: Timestamp,
}

impl Taker<'_> {
    /// An update of the bucket that sets its attribute `#tat` to `value`.
    fn write(&self, value: &str) -> ConditionalWrite {
        let (sort, attribute) = key::bucket(self.bucket);
        let set = format!("SET #tat = {value}, #ttl = :ttl");
        let mut write = update(&key::limits(self.bucket.tenant()), &sort, set);
        write.names.insert("#tat".to_owned(), attribute);
        write.name(item::TTL);
        let ttl = forgotten_at(self.rate, self.now).ttl_seconds();
        write.value(":ttl", item::number(ttl));
        write
    }

    /// Takes `lot` tokens of a bucket in use.
    fn busy(&self, lot: u32) -> ConditionalWrite {
        let cost = time_of(self.rate, lot);
        let most = full_at(self.rate, self.now).saturating_sub(cost);
        let mut write = self.write("#tat + :cost");
        write.value(":cost", item::number(cost));
        write.value(":now", item::number(micros(self.now)));
        write.value(":most", item::number(most));
        write.when(&format!("{OPEN} AND #tat BETWEEN :now AND :most"))
    }

    /// Takes `lot` tokens of a full bucket.
    fn idle(&self, lot: u32) -> ConditionalWrite {
        let now = micros(self.now);
        let next = now.saturating_add(time_of(self.rate, lot));
        let mut write = self.write(":next");
        write.value(":next", item::number(next));
        write.value(":now", item::number(now));
        let full = "(attribute_not_exists(#tat) OR #tat < :now)";
        write.when(&format!("{OPEN} AND {full}"))
    }

    /// Empties a bucket whose state `seen` comes from a slower rate.
    fn reset(&self, seen: i64) -> ConditionalWrite {
        let mut write = self.write(":next");
        let full_at = full_at(self.rate, self.now);
        write.value(":next", item::number(full_at));
        write.value(":seen", item::number(seen));
        write.when(&format!("{OPEN} AND #tat = :seen"))
    }

    /// When the bucket in `item` is full again, in microseconds.
    fn tat(&self, item: &Item) -> Result<i64, StoreError> {
        let (_, attribute) = key::bucket(self.bucket);
        match item.contains_key(&attribute) {
            true => item::integer(item, &attribute),
            false => Ok(0),
        }
    }
}

impl DynamoStore {
    pub(super) async fn take(
        &self,
        bucket: &RateBucket,
        rate: Rate,
        lot: u32,
        now: Timestamp,
    ) -> Result<Tokens, StoreError> {
        let taker = Taker { bucket, rate, now };
        let mut lot = lot.clamp(1, rate.burst.max(1));
        let mut busy = self.buckets.guess(bucket, micros(now));
        for _ in 0..ROUNDS {
            let write = if busy {
                taker.busy(lot)
            } else {
                taker.idle(lot)
            };
            let checks = match self.write(vec![write]).await? {
                WriteResult::Done => {
                    self.buckets.took(bucket, micros(now), time_of(rate, lot));
                    return Ok(Tokens::Taken(lot));
                }
                WriteResult::Unknown(why) => return Err(StoreError::Unavailable(why)),
                WriteResult::Refused(checks) => checks,
            };
            let item = refused(checks);
            if item.contains_key(super::BLOCKED) {
                return Ok(Tokens::Blocked);
            }
            let tat = taker.tat(&item)?;
            busy = tat >= micros(now);
            self.buckets.correct(bucket, tat, busy);
            match grant(tat, rate, lot, now) {
                Grant::Tokens(tokens) => lot = tokens,
                Grant::NoneUntil(at) => return Ok(Tokens::NoneUntil(at)),
                Grant::Stale => {
                    if self.write_once(taker.reset(tat)).await? {
                        return Ok(Tokens::NoneUntil(now.plus(rate.every)));
                    }
                }
            }
        }
        Err(contended())
    }
}
