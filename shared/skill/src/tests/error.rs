//! Tests which parts of an error are public.

use crate::{AgentError, AgentResult, ErrorCode};
use serde_json::json;
use std::collections::BTreeSet;

#[test]
fn only_a_limit_of_requests_is_transient_from_the_start() {
    let transient = all().into_iter().filter(|(error, _)| error.is_transient());
    let codes: Vec<_> = transient.map(|(_, code)| code).collect();
    assert_eq!(codes, ["MODEL_RATE_LIMITED"]);
    assert!(AgentError::model_provider("x").transient().is_transient());
}

/// Every constructor with its code.
fn all() -> Vec<(AgentError, &'static str)> {
    vec![
        (AgentError::model_provider("secret"), "MODEL_PROVIDER"),
        (AgentError::model_auth("secret"), "MODEL_AUTH"),
        (
            AgentError::model_rate_limited("secret"),
            "MODEL_RATE_LIMITED",
        ),
        (AgentError::content_filtered("secret"), "CONTENT_FILTERED"),
        (
            AgentError::context_length_exceeded("secret"),
            "CONTEXT_LENGTH_EXCEEDED",
        ),
        (AgentError::model_output("secret"), "MODEL_OUTPUT"),
        (AgentError::model_unavailable(), "MODEL_UNAVAILABLE"),
        (AgentError::task_not_found("t"), "TASK_NOT_FOUND"),
        (AgentError::session_not_found("s"), "SESSION_NOT_FOUND"),
        (
            AgentError::invalid_transition("it has ended"),
            "INVALID_TASK_STATE_TRANSITION",
        ),
        (AgentError::skill_not_found("s"), "SKILL_NOT_FOUND"),
        (AgentError::invalid_input("bad"), "INVALID_INPUT"),
        (AgentError::missing_input("none"), "MISSING_INPUT"),
        (AgentError::context("nothing saved"), "CONTEXT_ERROR"),
        (AgentError::context_expired(), "CONTEXT_EXPIRED"),
        (
            AgentError::state_incompatible("secret"),
            "STATE_INCOMPATIBLE",
        ),
        (AgentError::state_too_large(2, 1), "STATE_TOO_LARGE"),
        (
            AgentError::content_type_not_supported("no image"),
            "CONTENT_TYPE_NOT_SUPPORTED",
        ),
        (AgentError::rate_limited(3), "RATE_LIMITED"),
        (AgentError::canceled(), "CANCELED"),
        (AgentError::deadline(), "DEADLINE"),
        (AgentError::network("secret"), "NETWORK"),
        (AgentError::serialization("secret"), "SERIALIZATION"),
        (AgentError::internal("secret"), "INTERNAL_ERROR"),
        (AgentError::domain("MINE", "mine"), "MINE"),
    ]
}

#[test]
fn error_codes_are_unique() {
    let mut codes = BTreeSet::new();
    for (error, code) in all() {
        assert_eq!(error.code().as_str(), code);
        assert!(codes.insert(code), "{code}");
    }
}

#[test]
fn error_texts_never_contain_the_private_cause() {
    for (error, code) in all() {
        let shown = format!("{error} {error:?} {:?}", error.details());
        assert!(!shown.contains("secret"), "{code}: {shown}");
        assert!(!error.text().is_empty(), "{code}");
    }
    let network = AgentError::network("secret");
    assert_eq!(network.cause(), Some("secret"));
}

#[derive(Debug, thiserror::Error)]
#[error("no connection to {host}")]
struct Connection {
    host: &'static str,
    source: std::num::ParseIntError,
}

#[test]
fn any_error_becomes_an_internal_error_with_a_fixed_text() {
    fn port(text: &str) -> Result<u16, Connection> {
        let host = "db.internal";
        text.parse().map_err(|source| Connection { host, source })
    }
    fn skill() -> AgentResult<u16> {
        Ok(port("x")?)
    }
    let error = skill().unwrap_err();
    assert_eq!(error.code(), ErrorCode::InternalError);
    assert_eq!(error.text(), "internal error");
    let cause = "no connection to db.internal: invalid digit found in string";
    assert_eq!(error.cause(), Some(cause));
}

#[test]
fn a_constructor_can_keep_the_whole_chain_of_causes() {
    let source = "x".parse::<u16>().unwrap_err();
    let host = "db";
    let error = AgentError::network("").with_cause(&Connection { host, source });
    assert_eq!(error.code(), ErrorCode::Network);
    assert!(error.cause().unwrap().ends_with("digit found in string"));
}

#[test]
fn details_are_public_and_named() {
    let error = AgentError::state_too_large(1_048_577, 1_048_576).with_detail("key", "draft");
    let details = serde_json::to_value(error.details()).unwrap();
    let expected = json!({"current": 1_048_577, "allowed": 1_048_576, "key": "draft"});
    assert_eq!(details, expected);
    let limited = AgentError::rate_limited(3);
    assert_eq!(limited.details()["retryAfter"], 3);
}
