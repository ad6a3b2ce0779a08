//! Charges calls to the rates of their tenant.
//!
//! A process takes a lot of tokens with one write and spends it in memory. Unused tokens
//! lapse after a minute. A refusal is remembered until the time that it names, so that a
//! flood costs no writes.
//!
//! A limiter must not stop the agent: if its store does not answer, calls are admitted.

use super::limit_policy::CallRate;
use crate::clock::lock;
use crate::store::limits::{BucketPause, Limits, RateBucket, Tokens};
use crate::task::{A2aError, Timestamp};
use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

/// How long a token can be used after it was taken.
const LAPSE: Duration = Duration::from_secs(60);
/// How long a process believes that the store does not answer.
const RECHECK: Duration = Duration::from_secs(5);
/// The largest number of buckets that a process remembers.
const KEPT: usize = 10_000;

/// The lots of one process.
#[derive(Debug, Default)]
pub(in crate::engine) struct TokenCache(Mutex<HashMap<RateBucket, CachedBucket>>);

/// What a process knows of a bucket until `until`.
#[derive(Debug, Clone, Copy)]
struct CachedBucket {
    until: Timestamp,
    holds: BucketState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BucketState {
    /// This many tokens.
    Tokens(u32),
    /// The bucket is empty.
    Nothing,
    /// The store did not answer: calls are admitted.
    Unknown,
}

impl TokenCache {
    /// Spends a token that the process has. `None` if the store has to be asked.
    fn spend(&self, bucket: &RateBucket, now: Timestamp) -> Option<Result<(), A2aError>> {
        let mut lots = lock(&self.0);
        let lot = lots.get_mut(bucket).filter(|lot| now < lot.until)?;
        if let BucketState::Tokens(tokens) = &mut lot.holds {
            *tokens = tokens.checked_sub(1)?;
        }
        Some(lot.decision(now))
    }

    /// Remembers what the store answered.
    fn keep(&self, bucket: &RateBucket, mut lot: CachedBucket, now: Timestamp) {
        let mut lots = lock(&self.0);
        if lots.len() >= KEPT && !lots.contains_key(bucket) {
            lots.retain(|_, lot| now < lot.until);
            if lots.len() >= KEPT {
                // The process forgets at most one lot of each bucket.
                lots.clear();
            }
        }
        // Another call of this process may have taken a lot meanwhile.
        if let (Some(other), BucketState::Tokens(tokens)) = (lots.get(bucket), &mut lot.holds)
            && let BucketState::Tokens(remaining) = other.holds
            && now < other.until
            && remaining > 0
        {
            *tokens = tokens.saturating_add(remaining);
            lot.until = lot.until.min(other.until);
        }
        lots.insert(bucket.clone(), lot);
    }

    /// Gives a token back that was spent for a refused call.
    pub(super) fn give_back(&self, bucket: &RateBucket, now: Timestamp) {
        let lot = CachedBucket {
            until: now.plus(LAPSE),
            holds: BucketState::Tokens(1),
        };
        self.keep(bucket, lot, now);
    }

    /// Charges one call to a bucket.
    ///
    /// # Errors
    /// [`A2aError::RateLimited`].
    pub(super) async fn charge(
        &self,
        limits: &Limits,
        bucket: &RateBucket,
        rate: CallRate,
        now: Timestamp,
    ) -> Result<(), A2aError> {
        if let Some(decision) = self.spend(bucket, now) {
            return decision;
        }
        let request = limits.take_tokens(bucket, rate.rate(), rate.lot(), now);
        let (until, holds) = match request.await {
            Ok(Tokens::Taken(tokens)) => (
                now.plus(LAPSE),
                BucketState::Tokens(tokens.saturating_sub(1)),
            ),
            Ok(Tokens::NoneUntil(at) | Tokens::Paused(BucketPause { until: at, .. })) => {
                (at, BucketState::Nothing)
            }
            Err(error) => {
                tracing::warn!(
                    a2a.tenant = %bucket.tenant(),
                    "admitted calls without a rate check: {error}"
                );
                (now.plus(RECHECK), BucketState::Unknown)
            }
        };
        let lot = CachedBucket { until, holds };
        self.keep(bucket, lot, now);
        lot.decision(now)
    }
}

impl CachedBucket {
    /// Whether it admits a call.
    fn decision(&self, now: Timestamp) -> Result<(), A2aError> {
        match self.holds {
            BucketState::Tokens(_) | BucketState::Unknown => Ok(()),
            BucketState::Nothing => Err(rate_limit_error(now, self.until)),
        }
    }
}

/// The error for a bucket that is empty until `until`.
pub(in crate::engine) fn rate_limit_error(now: Timestamp, until: Timestamp) -> A2aError {
    let millis = until.since(now).as_millis();
    let seconds = u64::try_from(millis.div_ceil(1000)).unwrap_or(u64::MAX);
    A2aError::RateLimited {
        retry_after: seconds.max(1),
    }
}

#[cfg(test)]
mod tests;
