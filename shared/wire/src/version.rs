//! Checks the protocol version that a client names (A2A 1.0 §3.6).

use super::Operation;
use a2a_lambda_model::task::{A2aError, Generation};

/// The most characters of a client's version that errors and logs repeat.
const SHOWN: usize = 32;
const NEWEST: (u32, u32) = (1, 0);

/// The version that a client names in the header, else in the query parameter.
/// An empty one counts as absent.
pub(super) fn client_version(header: Option<&str>, query: &[(String, String)]) -> Option<String> {
    // A2A 1.0 §3.6.1: the version may be a request parameter instead of a header.
    let shorten = |text: &str| {
        let text = text.trim();
        (!text.is_empty()).then(|| text.chars().take(SHOWN).collect::<String>())
    };
    header.and_then(shorten).or_else(|| {
        query
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case("a2a-version"))
            .and_then(|(_, value)| shorten(value))
    })
}

/// `Major.Minor`, with patch digits ignored.
fn parse(text: &str) -> Option<(u32, u32)> {
    // A2A 1.0 §3.6: patch numbers do not count when a version is negotiated.
    let mut numbers = text.split('.').map(|number| {
        let plain = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
        plain.then(|| number.parse::<u32>().ok()).flatten()
    });
    let version = (numbers.next()??, numbers.next()??);
    match (numbers.next(), numbers.next()) {
        (None, _) | (Some(Some(_)), None) => Some(version),
        _ => None,
    }
}

/// Whether `version` is newer than every version this server knows.
pub(super) fn is_newer(version: &str) -> bool {
    parse(version).is_some_and(|version| version > NEWEST)
}

/// Checks the version against the operation and its generation.
///
/// # Errors
/// [`A2aError::VersionNotSupported`]. An operation of 1.0 needs `1.0`. The older
/// operations accept every published version, as their name already gives the
/// generation. Cards and this project's extensions need no version.
pub(super) fn check(
    operation: Operation,
    generation: Generation,
    version: Option<&str>,
) -> Result<(), A2aError> {
    if operation.is_card() || operation.is_ours() {
        return Ok(());
    }
    // A2A 1.0 §3.6.2: an absent or empty version means 0.3.
    let number = version.map_or(Some((0, 3)), parse);
    let fault = |versions| A2aError::VersionNotSupported {
        version: version.unwrap_or("0.3").to_owned(),
        versions,
    };
    match generation {
        Generation::V10 if number == Some((1, 0)) => Ok(()),
        Generation::V10 => Err(fault("it needs the header `A2A-Version: 1.0`")),
        Generation::V01 | Generation::V03 => match number {
            Some((0, 1..=3) | (1, 0)) => Ok(()),
            _ => Err(fault("0.1, 0.2, 0.3 and 1.0 are served")),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_lambda_rows::each_row;

    fn served(generation: Generation, version: Option<&str>) -> bool {
        check(Operation::Send, generation, version).is_ok()
    }

    #[test]
    fn an_operation_of_1_0_needs_1_0() {
        for good in ["1.0", "1.0.1", "1.0.0"] {
            assert!(served(Generation::V10, Some(good)), "{good}");
        }
        let rows = [
            "0.3", "1", "1.1", "2.0", "99.0", "one", "1.0.0.0", "1.0.x", "-1.0", "1.+0",
        ];
        each_row(rows, |bad| {
            assert!(!served(Generation::V10, Some(bad)), "{bad}");
        });
        assert!(!served(Generation::V10, None));
    }

    #[test]
    fn the_older_operations_take_every_published_version_or_none() {
        for generation in [Generation::V01, Generation::V03] {
            each_row(["0.1", "0.2", "0.2.6", "0.3", "0.3.0", "1.0"], |good| {
                assert!(served(generation, Some(good)), "{good}");
            });
            assert!(served(generation, None));
            each_row(["0.0", "0.4", "1.1", "99.0", "x"], |bad| {
                assert!(!served(generation, Some(bad)), "{bad}");
            });
        }
    }

    #[test]
    fn the_card_needs_no_version() {
        assert_eq!(
            check(Operation::Card, Generation::V10, Some("99.0")),
            Ok(())
        );
    }

    #[test]
    fn the_header_wins_over_the_query_and_an_empty_one_counts_as_absent() {
        let query = [("A2A-Version".to_owned(), "1.0".to_owned())];
        assert_eq!(client_version(Some("0.3"), &query).as_deref(), Some("0.3"));
        assert_eq!(client_version(Some(" "), &query).as_deref(), Some("1.0"));
        assert_eq!(client_version(None, &[]), None);
    }

    #[test]
    fn a_newer_version_is_recognised() {
        assert!(is_newer("1.1") && is_newer("2.0"));
        assert!(!is_newer("1.0.9") && !is_newer("0.9") && !is_newer("x"));
    }
}
