//! Checks the content types of requests and picks those of responses.

use super::{Binding, Dialect};
use a2a_lambda_model::task::{A2aError, Generation};

/// Plain JSON.
pub(super) const JSON: &str = "application/json";
/// JSON as A2A 1.0.1 names it for its REST binding (A2A 1.0 §11.1).
pub(super) const A2A_JSON: &str = "application/a2a+json";
/// Server-sent events.
pub(super) const EVENT_STREAM: &str = "text/event-stream";

/// Whether `header` names `media_type`, parameters aside.
fn is(header: &str, media_type: &str) -> bool {
    let essence = header.split(';').next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case(media_type)
}

/// Checks the `Content-Type` of a body.
///
/// # Errors
/// [`A2aError::UnsupportedMediaType`] when it is absent or neither [`JSON`] nor
/// [`A2A_JSON`].
pub(super) fn check(content_type: Option<&str>) -> Result<(), A2aError> {
    match content_type {
        Some(header) if is(header, JSON) || is(header, A2A_JSON) => Ok(()),
        _ => Err(A2aError::UnsupportedMediaType),
    }
}

/// The content type of a response.
///
/// JSON-RPC is always plain JSON. Over REST it is [`A2A_JSON`] in 1.0 if `Accept` names more
/// than events and does not prefer [`JSON`]. Without such an `Accept`, and in the older
/// generations, it is [`A2A_JSON`] if the request or its `Accept` names it.
pub(super) fn of_answer(
    dialect: Dialect,
    content_type: Option<&str>,
    accept: Option<&str>,
) -> &'static str {
    let has_special = content_type.is_some_and(|header| is(header, A2A_JSON));
    // A2A 1.0 §9.1: JSON-RPC. A2A 1.0.1 §11.1: REST SHOULD answer with the type of A2A. The
    // official client for .NET names no type, or events, and reads plain JSON.
    let special = match (dialect.binding, dialect.generation, accept) {
        (Binding::JsonRpc, _, _) => false,
        (Binding::Rest, Generation::V10, Some(accept)) if !events_alone(Some(accept)) => {
            let plain = quality(accept, JSON);
            plain.is_none_or(|plain| plain == 0 || quality(accept, A2A_JSON) >= Some(plain))
        }
        (Binding::Rest, _, _) => {
            has_special || quality(accept.unwrap_or_default(), A2A_JSON).is_some()
        }
    };
    if special { A2A_JSON } else { JSON }
}

/// How much the header `Accept` wants a media type that it names, from 0 to 1000 (RFC 9110
/// §12.5.1); `None` if it does not name it. A quality that cannot be read is 1000.
fn quality(accept: &str, media_type: &str) -> Option<u16> {
    let item = accept.split(',').find(|item| is(item, media_type))?;
    let mut parameters = item.split(';').skip(1).map(str::trim);
    let weight = parameters.find_map(|it| it.strip_prefix("q=").or(it.strip_prefix("Q=")));
    Some(weight.map_or(1000, thousandths))
}

/// Reads `0.8` as 800.
fn thousandths(text: &str) -> u16 {
    let fraction = match text.split_once('.') {
        Some(("0", fraction)) => fraction,
        None if text == "0" => "",
        _ => return 1000,
    };
    let digits = fraction.chars().chain(std::iter::repeat('0')).take(3);
    digits.collect::<String>().parse().unwrap_or(1000)
}

