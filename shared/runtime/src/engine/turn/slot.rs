//! The slot of a running turn: a tenant runs only so many turns at once.
//!
//! A turn that runs in its call asks for a slot just before its first write, so a short
//! send asks for none. Without a slot the skill's future is dropped, and the turn is
//! stored for a worker. Then its skill runs again from the start, and requests that it has
//! sent are repeated, as after a crash before the first commit. A worker takes the slot
//! before it claims the turn.
//!
//! The limit protects the tenant's neighbours and not the data, so a turn runs without a
//! slot if the store of the limits does not answer.

use crate::engine::clock::wake_up;
use crate::engine::{Clock, Engine};
use crate::store::StoreError;
use crate::store::limits::{Limits, Slot, SlotLease, SlotPool};
use crate::task::{TenantId, Timestamp, WriteId};
use futures::future::BoxFuture;
use std::sync::Arc;
use std::time::Duration;

/// How long after its invocation a slot is leased at most, for a process that is killed at
/// its deadline.
const AFTER_DEADLINE: Duration = Duration::from_secs(5);

/// Why a turn gets no slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine) enum NoSlotReason {
    /// All slots of the tenant are leased.
    AllTaken,
    /// An operator has blocked the tenant.
    Blocked,
}

/// The slot of one run of a turn.
pub(in crate::engine) struct TurnSlot {
    /// `None` if the turns of the tenant are not limited.
    lessor: Option<Lessor>,
    state: SlotState,
}

enum SlotState {
    /// Not asked for yet.
    Unasked,
    /// The store is asked for a slot.
    Asking(BoxFuture<'static, Result<Slot, StoreError>>),
    /// The turn has a slot. It is renewed at this time; `None` if its lease outlives the
    /// invocation.
    Leased(Option<Timestamp>),
    /// The store is asked for a longer lease.
    Renewing(BoxFuture<'static, Result<bool, StoreError>>),
    /// The turn runs without a slot.
    Without,
}

/// Leases the slot.
struct Lessor {
    limits: Arc<dyn Limits>,
    clock: Arc<dyn Clock>,
    pool: SlotPool,
    /// A random id for each run. Two workers with the same message must not share a slot,
    /// because the one that loses the claim frees its own.
    holder: WriteId,
    cap: u32,
    /// The time from a renewal to the next. The lease is twice as long, so that one lost
    /// renewal does not end it.
    renewed_every: Duration,
    deadline: Option<Timestamp>,
}

impl Lessor {
    /// When a lease that begins now ends.
    fn until(&self) -> Timestamp {
        let until = self.clock.now().plus(self.renewed_every * 2);
        self.at_most(until)
    }

    fn at_most(&self, at: Timestamp) -> Timestamp {
        let last = self.deadline.map(|end| end.plus(AFTER_DEADLINE));
        last.map_or(at, |last| last.min(at))
    }

    /// The state of a slot whose lease has just begun, or was renewed.
    fn leased(&self) -> SlotState {
        let (now, until) = (self.clock.now(), self.until());
        let lasts = self.deadline.is_some_and(|end| until > end);
        SlotState::Leased((!lasts).then(|| now.plus(self.renewed_every)))
    }

    fn ask(&self) -> BoxFuture<'static, Result<Slot, StoreError>> {
        let (limits, pool) = (Arc::clone(&self.limits), self.pool.clone());
        let holder = self.holder.clone();
        let lease = SlotLease {
            cap: self.cap,
            now: self.clock.now(),
            until: self.until(),
        };
        Box::pin(async move { limits.lease_slot(&pool, &holder, lease).await })
    }

    fn renew(&self) -> BoxFuture<'static, Result<bool, StoreError>> {
        let (limits, pool) = (Arc::clone(&self.limits), self.pool.clone());
        let (holder, until) = (self.holder.clone(), self.until());
        Box::pin(async move { limits.renew_slot(&pool, &holder, until).await })
    }
}

