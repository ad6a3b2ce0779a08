//! Leases slots of a pool.
//!
//! A pool is one item with a map from each holder to the end of its lease. So the cap is one
//! condition. A writer that finds the pool full removes the leases that have ended.

use super::{BLOCKED, OPEN, ROUNDS, contended, refused, update};
use crate::dynamodb::conditional_write::ConditionalWrite;
use crate::dynamodb::item::{self, Item};
use crate::dynamodb::key;
use crate::dynamodb::store::DynamoStore;
use crate::dynamodb::write::WriteResult;
use a2a_lambda_model::store::StoreError;
use a2a_lambda_model::store::limits::{Slot, SlotLease, SlotPool};
use a2a_lambda_model::task::{Timestamp, WriteId};
use aws_sdk_dynamodb::types::AttributeValue;
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

/// The attribute with the leases.
const LEASES: &str = "leases";
/// The most ended leases that one write removes. An expression has at most 300 operators
/// (Amazon DynamoDB, "Service, account, and table quotas").
const ENDED: usize = 50;
/// How long an item is kept after its last lease.
const KEPT: Duration = Duration::from_secs(24 * 3600);

/// The ends of leases by their holders.
type LeaseEnds = BTreeMap<String, Timestamp>;

/// An update of the pool for `holder`.
fn of_holder(pool: &SlotPool, holder: &WriteId, expression: String) -> ConditionalWrite {
    let (partition, sort) = key::pool(pool);
    let mut write = update(&partition, sort, expression);
    write.name(LEASES);
    write
        .names
        .insert("#h".to_owned(), holder.as_str().to_owned());
    write
}

fn lasts_until(write: &mut ConditionalWrite, until: Timestamp) {
    write.name(item::TTL);
    write.value(":until", item::number(until.as_millis()));
    let ttl = until.plus(KEPT).ttl_seconds();
    write.value(":ttl", item::number(ttl));
}

/// Leases a slot if one is free.
fn free(pool: &SlotPool, holder: &WriteId, lease: SlotLease) -> ConditionalWrite {
    let set = "SET #leases.#h = :until, #ttl = :ttl".to_owned();
    let mut write = of_holder(pool, holder, set);
    lasts_until(&mut write, lease.until);
    write.value(":cap", item::number(lease.cap));
    let free = "(attribute_exists(#leases.#h) OR size(#leases) < :cap)";
    write.when(&format!("{OPEN} AND {free}"))
}

/// Leases the first slot of a pool.
fn first(pool: &SlotPool, holder: &WriteId, lease: SlotLease) -> ConditionalWrite {
    let (partition, sort) = key::pool(pool);
    let set = "SET #leases = :leases, #ttl = :ttl".to_owned();
    let mut write = update(&partition, sort, set);
    write.name(LEASES);
    lasts_until(&mut write, lease.until);
    let until = write.values.remove(":until");
    let leases = until.map(|until| (holder.as_str().to_owned(), until));
    let leases: HashMap<_, _> = leases.into_iter().collect();
    write.value(":leases", AttributeValue::M(leases));
    write.when(&format!("{OPEN} AND attribute_not_exists(#leases)"))
}

/// Leases a slot, and removes leases that have ended, if they are as in `ended`.
fn instead(
    pool: &SlotPool,
    holder: &WriteId,
    lease: SlotLease,
    ended: &LeaseEnds,
) -> ConditionalWrite {
    let mut paths = Vec::new();
    let mut condition = format!("{OPEN} AND size(#leases) < :cap");
    for number in 0..ended.len() {
        paths.push(format!("#leases.#e{number}"));
        condition.push_str(&format!(" AND #leases.#e{number} = :e{number}"));
    }
    let set = "SET #leases.#h = :until, #ttl = :ttl";
    let mut write = of_holder(pool, holder, format!("{set} REMOVE {}", paths.join(", ")));
    lasts_until(&mut write, lease.until);
    for (number, (holder, until)) in ended.iter().enumerate() {
        write.names.insert(format!("#e{number}"), holder.clone());
        write.value(&format!(":e{number}"), item::number(until.as_millis()));
    }
    let cap = u64::from(lease.cap) + u64::try_from(ended.len()).unwrap_or(0);
    write.value(":cap", item::number(cap));
    write.when(&condition)
}

/// The leases of a stored pool; `None` if it has never had one.
fn leases(item: &Item) -> Result<Option<LeaseEnds>, StoreError> {
    let broken = || StoreError::Corrupt("a pool has a lease that is not a time".to_owned());
    let Some(stored) = item.get(LEASES) else {
        return Ok(None);
    };
    let stored = stored.as_m().map_err(|_| broken())?;
    let mut leases = LeaseEnds::new();
    for (holder, until) in stored {
        let until = until.as_n().map_err(|_| broken())?;
        let until = until.parse().map_err(|_| broken())?;
        leases.insert(holder.clone(), Timestamp::from_millis(until));
    }
    Ok(Some(leases))
}

impl DynamoStore {
    pub(super) async fn lease(
        &self,
        pool: &SlotPool,
        holder: &WriteId,
        lease: SlotLease,
    ) -> Result<Slot, StoreError> {
        let mut write = free(pool, holder, lease);
        for _ in 0..ROUNDS {
            let checks = match self.write(vec![write]).await? {
                WriteResult::Done => return Ok(Slot::Leased),
                WriteResult::Unknown(why) => return Err(StoreError::Unavailable(why)),
                WriteResult::Refused(checks) => checks,
            };
            let item = refused(checks);
            if item.contains_key(BLOCKED) {
                return Ok(Slot::Blocked);
            }
            write = match leases(&item)? {
                None => first(pool, holder, lease),
                Some(leases) if !is_full(&leases, holder, lease) => free(pool, holder, lease),
                Some(leases) => {
                    let earliest = leases.values().min().copied();
                    let mut ended = leases;
                    ended.retain(|_, until| *until <= lease.now);
                    if ended.is_empty() {
                        return Ok(Slot::NoneUntil(earliest.unwrap_or(lease.until)));
                    }
                    let ended = ended.into_iter().take(ENDED).collect();
                    instead(pool, holder, lease, &ended)
                }
            };
        }
        Err(contended())
    }

    pub(super) async fn renew(
        &self,
        pool: &SlotPool,
        holder: &WriteId,
        until: Timestamp,
    ) -> Result<bool, StoreError> {
        let set = "SET #leases.#h = :until, #ttl = :ttl".to_owned();
        let mut write = of_holder(pool, holder, set);
        lasts_until(&mut write, until);
        let condition = format!("{OPEN} AND attribute_exists(#leases.#h)");
        self.write_once(write.when(&condition)).await
    }

    pub(super) async fn free(&self, pool: &SlotPool, holder: &WriteId) -> Result<(), StoreError> {
        let mut write = of_holder(pool, holder, "REMOVE #leases.#h".to_owned());
        // DynamoDB refuses a name that no expression uses.
        write.names.remove("#blocked");
        let has_one = "attribute_exists(#leases.#h)";
        self.write_once(write.when(has_one)).await.map(|_| ())
    }
}

/// Whether `holder` cannot get a slot unless a lease is removed.
fn is_full(leases: &LeaseEnds, holder: &WriteId, lease: SlotLease) -> bool {
    let cap = usize::try_from(lease.cap).unwrap_or(usize::MAX);
    !leases.contains_key(holder.as_str()) && leases.len() >= cap
}
