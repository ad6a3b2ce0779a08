//! Counting what a tenant uses: calls, streams, stored bytes and tokens of models.
//!
//! Every decision is one conditional write, so that processes which share nothing keep a
//! limit together. Time comes from the caller. The engine decides what to count; a store
//! only counts.
//!
//! - here: what is counted
//! - [`gcra`]: the decision about the tokens of one bucket, as a pure function

pub mod gcra;

use crate::task::{SkillId, TenantId, Timestamp, TokenUse, WriteId};
use std::collections::BTreeMap;
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
    /// The requests to the webhooks of one host.
    Host(TenantId, String),
}

impl RateBucket {
    /// The tenant that the bucket belongs to.
    #[must_use]
    pub const fn tenant(&self) -> &TenantId {
        match self {
            Self::Tier(tenant, _)
            | Self::Skill(tenant, _)
            | Self::SkillTag(tenant, _)
            | Self::Host(tenant, _) => tenant,
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
    /// There is none while the bucket has this pause, also one whose time is over.
    Paused(BucketPause),
}

/// The pause of a bucket, which gives no tokens until it is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BucketPause {
    /// When one request may try whether it is over.
    pub until: Timestamp,
    /// How many pauses there were in a row, with this one.
    pub number: u32,
}

/// What slots are leased for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum SlotPool {
    /// The open streams of a tenant.
    Streams(TenantId),
    /// One part of the open streams of all tenants, in the functions that share this name.
    /// The engine divides them into parts with a cap each, so that each item stays small.
    AllStreams(String, u32),
    /// One part of the turns of a tenant that workers run.
    Turns(TenantId, u32),
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
}

/// A total that is counted for a time, for example the bytes stored on one day.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Total {
    /// The bytes that a tenant ordered uploads for, and stored, on one day (days since 1970, UTC).
    StoredBytes(TenantId, i64),
}

/// So many tokens of a day's or a task's rest are scarce: a call that leaves fewer is sent with
/// the most tokens that its answer may have.
pub const SCARCE_TOKENS: u64 = 65_536;

/// The tokens that a call of a model may use, in the total of its tenant and day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reservation {
    /// The tenant.
    pub tenant: TenantId,
    /// The day on which the call began (days since 1970, UTC).
    pub day: i64,
    /// Its id.
    pub id: WriteId,
    /// The most tokens of request and answer.
    pub tokens: u64,
}

/// What a day has left for other calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DayRest {
    /// The tokens; `None` while more than a fifth and more than [`SCARCE_TOKENS`] are left.
    pub rest: Option<u64>,
    /// Whether this call is the first one above four fifths of the day's tokens.
    pub is_first_above: bool,
}

/// The tokens of models that a tenant has used on one day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DayUse {
    /// The tenant.
    pub tenant: TenantId,
    /// The day (days since 1970, UTC).
    pub day: i64,
    /// All tokens: of calls that have ended, and the most of those that run or have died.
    pub tokens: u64,
    /// What the calls of each model have used.
    pub models: BTreeMap<String, TokenUse>,
}

impl DayUse {
    /// The date of the day, as `2026-05-28`.
    #[must_use]
    pub fn date(&self) -> String {
        let mut date = Timestamp::of_day(self.day).to_rfc3339();
        date.truncate("2026-05-28".len());
        date
    }
}