/// Whether `Accept` names server-sent events, and no type of JSON. HTTP clients add `*/*`.
pub(super) fn events_alone(accept: Option<&str>) -> bool {
    let accepts = |media_type| quality(accept.unwrap_or_default(), media_type) > Some(0);
    accepts(EVENT_STREAM) && !accepts(JSON) && !accepts(A2A_JSON)
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_lambda_rows::each_row;

    #[test]
    fn both_json_types_are_read_with_any_parameters() {
        for good in [
            "application/json",
            "Application/JSON; charset=utf-8",
            "application/a2a+json",
        ] {
            assert_eq!(check(Some(good)), Ok(()), "{good}");
        }
        let rows = [
            "text/plain",
            "application/jsonx",
            "",
            "application/json, text/plain",
        ];
        each_row(rows, |bad| {
            assert_eq!(
                check(Some(bad)),
                Err(A2aError::UnsupportedMediaType),
                "{bad}"
            );
        });
        assert_eq!(check(None), Err(A2aError::UnsupportedMediaType));
    }

    #[test]
    fn a_client_that_names_json_reads_more_than_events() {
        let rows = [
            "text/event-stream",
            "Text/Event-Stream; q=1",
            "*/*, text/event-stream",
            "text/event-stream;q=0.9, */*;q=0.8",
            "text/html, TEXT/EVENT-STREAM, application/json;q=0",
        ];
        each_row(rows, |events| {
            assert!(events_alone(Some(events)), "{events}");
        });
        let rows = [
            "text/event-stream, application/json",
            "application/a2a+json, text/event-stream",
            "text/event-stream;q=0, */*",
            "text/*",
            "*/*",
            "",
        ];
        each_row(rows, |more| {
            assert!(!events_alone(Some(more)), "{more}");
        });
        assert!(!events_alone(None));
    }

    #[test]
    fn json_rpc_and_the_rest_of_0_3_keep_plain_json() {
        let accept = Some("text/html, application/a2a+json;q=0.9");
        let rest = Dialect::rest(Generation::V03);
        assert_eq!(of_answer(rest, None, accept), A2A_JSON);
        assert_eq!(of_answer(rest, Some(A2A_JSON), None), A2A_JSON);
        assert_eq!(of_answer(rest, Some(JSON), Some("*/*")), JSON);
        for generation in [Generation::V10, Generation::V03, Generation::V01] {
            let rpc = Dialect::json_rpc(generation);
            assert_eq!(of_answer(rpc, Some(A2A_JSON), accept), JSON);
        }
    }

    #[test]
    fn rest_of_1_0_is_the_type_of_a2a_unless_plain_json_is_preferred() {
        let rest = Dialect::rest(Generation::V10);
        let rows = [
            "",
            "*/*",
            "application/*",
            "text/html",
            "application/json;q=0, */*",
            "application/json, application/a2a+json",
            "application/json;q=0.5, application/a2a+json;q=0.8",
        ];
        each_row(rows, |other| {
            assert_eq!(
                of_answer(rest, Some(JSON), Some(other)),
                A2A_JSON,
                "{other}"
            );
        });
        assert_eq!(of_answer(rest, Some(JSON), None), JSON);
        assert_eq!(of_answer(rest, None, None), JSON);
        assert_eq!(of_answer(rest, None, Some(EVENT_STREAM)), JSON);
        assert_eq!(of_answer(rest, Some(A2A_JSON), None), A2A_JSON);
        let cases = [
            "application/json",
            "Application/JSON; charset=utf-8; q=0.1",
            "application/json, text/event-stream",
            "application/a2a+json;q=0.8, application/json",
            "application/a2a+json;q=0.85, application/json;q=0.9",
        ];
        each_row(cases, |plain| {
            assert_eq!(
                of_answer(rest, Some(A2A_JSON), Some(plain)),
                JSON,
                "{plain}"
            );
        });
    }

    #[test]
    fn a_quality_is_read_to_three_digits() {
        let cases = [
            ("0", 0),
            ("0.", 0),
            ("0.8", 800),
            ("0.123", 123),
            ("1", 1000),
        ];
        each_row(cases, |(text, wanted)| {
            assert_eq!(thousandths(text), wanted, "{text}");
        });
        each_row(["", "2", "-1", "0.x", "1.0"], |odd| {
            assert_eq!(thousandths(odd), 1000, "{odd}");
        });
    }
}
