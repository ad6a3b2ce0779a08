//! Points in time as plain values.

use serde::{Deserialize, Serialize, Serializer};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use time::macros::format_description;

/// Milliseconds since the Unix epoch, UTC.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize,
)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The point `millis` milliseconds after the Unix epoch.
    #[must_use]
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// The number of its day: days since 1970 (UTC).
    #[must_use]
    pub const fn day(self) -> i64 {
        self.as_millis().div_euclid(24 * 3600 * 1000)
    }

    /// The beginning of a day.
    #[must_use]
    pub const fn of_day(day: i64) -> Self {
        Self::from_millis(day.saturating_mul(24 * 3600 * 1000))
    }

    /// Milliseconds since the Unix epoch.
    #[must_use]
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// Whole seconds since the Unix epoch, rounded up, for DynamoDB's TTL attribute:
    /// the TTL must not delete an item before its expiry.
    #[must_use]
    pub const fn ttl_seconds(self) -> i64 {
        self.0.div_euclid(1000) + if self.0.rem_euclid(1000) > 0 { 1 } else { 0 }
    }

    /// This point moved by `duration`, saturating.
    #[must_use]
    pub fn plus(self, duration: std::time::Duration) -> Self {
        Self(
            self.0
                .saturating_add(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)),
        )
    }

    /// This point moved back by `duration`, at the earliest to 1970.
    #[must_use]
    pub fn minus(self, duration: std::time::Duration) -> Self {
        let millis = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        Self(self.0.saturating_sub(millis).max(0))
    }

    /// The time from `earlier` to `self`; zero when `earlier` is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> std::time::Duration {
        let millis = self.0.saturating_sub(earlier.0);
        std::time::Duration::from_millis(u64::try_from(millis).unwrap_or(0))
    }

    /// UTC with `Z` and milliseconds: `2026-05-28T10:00:00.000Z`
    /// (A2A 1.0 §5.6.1).
    #[must_use]
    pub fn to_rfc3339(self) -> String {
        let format = format_description!(
            "[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:3]Z"
        );
        OffsetDateTime::from_unix_timestamp_nanos(i128::from(self.0) * 1_000_000)
            .ok()
            .and_then(|t| t.format(&format).ok())
            .unwrap_or_else(|| "1970-01-01T00:00:00.000Z".to_owned())
    }

    /// Writes it as clients see it. Its own form is the number that is stored.
    pub(super) fn show<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.to_rfc3339())
    }

    /// Parses an RFC 3339 time; fractions below a millisecond are cut off.
    #[must_use]
    pub fn parse_rfc3339(text: &str) -> Option<Self> {
        let time = OffsetDateTime::parse(text, &Rfc3339).ok()?;
        i64::try_from(time.unix_timestamp_nanos().div_euclid(1_000_000))
            .ok()
            .map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::Timestamp;

    #[test]
    fn a_time_is_written_in_utc_with_milliseconds() {
        let at = Timestamp::parse_rfc3339("2026-05-28T12:00:00.5+02:00").unwrap();
        assert_eq!(at.to_rfc3339(), "2026-05-28T10:00:00.500Z");
        assert_eq!(Timestamp::parse_rfc3339(&at.to_rfc3339()), Some(at));
    }

    #[test]
    fn the_ttl_never_deletes_before_the_expiry() {
        assert_eq!(Timestamp::from_millis(1_000).ttl_seconds(), 1);
        assert_eq!(Timestamp::from_millis(1_001).ttl_seconds(), 2);
    }
}
