//! Counts what a tenant uses, in memory.

use super::MemoryStore;
use crate::store::StoreError;
use crate::store::limits::gcra::{Grant, full_at, grant, micros, time_of};
use crate::store::limits::{Limits, Rate, RateBucket, Slot, SlotLease, SlotPool, Tokens, Total};
use crate::task::{TenantId, Timestamp, WriteId};
use async_trait::async_trait;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// What is counted.
#[derive(Debug, Default)]
pub(super) struct LimitTables {
    /// When each bucket is full again, in microseconds.
    buckets: HashMap<RateBucket, i64>,
    /// The leases of each pool, with their ends.
    pools: HashMap<SlotPool, BTreeMap<WriteId, Timestamp>>,
    totals: HashMap<Total, u64>,
    blocked: BTreeSet<TenantId>,
}

impl LimitTables {
    fn is_blocked(&self, pool: &SlotPool) -> bool {
        match pool {
            SlotPool::Streams(tenant) => self.blocked.contains(tenant),
            SlotPool::AllStreams(..) => false,
        }
    }
}

#[async_trait]
impl Limits for MemoryStore {
    async fn take_tokens(
        &self,
        bucket: &RateBucket,
        rate: Rate,
        lot: u32,
        now: Timestamp,
    ) -> Result<Tokens, StoreError> {
        let counters = &mut self.tables().limits;
        if matches!(bucket, RateBucket::Tier(tenant, _) if counters.blocked.contains(tenant)) {
            return Ok(Tokens::Blocked);
        }
        let tat = counters.buckets.entry(bucket.clone()).or_default();
        if grant(*tat, rate, lot, now) == Grant::Stale {
            *tat = full_at(rate, now);
        }
        Ok(match grant(*tat, rate, lot, now) {
            Grant::Tokens(tokens) => {
                *tat = micros(now).max(*tat).saturating_add(time_of(rate, tokens));
                Tokens::Taken(tokens)
            }
            Grant::NoneUntil(at) => Tokens::NoneUntil(at),
            Grant::Stale => Tokens::NoneUntil(now.plus(rate.every)),
        })
    }

    async fn lease_slot(
        &self,
        pool: &SlotPool,
        holder: &WriteId,
        lease: SlotLease,
    ) -> Result<Slot, StoreError> {
        let counters = &mut self.tables().limits;
        if counters.is_blocked(pool) {
            return Ok(Slot::Blocked);
        }
        let leases = counters.pools.entry(pool.clone()).or_default();
        let full = |leases: &BTreeMap<_, _>| {
            !leases.contains_key(holder) && leases.len() >= usize::try_from(lease.cap).unwrap_or(0)
        };
        if full(leases) {
            leases.retain(|_, until| *until > lease.now);
        }
        if full(leases) {
            let first = leases.values().min().copied();
            return Ok(Slot::NoneUntil(first.unwrap_or(lease.until)));
        }
        leases.insert(holder.clone(), lease.until);
        Ok(Slot::Leased)
    }

    async fn renew_slot(
        &self,
        pool: &SlotPool,
        holder: &WriteId,
        until: Timestamp,
    ) -> Result<bool, StoreError> {
        let counters = &mut self.tables().limits;
        if counters.is_blocked(pool) {
            return Ok(false);
        }
        let leases = counters.pools.get_mut(pool);
        let lease = leases.and_then(|leases| leases.get_mut(holder));
        Ok(lease.map(|lease| *lease = until).is_some())
    }

    async fn free_slot(&self, pool: &SlotPool, holder: &WriteId) -> Result<(), StoreError> {
        if let Some(leases) = self.tables().limits.pools.get_mut(pool) {
            leases.remove(holder);
        }
        Ok(())
    }

    async fn add(
        &self,
        total: &Total,
        amount: u64,
        most: u64,
        _clean_at: Timestamp,
    ) -> Result<bool, StoreError> {
        let counters = &mut self.tables().limits;
        let counted = counters.totals.entry(total.clone()).or_default();
        let sum = counted.saturating_add(amount);
        if sum > most {
            return Ok(false);
        }
        *counted = sum;
        Ok(true)
    }

    async fn block(&self, tenant: &TenantId, blocked: bool) -> Result<(), StoreError> {
        let counters = &mut self.tables().limits;
        if blocked {
            counters.blocked.insert(tenant.clone());
        } else {
            counters.blocked.remove(tenant);
        }
        Ok(())
    }
}
