//! Why a call of a model fails, and the error of the skill for it.
//!
//! What the service wrote stays in the private cause.

use super::values::text;
use crate::provider::{ModelCallError, ToError, answer_error, out_of_order};
use a2a_lambda_skill::AgentError;
use serde_json::Value;
use std::fmt;

/// The most characters of a service's message that the cause keeps.
const MESSAGE_LIMIT: usize = 300;

/// What a service says of an error.
#[derive(Debug, Default, PartialEq, Eq)]
struct ErrorReport {
    /// The codes and types, from the most to the least specific.
    codes: Vec<String>,
    /// The message, cut.
    message: String,
}

impl fmt::Display for ErrorReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}] {}", self.codes.join(", "), self.message)
    }
}

/// Codes and types of the services.
const CODES: &[(&str, ToError)] = &[
    // OpenAI, Azure, LiteLLM
    (
        "context_length_exceeded",
        AgentError::context_length_exceeded,
    ),
    // llama.cpp
    (
        "exceed_context_size_error",
        AgentError::context_length_exceeded,
    ),
    // Azure, OpenAI
    ("content_filter", AgentError::content_filtered),
    ("content_policy_violation", AgentError::content_filtered),
    ("ResponsibleAIPolicyViolation", AgentError::content_filtered),
    ("rate_limit_exceeded", AgentError::model_rate_limited),
    ("rate_limit_error", AgentError::model_rate_limited),
    ("insufficient_quota", AgentError::model_rate_limited),
    ("invalid_api_key", AgentError::model_auth),
    ("authentication_error", AgentError::model_auth),
    ("permission_error", AgentError::model_auth),
];

/// Parts of messages, in lower case. These services send no code of their own: vLLM and
/// OpenRouter, OpenAI's Responses API, llama.cpp.
const CONTEXT_LENGTH_MESSAGES: &[&str] = &[
    "maximum context length",
    "exceeds the context window",
    "exceeds the available context size",
];

impl ErrorReport {
    /// Reads an error: the member `error`, or the value itself.
    fn of(value: &Value) -> Self {
        let error = value.get("error").filter(|error| !error.is_null());
        let error = error.unwrap_or(value);
        let inner = error.get("innererror").unwrap_or(&Value::Null);
        let code = |value: &Value, name| match value.get(name) {
            Some(Value::String(code)) => Some(code.clone()),
            Some(Value::Number(code)) => Some(code.to_string()),
            _ => None,
        };
        let codes = [
            code(inner, "code"),
            code(error, "code"),
            code(error, "type"),
        ];
        let message = text(error, "message").or_else(|| text(error, "detail"));
        let message = message.or_else(|| error.as_str()).unwrap_or_default();
        Self {
            codes: codes.into_iter().flatten().collect(),
            message: message.chars().take(MESSAGE_LIMIT).collect(),
        }
    }

    /// The error of the skill.
    fn error(&self, status: Option<u16>) -> ToError {
        let entry_of = |code: &String| {
            let mut entries = CODES.iter();
            entries.find(|(word, _)| word.eq_ignore_ascii_case(code))
        };
        if let Some((_, error)) = self.codes.iter().find_map(entry_of) {
            return *error;
        }
        // OpenRouter sends the status of its own provider as the code.
        let status_code = || self.codes.iter().find_map(|code| code.parse().ok());
        match status.or_else(status_code) {
            Some(401 | 403) => return AgentError::model_auth,
            Some(429) => return AgentError::model_rate_limited,
            _ => {}
        }
        let message = self.message.to_lowercase();
        let mut messages = CONTEXT_LENGTH_MESSAGES.iter();
        if messages.any(|part| message.contains(part)) {
            return AgentError::context_length_exceeded;
        }
        // A code in an answer with the status 200 comes after the service has begun.
        match status {
            Some(500..=599) => out_of_order,
            _ => AgentError::model_provider,
        }
    }
}

/// The error of an answer with a status other than 2xx.
pub(super) fn status_error(status: u16, body: &[u8]) -> ModelCallError {
    let report = serde_json::from_slice(body).map(|value| ErrorReport::of(&value));
    let report = report.unwrap_or_default();
    ModelCallError::Service {
        error: report.error(Some(status)),
        text: format!("status {status}: {report}"),
    }
}

/// The error that an answer, or an event of its stream, reports.
pub(super) fn reported_error(value: &Value) -> ModelCallError {
    let report = ErrorReport::of(value);
    ModelCallError::Service {
        error: report.error(None),
        text: format!("the answer reports an error: {report}"),
    }
}

