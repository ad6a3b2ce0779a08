//! Checks the content types of requests and picks those of responses.

use super::Binding;
use a2a_lambda_model::task::A2aError;

/// Plain JSON.
pub(super) const JSON: &str = "application/json";
/// JSON as A2A 1.0.1 names it for its REST binding (A2A 1.0 §11.1).
pub(super) const A2A_JSON: &str = "application/a2a+json";
/// Server-sent events.
pub(super) const EVENT_STREAM: &str = "text/event-stream";

/// Whether `header` names the media type `wanted`, parameters aside.
fn is(header: &str, wanted: &str) -> bool {
    let essence = header.split(';').next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case(wanted)
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
/// JSON-RPC is always plain JSON. Over REST, 1.0.0 says `application/json` and
/// 1.0.1 `application/a2a+json`; the response uses the latter only if the request
/// body has it or `Accept` names it.
pub(super) fn of_answer(
    binding: Binding,
    content_type: Option<&str>,
    accept: Option<&str>,
) -> &'static str {
    let asked = content_type.is_some_and(|header| is(header, A2A_JSON))
        || accept.is_some_and(|header| header.split(',').any(|item| is(item, A2A_JSON)));
    // A2A 1.0 §9.1: JSON-RPC. A2A 1.0 §11.1: REST.
    match binding {
        Binding::Rest if asked => A2A_JSON,
        Binding::Rest | Binding::JsonRpc => JSON,
    }
}

/// Whether `Accept` names server-sent events and no other type.
pub(super) fn only_events(accept: Option<&str>) -> bool {
    accept.is_some_and(|header| header.split(',').all(|item| is(item, EVENT_STREAM)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_json_types_are_read_with_any_parameters() {
        for good in [
            "application/json",
            "Application/JSON; charset=utf-8",
            "application/a2a+json",
        ] {
            assert_eq!(check(Some(good)), Ok(()), "{good}");
        }
        for bad in [
            "text/plain",
            "application/jsonx",
            "",
            "application/json, text/plain",
        ] {
            assert_eq!(
                check(Some(bad)),
                Err(A2aError::UnsupportedMediaType),
                "{bad}"
            );
        }
        assert_eq!(check(None), Err(A2aError::UnsupportedMediaType));
    }

    #[test]
    fn a_client_that_accepts_another_type_reads_more_than_events() {
        assert!(only_events(Some("text/event-stream")));
        assert!(only_events(Some("Text/Event-Stream; q=1")));
        for more in ["text/event-stream, application/json", "*/*", ""] {
            assert!(!only_events(Some(more)), "{more}");
        }
        assert!(!only_events(None));
    }

    #[test]
    fn rest_follows_the_client_and_json_rpc_stays_plain_json() {
        let accept = Some("text/html, application/a2a+json;q=0.9");
        assert_eq!(of_answer(Binding::Rest, None, accept), A2A_JSON);
        assert_eq!(of_answer(Binding::Rest, Some(A2A_JSON), None), A2A_JSON);
        assert_eq!(of_answer(Binding::Rest, Some(JSON), Some("*/*")), JSON);
        assert_eq!(of_answer(Binding::JsonRpc, Some(A2A_JSON), accept), JSON);
    }
}
