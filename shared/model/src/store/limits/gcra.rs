//! The generic cell rate algorithm (ITU-T I.371): decides how many tokens a bucket has.
//!
//! The whole state of a bucket is one number, its theoretical arrival time: when the bucket
//! would be full again. Each token moves it by the time in which one token is added. It is in
//! microseconds, so that rates above 1,000 a second are exact.

use super::Rate;
use crate::task::Timestamp;
use std::time::Duration;

/// A stored time that is later than any rate allows by more than this comes from an earlier
/// setting. Clocks of processes differ by less.
const SKEW: i64 = 60 * 1_000_000;

/// What a bucket gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grant {
    /// This many tokens; at least one.
    Tokens(u32),
    /// None before this time.
    NoneUntil(Timestamp),
    /// None: the bucket is emptier than this rate allows, because an earlier setting was
    /// slower. The bucket has to be set to [`full_at`] of an empty bucket.
    Stale,
}

/// A time in microseconds since 1970.
#[must_use]
pub const fn micros(at: Timestamp) -> i64 {
    at.as_millis().saturating_mul(1000)
}

/// The time in which `tokens` tokens are added, in microseconds.
#[must_use]
pub fn time_of(rate: Rate, tokens: u32) -> i64 {
    let every = i64::try_from(rate.every.as_micros()).unwrap_or(i64::MAX);
    every.max(1).saturating_mul(i64::from(tokens))
}

/// When a bucket from which all tokens are taken at `now` is full again.
#[must_use]
pub fn full_at(rate: Rate, now: Timestamp) -> i64 {
    micros(now).saturating_add(time_of(rate, rate.burst))
}

/// What a bucket that is full at `tat` gives at `now`, if `lot` tokens are asked for.
#[must_use]
pub fn grant(tat: i64, rate: Rate, lot: u32, now: Timestamp) -> Grant {
    let full_at = full_at(rate, now);
    if tat > full_at.saturating_add(SKEW) {
        return Grant::Stale;
    }
    let credit = full_at.saturating_sub(tat.max(micros(now)));
    let tokens = u32::try_from(credit.max(0) / time_of(rate, 1)).unwrap_or(u32::MAX);
    match tokens.min(lot) {
        0 => Grant::NoneUntil(none_until(tat, rate)),
        tokens => Grant::Tokens(tokens),
    }
}

/// When a bucket that is full at `tat` has its first token, rounded up to milliseconds.
fn none_until(tat: i64, rate: Rate) -> Timestamp {
    let others = time_of(rate, rate.burst.saturating_sub(1));
    let micros = tat.saturating_sub(others);
    let millis = micros.div_euclid(1000) + i64::from(micros.rem_euclid(1000) > 0);
    Timestamp::from_millis(millis)
}

/// When a bucket of this rate may be forgotten: nothing of it differs from a full one.
#[must_use]
pub fn forgotten_at(rate: Rate, now: Timestamp) -> Timestamp {
    let tokens = Duration::from_micros(u64::try_from(time_of(rate, rate.burst)).unwrap_or(0));
    // One more day, because buckets of several rates may share an item.
    now.plus(tokens + Duration::from_secs(24 * 3600))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOW: Timestamp = Timestamp::from_millis(4_102_444_800_000);

    fn rate(every_micros: u64, burst: u32) -> Rate {
        Rate {
            every: Duration::from_micros(every_micros),
            burst,
        }
    }

    #[test]
    fn a_state_of_a_slower_rate_is_stale() {
        let (slow, fast) = (rate(60_000_000, 100), rate(60_000, 10));
        let empty = full_at(slow, NOW);
        assert_eq!(grant(empty, fast, 1, NOW), Grant::Stale);
        assert!(matches!(grant(empty, slow, 1, NOW), Grant::NoneUntil(_)));
    }

    proptest! {
        /// Takes at random times; `waits` are milliseconds.
        #[test]
        fn a_bucket_never_gives_more_than_burst_and_rate(
            every in 1_u64..5_000_000,
            burst in 1_u32..200,
            takes in prop::collection::vec((0_u64..20_000, 1_u32..50), 1..200),
        ) {
            let rate = rate(every, burst);
            let (mut tat, mut now, mut given) = (0, NOW, 0_u64);
            for (wait, lot) in takes {
                now = now.plus(Duration::from_millis(wait));
                match grant(tat, rate, lot.min(burst), now) {
                    Grant::Tokens(tokens) => {
                        prop_assert!(tokens >= 1 && tokens <= lot);
                        tat = tat.max(micros(now)) + time_of(rate, tokens);
                        given += u64::from(tokens);
                    }
                    Grant::NoneUntil(at) => {
                        prop_assert!(at > now);
                        // A caller that is alone gets a token then, and none before.
                        prop_assert_eq!(grant(tat, rate, 1, at), Grant::Tokens(1));
                        let before = Timestamp::from_millis(at.as_millis() - 1);
                        prop_assert!(matches!(grant(tat, rate, 1, before), Grant::NoneUntil(_)));
                    }
                    Grant::Stale => prop_assert!(false, "stale without a change"),
                }
                let passed = u64::try_from(micros(now) - micros(NOW)).unwrap();
                prop_assert!(given <= u64::from(burst) + passed / every);
            }
        }
    }
}
