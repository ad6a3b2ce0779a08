//! Writes and reads the dates of HTTP headers (RFC 9110 §5.6.7), to the second.

use crate::task::Timestamp;
use std::time::{Duration, UNIX_EPOCH};

/// For example `Thu, 28 May 2026 10:00:00 GMT`; `None` outside the years that this
/// form can express.
pub(super) fn format(at: Timestamp) -> Option<String> {
    let seconds = u64::try_from(at.as_millis().div_euclid(1_000)).ok()?;
    // Later dates have five digits for the year, and `httpdate` panics.
    let is_known = seconds < 253_402_300_800;
    is_known.then(|| httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(seconds)))
}

/// Reads the date of a header.
pub(super) fn read(text: &str) -> Option<Timestamp> {
    let date = httpdate::parse_http_date(text).ok()?;
    let since = date.duration_since(UNIX_EPOCH).ok()?;
    let seconds = i64::try_from(since.as_secs()).ok()?;
    Some(Timestamp::from_millis(seconds.checked_mul(1_000)?))
}

#[cfg(test)]
mod tests {
    use super::{format, read};
    use crate::task::Timestamp;
    use a2a_lambda_rows::each_row;

    #[test]
    fn a_date_is_written_to_the_second_and_read_back() {
        let at = Timestamp::parse_rfc3339("1994-11-06T08:49:37.900Z").unwrap();
        let text = format(at).unwrap();
        assert_eq!(text, "Sun, 06 Nov 1994 08:49:37 GMT");
        let second = Timestamp::parse_rfc3339("1994-11-06T08:49:37Z");
        assert_eq!(read(&text), second);
        assert_eq!(read("Sun Nov  6 08:49:37 1994"), second);
    }

    #[test]
    fn a_text_that_is_not_a_date_is_none() {
        let rows = [
            "",
            "yesterday",
            "1994-11-06T08:49:37Z",
            "Sun, 32 Nov 1994 08:49:37 GMT",
        ];
        each_row(rows, |bad| {
            assert_eq!(read(bad), None, "{bad}");
        });
    }
}
