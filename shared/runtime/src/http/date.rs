//! Writes and reads the dates of HTTP headers (RFC 9110 §5.6.7), to the second.

use crate::task::Timestamp;
use time::format_description::FormatItem;
use time::macros::format_description;
use time::{OffsetDateTime, PrimitiveDateTime};

/// The preferred form, the only one that is written.
const FIXED: &[FormatItem<'_>] = format_description!(
    "[weekday repr:short], [day] [month repr:short] [year] [hour]:[minute]:[second] GMT"
);
/// The form of C's `asctime`. The third form of the RFC, with a year of two digits,
/// is not read: clients send the date that this agent wrote, and it never writes
/// that form.
const ASCTIME: &[FormatItem<'_>] = format_description!(
    "[weekday repr:short] [month repr:short] [day padding:space] [hour]:[minute]:[second] [year]"
);

/// For example `Thu, 28 May 2026 10:00:00 GMT`; `None` outside the years that this
/// form can express.
pub(super) fn written(at: Timestamp) -> Option<String> {
    let seconds = at.as_millis().div_euclid(1_000);
    let date = OffsetDateTime::from_unix_timestamp(seconds).ok()?;
    date.format(FIXED).ok()
}

/// Reads the date of a header.
pub(super) fn read(text: &str) -> Option<Timestamp> {
    let date = PrimitiveDateTime::parse(text, FIXED)
        .or_else(|_| PrimitiveDateTime::parse(text, ASCTIME))
        .ok()?;
    let seconds = date.assume_utc().unix_timestamp();
    Some(Timestamp::from_millis(seconds.checked_mul(1_000)?))
}

#[cfg(test)]
mod tests {
    use super::{read, written};
    use crate::task::Timestamp;

    #[test]
    fn a_date_is_written_to_the_second_and_read_back() {
        let at = Timestamp::parse_rfc3339("1994-11-06T08:49:37.900Z").unwrap();
        let text = written(at).unwrap();
        assert_eq!(text, "Sun, 06 Nov 1994 08:49:37 GMT");
        let second = Timestamp::parse_rfc3339("1994-11-06T08:49:37Z");
        assert_eq!(read(&text), second);
        assert_eq!(read("Sun Nov  6 08:49:37 1994"), second);
    }

    #[test]
    fn a_text_that_is_not_a_date_is_none() {
        for bad in [
            "",
            "yesterday",
            "1994-11-06T08:49:37Z",
            "Sun, 32 Nov 1994 08:49:37 GMT",
        ] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