impl Engine {
    /// The slot of a turn that runs until `deadline` at most. It is not asked for yet.
    pub(in crate::engine) fn turn_slot(
        &self,
        tenant: &TenantId,
        deadline: Option<Timestamp>,
    ) -> TurnSlot {
        let policy = &self.reader.policy;
        let cap = policy.limits.turns_per_tenant;
        let lessor = self.reader.limits.as_ref().zip(cap);
        TurnSlot {
            lessor: lessor.map(|(limits, cap)| Lessor {
                limits: Arc::clone(limits),
                clock: Arc::clone(&self.reader.clock),
                pool: SlotPool::Turns(tenant.clone()),
                holder: WriteId::made_of(self.ids.next()),
                cap,
                renewed_every: policy.lease,
                deadline,
            }),
            state: SlotState::Unasked,
        }
    }
}

impl TurnSlot {
    /// Whether the turn may write. Begins to ask for the slot if it may not.
    pub(in crate::engine) fn may_write(&mut self) -> bool {
        let Some(lessor) = &self.lessor else {
            return true;
        };
        if matches!(self.state, SlotState::Unasked) {
            self.state = SlotState::Asking(lessor.ask());
        }
        !self.is_asked()
    }

    /// Whether the store is asked for the slot.
    pub(in crate::engine) const fn is_asked(&self) -> bool {
        matches!(self.state, SlotState::Asking(_))
    }

    /// Asks for the slot.
    ///
    /// # Errors
    /// Why there is none.
    pub(in crate::engine) async fn take(&mut self) -> Result<(), NoSlotReason> {
        while !self.may_write() {
            self.tick().await?;
        }
        Ok(())
    }

    /// Waits for the next change of the slot: the store's response, or a renewal. Never
    /// returns if there is none. It may be dropped and called again.
    ///
    /// # Errors
    /// Why there is no slot.
    pub(in crate::engine) async fn tick(&mut self) -> Result<(), NoSlotReason> {
        let Some(lessor) = &self.lessor else {
            return std::future::pending().await;
        };
        match &mut self.state {
            SlotState::Unasked | SlotState::Without => std::future::pending().await,
            SlotState::Asking(asked) => {
                let slot = asked.await;
                let (state, taken) = match slot {
                    Ok(Slot::Leased) => (lessor.leased(), Ok(())),
                    Ok(Slot::NoneUntil(_)) => (SlotState::Without, Err(NoSlotReason::AllTaken)),
                    Ok(Slot::Blocked) => (SlotState::Without, Err(NoSlotReason::Blocked)),
                    Err(error) => {
                        tracing::warn!("a turn runs without a slot: {error}");
                        (SlotState::Without, Ok(()))
                    }
                };
                self.state = state;
                taken
            }
            SlotState::Leased(renew_at) => {
                wake_up(&*lessor.clock, *renew_at).await;
                self.state = SlotState::Renewing(lessor.renew());
                Ok(())
            }
            SlotState::Renewing(renewed) => {
                self.state = match renewed.await {
                    Ok(true) => lessor.leased(),
                    // The turn continues to the end of its invocation.
                    Ok(false) => {
                        tracing::warn!("a turn has lost its slot, or its tenant is blocked");
                        SlotState::Without
                    }
                    Err(error) => {
                        tracing::warn!("the slot of a turn was not renewed: {error}");
                        let soon = lessor.clock.now().plus(lessor.renewed_every / 3);
                        SlotState::Leased(Some(soon))
                    }
                };
                Ok(())
            }
        }
    }

    /// Gives the slot back. If that fails, its lease ends at its time.
    pub(in crate::engine) async fn free(mut self) {
        if self.is_asked() {
            // The store may have leased it already. Why there is none no longer matters.
            let _late = self.tick().await;
        }
        let Some(lessor) = &self.lessor else {
            return;
        };
        if matches!(self.state, SlotState::Unasked | SlotState::Without) {
            return;
        }
        if let Err(error) = lessor.limits.free_slot(&lessor.pool, &lessor.holder).await {
            tracing::warn!("the slot of a turn was not given back: {error}");
        }
    }
}

#[cfg(test)]
mod tests;
