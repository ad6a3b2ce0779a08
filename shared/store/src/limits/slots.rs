//! Leases slots of a pool.
//!
//! A pool is one item with a map from each holder to the end of its lease. So the cap is one
//! condition. A writer that finds the pool full removes the leases that have ended.

use super::{Limits, ROUNDS, Slot, SlotLease, SlotPool, contention_error};
use crate::item::{TTL, as_i64};
use crate::keys;
use crate::table::{self, Comparison, Condition, Item, ItemChange, Path, Statement, Value};
use a2a_lambda_model::store::StoreError;
use a2a_lambda_model::task::{Timestamp, WriteId};
use std::collections::BTreeMap;
use std::time::Duration;

/// The attribute with the leases.
const LEASES: &str = "leases";
/// The most ended leases that one write removes. An expression has at most 300 operators
/// (Amazon DynamoDB, "Service, account, and table quotas").
pub(super) const ENDED: usize = 50;
/// How long an item is kept after its last lease.
const KEPT: Duration = Duration::from_secs(24 * 3600);

/// The ends of leases by their holders.
pub(super) type LeaseEnds = BTreeMap<String, Timestamp>;

fn of(holder: &str) -> Path {
    Path::member(LEASES, holder)
}

/// The changes of a lease that ends at `until`.
fn until(holder: &WriteId, until: Timestamp) -> Vec<ItemChange> {
    let end = ItemChange::Set(of(holder.as_str()), until.as_millis().into());
    vec![end, set_ttl(until)]
}

fn set_ttl(until: Timestamp) -> ItemChange {
    ItemChange::set(TTL, until.plus(KEPT).ttl_seconds())
}

/// Leases a slot if one is free.
fn free(pool: &SlotPool, holder: &WriteId, lease: SlotLease) -> Statement {
    let free = Condition::Any(vec![
        Condition::Exists(of(holder.as_str())),
        Condition::SizeBelow(LEASES.into(), lease.cap.into()),
    ]);
    Statement::update(keys::pool(pool), until(holder, lease.until)).when(free)
}

/// Leases the first slot of a pool.
fn first(pool: &SlotPool, holder: &WriteId, lease: SlotLease) -> Statement {
    let leases = [(holder.as_str().to_owned(), lease.until.as_millis().into())];
    let leases = ItemChange::Set(LEASES.into(), Value::Map(leases.into()));
    let first = Statement::update(keys::pool(pool), [leases, set_ttl(lease.until)]);
    first.when(Condition::absent(LEASES))
}

/// Leases a slot, and removes leases that have ended, if they are as in `ends`.
fn instead(pool: &SlotPool, holder: &WriteId, lease: SlotLease, ends: &LeaseEnds) -> Statement {
    let cap = i64::from(lease.cap).saturating_add(as_i64(ends.len() as u64));
    let mut conditions = vec![Condition::SizeBelow(LEASES.into(), cap)];
    let mut changes = until(holder, lease.until);
    for (holder, until) in ends {
        changes.push(ItemChange::Remove(of(holder)));
        let same = Condition::Is(of(holder), Comparison::Equal, until.as_millis().into());
        conditions.push(same);
    }
    Statement::update(keys::pool(pool), changes).when(Condition::All(conditions))
}

/// The times of the members of a stored map; `None` if it has never had one.
pub(super) fn times(item: &Item, name: &str) -> Result<Option<LeaseEnds>, StoreError> {
    let error = || StoreError::Corrupt(format!("`{name}` has a member that is not a time"));
    let members = match item.get(name) {
        None => return Ok(None),
        Some(Value::Map(members)) => members,
        Some(_) => return Err(error()),
    };
    let leases = members.iter().map(|(holder, until)| match until {
        Value::Number(until) => Ok((holder.clone(), Timestamp::from_millis(*until))),
        _ => Err(error()),
    });
    leases.collect::<Result<_, _>>().map(Some)
}

impl Limits {
    /// Leases a slot for `holder`. A holder that has a slot already keeps it, with the new end
    /// of its lease.
    ///
    /// # Errors
    /// [`StoreError`] when the table does not answer. Then the slot may be leased.
    pub async fn lease_slot(
        &self,
        pool: &SlotPool,
        holder: &WriteId,
        lease: SlotLease,
    ) -> Result<Slot, StoreError> {
        let mut write = free(pool, holder, lease);
        for _ in 0..ROUNDS {
            let Some(item) = self.try_write(write).await? else {
                return Ok(Slot::Leased);
            };
            write = match times(&item, LEASES)? {
                None => first(pool, holder, lease),
                Some(leases) if !is_full(&leases, holder, lease) => free(pool, holder, lease),
                Some(leases) => {
                    let earliest = leases.values().min().copied();
                    let mut ends = leases;
                    ends.retain(|_, until| *until <= lease.now);
                    if ends.is_empty() {
                        return Ok(Slot::NoneUntil(earliest.unwrap_or(lease.until)));
                    }
                    let ends = ends.into_iter().take(ENDED).collect();
                    instead(pool, holder, lease, &ends)
                }
            };
        }
        Err(contention_error())
    }

    /// Extends the lease of `holder` to `end`. Returns `false` if the pool no longer has it.
    ///
    /// # Errors
    /// [`StoreError`] when the table does not answer.
    pub async fn renew_slot(
        &self,
        pool: &SlotPool,
        holder: &WriteId,
        end: Timestamp,
    ) -> Result<bool, StoreError> {
        let renewal = Statement::update(keys::pool(pool), until(holder, end));
        let has_one = Condition::Exists(of(holder.as_str()));
        self.table.try_write(renewal.when(has_one)).await
    }

    /// How many slots of a pool are leased at `now`.
    ///
    /// # Errors
    /// [`StoreError`] when the table does not answer.
    pub async fn live_slots(&self, pool: &SlotPool, now: Timestamp) -> Result<u32, StoreError> {
        let item = table::item(&*self.table, keys::pool(pool)).await?;
        let leases = times(&item.unwrap_or_default(), LEASES)?.unwrap_or_default();
        let live = leases.values().filter(|until| **until > now).count();
        Ok(u32::try_from(live).unwrap_or(u32::MAX))
    }

    /// Gives the slot of `holder` back; succeeds if it has none.
    ///
    /// # Errors
    /// [`StoreError`] when the table does not answer. Then the lease ends at its time.
    pub async fn free_slot(&self, pool: &SlotPool, holder: &WriteId) -> Result<(), StoreError> {
        let lease = of(holder.as_str());
        let removal = Statement::update(keys::pool(pool), [ItemChange::Remove(lease.clone())]);
        let is_held = Condition::Exists(lease);
        self.table.try_write(removal.when(is_held)).await.map(drop)
    }
}

/// Whether `holder` cannot get a slot unless a lease is removed.
fn is_full(leases: &LeaseEnds, holder: &WriteId, lease: SlotLease) -> bool {
    let cap = usize::try_from(lease.cap).unwrap_or(usize::MAX);
    !leases.contains_key(holder.as_str()) && leases.len() >= cap
}