/// The error of a service that cannot be reached, or whose connection broke before its answer.
pub(super) fn no_answer(cause: &str) -> ModelCallError {
    ModelCallError::Service {
        error: out_of_order,
        text: format!("no answer: {cause}"),
    }
}

/// The error of a connection that broke in an answer.
pub(super) fn no_rest(cause: &str) -> ModelCallError {
    ModelCallError::Service {
        error: |cause| out_of_order(cause).after_answer(),
        text: format!("the answer breaks off: {cause}"),
    }
}

/// Wraps an error of the JSON parser, without the content that its text may quote.
pub(super) fn no_json(error: &serde_json::Error) -> ModelCallError {
    let (line, column) = (error.line(), error.column());
    ModelCallError::Service {
        error: answer_error,
        text: format!("the answer is not JSON: line {line}, column {column}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_lambda_skill::ErrorCode;
    use serde_json::json;

    fn code(status: u16, body: &Value) -> ErrorCode {
        let error = status_error(status, body.to_string().as_bytes());
        error.into_agent().code().clone()
    }

    #[test]
    fn codes_of_services_become_the_codes_of_skills() {
        let error = |members: Value| json!({ "error": members });
        let cases = [
            (
                401,
                error(json!({"code": "invalid_api_key"})),
                ErrorCode::ModelAuth,
            ),
            (403, json!({"detail": "no"}), ErrorCode::ModelAuth),
            (
                429,
                error(json!({"type": "requests"})),
                ErrorCode::ModelRateLimited,
            ),
            // Groq answers 413 to too many tokens a minute.
            (
                413,
                error(json!({"code": "rate_limit_exceeded"})),
                ErrorCode::ModelRateLimited,
            ),
            (
                400,
                error(json!({"code": "context_length_exceeded"})),
                ErrorCode::ContextLengthExceeded,
            ),
            (
                400,
                error(json!({"type": "exceed_context_size_error"})),
                ErrorCode::ContextLengthExceeded,
            ),
            (
                400,
                json!({"object": "error", "message": "This model's maximum context length is 9.", "code": 400}),
                ErrorCode::ContextLengthExceeded,
            ),
            (
                400,
                error(json!({"code": "content_filter"})),
                ErrorCode::ContentFiltered,
            ),
            (
                400,
                error(
                    json!({"code": null, "innererror": {"code": "ResponsibleAIPolicyViolation"}}),
                ),
                ErrorCode::ContentFiltered,
            ),
            (
                400,
                error(json!({"code": "invalid_value"})),
                ErrorCode::ModelProvider,
            ),
            (400, error(json!("a text")), ErrorCode::ModelProvider),
            (503, json!("busy"), ErrorCode::ModelProvider),
        ];
        for (status, body, expected) in cases {
            assert_eq!(code(status, &body), expected, "{status} {body}");
        }
    }

    #[test]
    fn code_of_a_reported_error_may_be_a_status() {
        let body = json!({"error": {"code": 429, "message": "slow down"}});
        let error = reported_error(&body).into_agent();
        assert_eq!(error.code(), ErrorCode::ModelRateLimited);
    }

    #[test]
    fn only_a_status_says_that_the_service_is_out_of_order() {
        let refusal = |status: u16, code: &str| {
            let body = json!({"error": {"code": code}}).to_string();
            let error = status_error(status, body.as_bytes()).into_agent();
            (error.code().clone(), error.is_transient())
        };
        for status in [500, 502, 503, 529, 599] {
            assert_eq!(refusal(status, "x"), (ErrorCode::ModelProvider, true));
        }
        for status in [400, 408, 499, 600] {
            assert_eq!(refusal(status, "x"), (ErrorCode::ModelProvider, false));
        }
        let expected = (ErrorCode::ContextLengthExceeded, false);
        assert_eq!(refusal(500, "context_length_exceeded"), expected);
        let event = reported_error(&json!({"error": {"code": 503}})).into_agent();
        assert_eq!(event.code(), ErrorCode::ModelProvider);
        assert!(!event.is_transient());
    }

    #[test]
    fn message_of_the_service_is_private_and_cut() {
        let body = json!({"error": {"code": "x", "message": "ä".repeat(1000)}});
        let error = status_error(500, body.to_string().as_bytes()).into_agent();
        assert_eq!(error.text(), "the model service failed");
        assert!(error.details().is_empty());
        let expected = format!("status 500: [x] {}", "ä".repeat(MESSAGE_LIMIT));
        assert_eq!(error.cause(), Some(expected.as_str()));
    }
}
