//! Leases slots: for each open stream one of its tenant and one of all tenants, and for each turn
//! from the queue one of its tenant.
//!
//! A stream or a turn renews its leases while it runs and frees them at its end. After a crash
//! they end by themselves. If an operator brakes the tenant, a stream shows no further frame.
//!
//! If the store does not answer, both run without a slot.

use super::error::EngineError;
use super::reader::Reader;
use crate::auth::Caller;
use crate::store::StoreError;
use crate::store::limits::{Limits, Slot, SlotLease, SlotPool};
use crate::task::{A2aError, TenantId, Timestamp, WriteId};
use futures::future::{Either, select};
use std::pin::pin;
use std::time::Duration;
use tokio::sync::oneshot;

/// How long a lease lasts without a renewal.
const LEASE: Duration = Duration::from_secs(90);
/// How often leases are renewed.
const RENEWAL: Duration = Duration::from_secs(30);
/// A large pool has parts of at most this many slots, so that an item stays below 1 KB and
/// a renewal costs one write unit.
const PART: u32 = 20;
/// In how many parts of a shared pool a stream looks for a free slot.
const LOOKS: usize = 4;
/// The longest `Retry-After` for a stream without a slot, in seconds. Most slots become free
/// before their leases end.
const LONGEST_WAIT: u64 = 30;

/// Ends the frames of a stream with an error.
pub(crate) type StopFrames = oneshot::Sender<A2aError>;

/// The leased slots of one stream or turn.
struct LeasedSlots<'r> {
    reader: &'r Reader,
    limits: &'r Limits,
    holder: WriteId,
    pools: Vec<(SlotPool, u32)>,
}

impl Reader {
    /// Runs `stream` with the slots that it needs, and frees them at its end.
    ///
    /// # Errors
    /// Those of `stream`. [`A2aError::RateLimited`] without a free slot; then `stream` has not
    /// started.
    pub(crate) async fn with_slots(
        &self,
        caller: &Caller,
        stop: StopFrames,
        stream: impl Future<Output = Result<(), EngineError>> + Send,
    ) -> Result<(), EngineError> {
        let stream = self.until_braked(caller, stop, stream);
        let Some(limits) = &self.limits else {
            return stream.await;
        };
        let mut slots = LeasedSlots::new(self, limits);
        let result = match slots.lease(caller).await {
            Ok(()) => slots.hold(stream).await,
            Err(error) => Err(error.into()),
        };
        slots.free().await;
        result
    }

    /// Runs `turn` with a slot of its tenant, and frees it at its end. Returns `None`, and `turn`
    /// has not started, if the tenant runs as many turns as it may.
    pub(in crate::engine) async fn with_turn_slot<T>(
        &self,
        tenant: &TenantId,
        turn: impl Future<Output = T> + Send,
    ) -> Option<T> {
        let (Some(limits), Some(cap)) = (&self.limits, self.policy.limits.turns_per_tenant) else {
            return Some(turn.await);
        };
        let mut slots = LeasedSlots::new(self, limits);
        let pools = turn_pools(tenant, cap, self.ids.next());
        let is_leased = slots.lease_in(pools).await.is_ok();
        let result = match is_leased {
            true => Some(slots.hold(turn).await),
            false => None,
        };
        slots.free().await;
        result
    }

