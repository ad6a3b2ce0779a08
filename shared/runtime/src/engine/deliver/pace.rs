//! How long a webhook may take, and how long it is left alone.
//!
//! A webhook that does not answer costs its tenant little: one long attempt,
//! then short ones ever further apart. One that answers slowly gets the time it
//! needs, and a pause in proportion.

use crate::task::Delivery;
use std::time::Duration;

/// After this many attempts without success a webhook is given up. With the
/// waits between them that is about three hours.
pub(in crate::engine) const ATTEMPTS: u32 = 24;
/// The wait after the first failure; doubled at each further one.
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// The longest wait.
pub(super) const LONGEST_WAIT: Duration = Duration::from_secs(900);
/// Within this an answer is quick, and an attempt after a failure over.
const QUICK: Duration = Duration::from_secs(3);
/// The longest attempt.
const PATIENT: Duration = Duration::from_secs(10);
/// Of so many attempts in a row one is long: the webhook may have become slow.
const ONE_LONG_OF: u32 = 4;
/// A slow webhook is left alone for so many times what its answer took.
const PAUSE: u32 = 10;
/// A wait is over so long before its doorbell rings: by then it is over by the
/// clock of every process, of which each is up to five seconds off. So the
/// shortest waits keep no other doorbell away.
pub(super) const SKEW: Duration = Duration::from_secs(10);

/// How long the next attempt may take.
pub(super) fn attempt(delivery: &Delivery) -> Duration {
    let number = delivery.attempts.saturating_add(1);
    let is_long = number == 1 || number.is_multiple_of(ONE_LONG_OF) || delivery.took > QUICK;
    if is_long { PATIENT } else { QUICK }
}

/// How long a webhook is left alone that has taken an event within `took`; `None`:
/// it may have the next one at once.
pub(super) fn pause(took: Duration) -> Option<Duration> {
    (took > QUICK).then(|| took * PAUSE)
}

/// How long a webhook is left alone after `attempts` failures. `random` takes up
/// to a quarter off, so that many which failed at once do not come back at once.
pub(super) fn back_off(attempts: u32, random: u128) -> Duration {
    let doubled = 2_u32.saturating_pow(attempts.saturating_sub(1).min(16));
    let longest = (FIRST_WAIT * doubled).min(LONGEST_WAIT);
    let parts = u32::try_from(random % 65).unwrap_or_default();
    longest - longest * parts / 256
}
