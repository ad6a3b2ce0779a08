//! Why a call of a model fails, and the error of the skill for it.
//!
//! What the service wrote stays in the private cause.

use super::values::text;
use a2a_lambda_skill::AgentError;
use serde_json::Value;
use std::fmt;
use std::time::Duration;

/// The most characters of a service's message that the cause keeps.
const MESSAGE_LIMIT: usize = 300;

/// Why a call fails.
#[derive(Debug, thiserror::Error)]
pub(super) enum ModelCallError {
    /// The request cannot be written.
    #[error("the request cannot be made: {0}")]
    Request(String),
    /// The service cannot be reached, or the connection broke.
    #[error("no answer: {0}")]
    Connection(String),
    /// The service was silent, or the whole call took too long.
    #[error("no complete answer within {0:?}")]
    Slow(Duration),
    /// The answer exceeds the limit of bytes.
    #[error("the answer is longer than {0} bytes")]
    TooLong(usize),
    /// The service answered with a status other than 2xx.
    #[error("status {status}: {report}")]
    Refused {
        /// The status.
        status: u16,
        /// What the body reports.
        report: ErrorReport,
    },
    /// The answer, or an event of its stream, reports an error.
    #[error("the answer reports an error: {0}")]
    Reported(ErrorReport),
    /// The stream ended without its terminal event.
    #[error("the stream ended before the answer was complete")]
    Cut,
    /// The answer is not JSON. The text has its place alone, and nothing of the content.
    #[error("the answer is not JSON: line {line}, column {column}")]
    Json {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
    },
    /// The answer does not have the form of the API.
    #[error("the answer has {0}")]
    Form(&'static str),
}

/// What a service says of an error.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ErrorReport {
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

/// The kinds of errors that a caller tells apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FailureKind {
    Auth,
    RateLimited,
    Filtered,
    ContextLength,
}

/// Codes and types of the services.
const CODES: &[(&str, FailureKind)] = &[
    // OpenAI, Azure, LiteLLM
    ("context_length_exceeded", FailureKind::ContextLength),
    // llama.cpp
    ("exceed_context_size_error", FailureKind::ContextLength),
    // Azure, OpenAI
    ("content_filter", FailureKind::Filtered),
    ("content_policy_violation", FailureKind::Filtered),
    ("ResponsibleAIPolicyViolation", FailureKind::Filtered),
    ("rate_limit_exceeded", FailureKind::RateLimited),
    ("rate_limit_error", FailureKind::RateLimited),
    ("insufficient_quota", FailureKind::RateLimited),
    ("invalid_api_key", FailureKind::Auth),
    ("authentication_error", FailureKind::Auth),
    ("permission_error", FailureKind::Auth),
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
    pub(super) fn of(value: &Value) -> Self {
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

    /// Reads the body of a refusal.
    pub(super) fn of_body(body: &[u8]) -> Self {
        serde_json::from_slice(body).map_or_else(|_| Self::default(), |value| Self::of(&value))
    }

    fn kind(&self, status: Option<u16>) -> Option<FailureKind> {
        let entry_of = |code: &String| {
            CODES
                .iter()
                .find(|(word, _)| word.eq_ignore_ascii_case(code))
        };
        if let Some((_, kind)) = self.codes.iter().find_map(entry_of) {
            return Some(*kind);
        }
        // OpenRouter sends the status of its own provider as the code.
        let status_code = || self.codes.iter().find_map(|code| code.parse().ok());
        match status.or_else(status_code) {
            Some(401 | 403) => return Some(FailureKind::Auth),
            Some(429) => return Some(FailureKind::RateLimited),
            _ => {}
        }
        let message = self.message.to_lowercase();
        let mut messages = CONTEXT_LENGTH_MESSAGES.iter();
        let is_long = messages.any(|part| message.contains(part));
        is_long.then_some(FailureKind::ContextLength)
    }
}

impl ModelCallError {
    /// Wraps an error of the JSON parser, without the content that its text may quote.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "`map_err` passes the error as a value"
    )]
    pub(super) fn of_json(error: serde_json::Error) -> Self {
        Self::Json {
            line: error.line(),
            column: error.column(),
        }
    }

    fn kind(&self) -> Option<FailureKind> {
        match self {
            Self::Refused { status, report } => report.kind(Some(*status)),
            Self::Reported(report) => report.kind(None),
            Self::Request(_)
            | Self::Connection(_)
            | Self::Slow(_)
            | Self::TooLong(_)
            | Self::Cut
            | Self::Json { .. }
            | Self::Form(_) => None,
        }
    }

    /// The error of the skill, with this one as its private cause.
    pub(super) fn into_agent(self) -> AgentError {
        match self.kind() {
            Some(FailureKind::Auth) => AgentError::model_auth(self),
            Some(FailureKind::RateLimited) => AgentError::model_rate_limited(self),
            Some(FailureKind::Filtered) => AgentError::content_filtered(self),
            Some(FailureKind::ContextLength) => AgentError::context_length_exceeded(self),
            None if matches!(self, Self::TooLong(_)) => AgentError::model_output(self),
            None => AgentError::model_provider(self),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_lambda_skill::ErrorCode;
    use serde_json::json;

    fn code(status: u16, body: &Value) -> ErrorCode {
        let report = ErrorReport::of_body(body.to_string().as_bytes());
        ModelCallError::Refused { status, report }
            .into_agent()
            .code()
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
        let report = ErrorReport::of(&json!({"error": {"code": 429, "message": "slow down"}}));
        let error = ModelCallError::Reported(report).into_agent();
        assert_eq!(error.code(), ErrorCode::ModelRateLimited);
    }

    #[test]
    fn message_of_the_service_is_private_and_cut() {
        let body = json!({"error": {"code": "x", "message": "ä".repeat(1000)}});
        let report = ErrorReport::of(&body);
        let status = 500;
        let error = ModelCallError::Refused { status, report }.into_agent();
        assert_eq!(error.text(), "the model service failed");
        assert!(error.details().is_empty());
        let expected = format!("status 500: [x] {}", "ä".repeat(MESSAGE_LIMIT));
        assert_eq!(error.cause(), Some(expected.as_str()));
    }
}