    /// Whether the tenant runs as many turns from the queue as it may.
    ///
    /// # Errors
    /// [`StoreError`] when the store does not answer.
    pub(in crate::engine) async fn has_all_turn_slots(
        &self,
        tenant: &TenantId,
    ) -> Result<bool, StoreError> {
        let (Some(limits), Some(cap)) = (&self.limits, self.policy.limits.turns_per_tenant) else {
            return Ok(false);
        };
        let now = self.clock.now();
        for (pool, cap) in turn_pools(tenant, cap, 0) {
            if limits.live_slots(&pool, now).await? < cap {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Runs `stream`. When its tenant is braked, it ends the frames; the stream itself ends when
    /// its turn has.
    async fn until_braked(
        &self,
        caller: &Caller,
        stop: StopFrames,
        stream: impl Future<Output = Result<(), EngineError>> + Send,
    ) -> Result<(), EngineError> {
        let tenant = &caller.owner.tenant;
        let is_braked = |refusal: &A2aError| *refusal == A2aError::Forbidden;
        let watch = pin!(self.wait_for_brake(tenant, None, is_braked));
        match select(watch, pin!(stream)).await {
            Either::Left((refusal, stream)) => {
                // The client may be gone already.
                let _gone = stop.send(refusal);
                stream.await
            }
            Either::Right((result, _)) => result,
        }
    }
}

impl<'r> LeasedSlots<'r> {
    fn new(reader: &'r Reader, limits: &'r Limits) -> Self {
        Self {
            reader,
            limits,
            holder: WriteId::made_of(reader.ids.next()),
            pools: Vec::new(),
        }
    }

    /// Renews the leases while `work` runs.
    async fn hold<T>(&self, work: impl Future<Output = T>) -> T {
        match select(pin!(work), pin!(self.renew())).await {
            Either::Left((result, _)) => result,
            Either::Right((never, _)) => match never {},
        }
    }

    /// Leases the slots that the policy asks for.
    async fn lease(&mut self, caller: &Caller) -> Result<(), A2aError> {
        let policy = &self.reader.policy.limits;
        if let Some(cap) = policy.streams_per_tenant {
            let pool = SlotPool::Streams(caller.owner.tenant.clone());
            self.lease_in(vec![(pool, cap)]).await?;
        }
        if let Some(streams) = &policy.shared_streams {
            let pool = |part| SlotPool::AllStreams(streams.pool.clone(), part);
            let parts = parts(streams.cap, self.reader.ids.next());
            let pools = parts.take(LOOKS).map(|(part, cap)| (pool(part), cap));
            self.lease_in(pools.collect()).await?;
        }
        Ok(())
    }

    /// Leases a slot in one of `pools`, each with its cap.
    async fn lease_in(&mut self, pools: Vec<(SlotPool, u32)>) -> Result<(), A2aError> {
        let mut free_at: Option<Timestamp> = None;
        for (pool, cap) in pools {
            match self.lease_one(&pool, cap).await {
                Ok(Slot::Leased) => {
                    self.pools.push((pool, cap));
                    return Ok(());
                }
                Ok(Slot::NoneUntil(at)) => free_at = Some(free_at.map_or(at, |it| it.min(at))),
                Err(error) => {
                    warn(&error);
                    return Ok(());
                }
            }
        }
        let now = self.reader.clock.now();
        let wait = free_at.map_or(0, |at| at.since(now).as_secs());
        Err(A2aError::RateLimited {
            retry_after: wait.clamp(1, LONGEST_WAIT),
        })
    }

    async fn lease_one(&self, pool: &SlotPool, cap: u32) -> Result<Slot, StoreError> {
        let now = self.reader.clock.now();
        let until = now.plus(LEASE);
        let lease = SlotLease { cap, now, until };
        self.limits.lease_slot(pool, &self.holder, lease).await
    }

    /// Renews the slots for ever.
    async fn renew(&self) -> std::convert::Infallible {
        let clock = &self.reader.clock;
        loop {
            clock.sleep_until(clock.now().plus(RENEWAL)).await;
            for (pool, cap) in &self.pools {
                match self.renew_one(pool, *cap).await {
                    Ok(Slot::Leased) => {}
                    Ok(Slot::NoneUntil(_)) => {
                        tracing::warn!("a running stream or turn has lost its slot");
                    }
                    Err(error) => warn(&error),
                }
            }
        }
    }

    /// Renews a slot. A slot that was lost, because the store did not answer for long, is
    /// leased again.
    async fn renew_one(&self, pool: &SlotPool, cap: u32) -> Result<Slot, StoreError> {
        let until = self.reader.clock.now().plus(LEASE);
        if self.limits.renew_slot(pool, &self.holder, until).await? {
            return Ok(Slot::Leased);
        }
        self.lease_one(pool, cap).await
    }

    /// Frees the slots.
    async fn free(&self) {
        for (pool, _) in &self.pools {
            if let Err(error) = self.limits.free_slot(pool, &self.holder).await {
                warn(&error);
            }
        }
    }
}

fn warn(error: &StoreError) {
    tracing::warn!("a stream or a turn runs without a slot: {error}");
}

/// The parts of a pool with their caps, beginning at one that `random` chooses. The caps together
/// are `cap`.
fn parts(cap: u32, random: u128) -> impl Iterator<Item = (u32, u32)> {
    let parts = cap.div_ceil(PART).max(1);
    let first = u32::try_from(random % u128::from(parts)).unwrap_or(0);
    let parts_in_turn = (0..parts).map(move |look| (first + look) % parts);
    parts_in_turn.map(move |part| (part, cap / parts + u32::from(part < cap % parts)))
}

/// The pools of the turns of a tenant. A turn looks in all of them, so that it is turned away only
/// if its tenant has no slot.
fn turn_pools(tenant: &TenantId, cap: u32, random: u128) -> Vec<(SlotPool, u32)> {
    let pool = |part| SlotPool::Turns(tenant.clone(), part);
    let pools = parts(cap, random).map(|(part, cap)| (pool(part), cap));
    pools.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_lambda_rows::each_row;

    #[test]
    fn the_parts_of_a_shared_pool_add_up_to_its_cap() {
        each_row([1, 5, 19, 20, 21, 50, 99, 500], |cap| {
            let mut caps = std::collections::BTreeMap::new();
            for random in 0..64 {
                for (part, slots) in parts(cap, random) {
                    assert!((1..=PART).contains(&slots), "{cap}");
                    caps.insert(part, slots);
                }
            }
            assert_eq!(caps.values().sum::<u32>(), cap);
        });
    }
}
