//! Decides how long an attempt to call a webhook may take, and how long the webhook is
//! paused.
//!
//! A webhook that does not answer costs its tenant little: one long attempt, then mostly
//! short ones at growing intervals. A slow webhook gets the time it needs, and a pause in
//! proportion.

use crate::task::Delivery;
use std::time::Duration;

/// After this many failed attempts a push config is given up. With the waits between them
/// that is about three hours.
pub(in crate::engine) const ATTEMPTS: u32 = 24;
/// The wait after the first failure; doubled at each further one.
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// The longest wait.
pub(super) const LONGEST_WAIT: Duration = Duration::from_secs(900);
/// An answer within this time is quick. An attempt after a failure ends after it.
const QUICK: Duration = Duration::from_secs(3);
/// The longest attempt.
const PATIENT: Duration = Duration::from_secs(10);
/// Every fourth attempt is long: the webhook may have become slow.
const ONE_LONG_OF: u32 = 4;
/// A slow webhook is paused for this many times the duration of its answer.
const PAUSE: u32 = 10;
/// A pause ends this long before its push queue message arrives. Each clock may be 5 s
/// off, so the pause is over by the clock of every process when the message arrives. A
/// pause shorter than this makes no other message wait.
pub(super) const SKEW: Duration = Duration::from_secs(10);

/// How long the next attempt may take.
pub(super) fn attempt(delivery: &Delivery) -> Duration {
    let number = delivery.attempts.saturating_add(1);
    let is_long = number == 1 || number.is_multiple_of(ONE_LONG_OF) || delivery.took > QUICK;
    if is_long { PATIENT } else { QUICK }
}

/// How long a webhook is paused that accepted an event within `took`; `None` if it may
/// get the next event immediately.
pub(super) fn pause(took: Duration) -> Option<Duration> {
    (took > QUICK).then(|| took * PAUSE)
}

/// How long a webhook is paused after `attempts` failures. `random` shortens the pause by
/// up to a quarter, so that webhooks that failed together are not called together again.
pub(super) fn back_off(attempts: u32, random: u128) -> Duration {
    let factor = 2_u32.saturating_pow(attempts.saturating_sub(1).min(16));
    let longest = (FIRST_WAIT * factor).min(LONGEST_WAIT);
    longest - part(longest, random)
}

/// How long a delivery waits for which its host has no request left: 10 s to 40 s, at random, so
/// that not all of them return at once.
pub(super) fn turned_away(random: u128) -> Duration {
    let spread = u32::try_from(random % 257).unwrap_or_default();
    Duration::from_secs(10) + Duration::from_secs(30) * spread / 256
}

/// A random part of a time, up to a quarter.
pub(super) fn part(time: Duration, random: u128) -> Duration {
    time * u32::try_from(random % 65).unwrap_or_default() / 256
}
