//! Counting what a tenant uses: calls, streams and uploaded bytes.
//!
//! Every decision is one conditional write, so that processes which share nothing keep a
//! limit together. Time comes from the caller. The engine decides what to count; a store
//! only counts.
//!
//! - here: the trait, and what it counts
//! - [`gcra`]: the decision about the tokens of one bucket, as a pure function

pub mod gcra;

use super::StoreError;
use crate::task::{SkillId, TenantId, Timestamp, WriteId};
use async_trait::async_trait;
use std::time::Duration;

/// What a rate is counted for. Each bucket belongs to one tenant.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum RateBucket {
    /// All calls of the callers of one tier.
    Tier(TenantId, String),
    /// The sends to one skill.
    Skill(TenantId, SkillId),
    /// The sends to all skills with one tag.
    SkillTag(TenantId, String),
}

impl RateBucket {
    /// The tenant that the bucket belongs to.
    #[must_use]
    pub const fn tenant(&self) -> &TenantId {
        match self {
            Self::Tier(tenant, _) | Self::Skill(tenant, _) | Self::SkillTag(tenant, _) => tenant,
        }
    }
}

/// A rate: one token in each `every`, and at most `burst` at once (GCRA; ITU-T I.371).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// The time in which one token is added; above 0.
    pub every: Duration,
    /// The most tokens that a bucket holds; above 0.
    pub burst: u32,
}

/// The result of taking tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tokens {
    /// The caller has this many; at least one, at most as many as it asked for.
    Taken(u32),
    /// There is none before this time. It comes from the stored state, so a caller that is
    /// alone gets one then.
    NoneUntil(Timestamp),
    /// An operator has blocked the tenant.
    Blocked,
}

/// What slots are leased for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum SlotPool {
    /// The open streams of a tenant.
    Streams(TenantId),
    /// One part of the open streams of all tenants, in the functions that share this name.
    /// The engine divides them into parts with a cap each, so that each item stays small.
    AllStreams(String, u32),
}

/// The lease of a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotLease {
    /// The most slots that the pool leases at once; above 0.
    pub cap: u32,
    /// The time now: a lease that ended before counts no more.
    pub now: Timestamp,
    /// When the lease ends if it is not renewed.
    pub until: Timestamp,
}

/// The result of leasing a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slot {
    /// The slot is leased.
    Leased,
    /// All slots are leased. The first lease ends at this time if its holder is dead.
    NoneUntil(Timestamp),
    /// An operator has blocked the tenant.
    Blocked,
}

/// A total that is counted for a time, for example the bytes uploaded on one day.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Total {
    /// The bytes of the uploads that a tenant ordered on one day (days since 1970, UTC).
    UploadBytes(TenantId, i64),
}

/// Where limits are counted.
#[async_trait]
pub trait Limits: Send + Sync {
    /// Takes up to `lot` tokens of a bucket: as many as there are, at least one. A `lot` is
    /// at most the burst of the rate.
    ///
    /// # Errors
    /// [`StoreError`] when the store does not answer. Then tokens may be taken.
    async fn take_tokens(
        &self,
        bucket: &RateBucket,
        rate: Rate,
        lot: u32,
        now: Timestamp,
    ) -> Result<Tokens, StoreError>;

    /// Leases a slot for `holder`. A holder that has a slot already keeps it, with the new
    /// end of its lease.
    ///
    /// # Errors
    /// [`StoreError`] when the store does not answer. Then the slot may be leased.
    async fn lease_slot(
        &self,
        pool: &SlotPool,
        holder: &WriteId,
        lease: SlotLease,
    ) -> Result<Slot, StoreError>;

    /// Extends the lease of `holder` to `until`. Returns `false` if the pool no longer has
    /// it, or an operator has blocked the tenant.
    ///
    /// # Errors
    /// [`StoreError`] when the store does not answer.
    async fn renew_slot(
        &self,
        pool: &SlotPool,
        holder: &WriteId,
        until: Timestamp,
    ) -> Result<bool, StoreError>;

    /// Gives the slot of `holder` back; succeeds if it has none.
    ///
    /// # Errors
    /// [`StoreError`] when the store does not answer. Then the lease ends at its time.
    async fn free_slot(&self, pool: &SlotPool, holder: &WriteId) -> Result<(), StoreError>;

    /// Adds `amount` to a total, unless it would exceed `most`. Returns whether it was added.
    /// The store forgets the total after `clean_at`.
    ///
    /// # Errors
    /// [`StoreError`] when the store does not answer. Then it may be added.
    async fn add(
        &self,
        total: &Total,
        amount: u64,
        most: u64,
        clean_at: Timestamp,
    ) -> Result<bool, StoreError>;

    /// Blocks a tenant, or ends its block. A blocked tenant gets no token of a tier and no
    /// slot, and its leases are not renewed. (Each call takes a token of its tier before one
    /// of a skill.)
    ///
    /// # Errors
    /// [`StoreError`] when the store does not answer. Then the tenant may be blocked in
    /// part: repeat the call.
    async fn block(&self, tenant: &TenantId, blocked: bool) -> Result<(), StoreError>;
}
