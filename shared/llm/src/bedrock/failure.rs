//! Why a call of Bedrock fails, and the error of the skill for it.

use a2a_lambda_skill::AgentError;
use aws_sdk_bedrockruntime::error::{DisplayErrorContext, ProvideErrorMetadata, SdkError};
use aws_sdk_bedrockruntime::types::error::ConverseStreamOutputError;
use aws_smithy_types::event_stream::RawMessage;
use std::error::Error;
use std::time::Duration;

/// The most characters of the SDK's text that the cause keeps.
const TEXT_LIMIT: usize = 400;

/// Why a call fails.
#[derive(Debug, thiserror::Error)]
pub(super) enum BedrockCallError {
    /// The request cannot be made.
    #[error("the request cannot be made: {0}")]
    Request(String),
    /// The service refused the call, or could not be reached.
    #[error("{text}")]
    Sdk {
        /// The name of the exception, if the service sent one.
        code: Option<String>,
        /// The SDK's text.
        text: String,
    },
    /// The service was silent for too long.
    #[error("no complete answer within {0:?}")]
    Slow(Duration),
    /// The stream ended before the answer did.
    #[error("the stream ended before the answer was complete")]
    Cut,
    /// The answer exceeds the limit of bytes.
    #[error("the answer is longer than {0} bytes")]
    TooLong(usize),
    /// The answer does not have the form of the API.
    #[error("the answer has {0}")]
    Form(&'static str),
    /// The conversation is longer than the context of the model.
    #[error("the context window is exceeded")]
    ContextLength,
}

impl BedrockCallError {
    /// The error of a stream. The SDK gives its exceptions a type and no name.
    pub(super) fn of_event(error: SdkError<ConverseStreamOutputError, RawMessage>) -> Self {
        let code = match error.as_service_error() {
            Some(ConverseStreamOutputError::ThrottlingException(_)) => Some("ThrottlingException"),
            Some(ConverseStreamOutputError::ValidationException(_)) => Some("ValidationException"),
            _ => None,
        };
        match Self::from(error) {
            Self::Sdk { text, .. } => Self::Sdk {
                code: code.map(str::to_owned),
                text,
            },
            other => other,
        }
    }
}

impl<E, R> From<SdkError<E, R>> for BedrockCallError
where
    E: Error + ProvideErrorMetadata + 'static,
    R: std::fmt::Debug + 'static,
{
    fn from(error: SdkError<E, R>) -> Self {
        let code = error
            .as_service_error()
            .and_then(ProvideErrorMetadata::code);
        let code = code.map(str::to_owned);
        let text = DisplayErrorContext(&error).to_string();
        Self::Sdk {
            code,
            text: text.chars().take(TEXT_LIMIT).collect(),
        }
    }
}

/// Parts of the message of a `ValidationException`, in lower case.
const CONTEXT_LENGTH_MESSAGES: &[&str] = &[
    "too long",
    "too many input tokens",
    "exceeds the maximum",
    "maximum context length",
];

impl BedrockCallError {
    pub(super) fn into_agent(self) -> AgentError {
        let make = match &self {
            Self::ContextLength => AgentError::context_length_exceeded,
            Self::TooLong(_) => AgentError::model_output,
            Self::Sdk { code, text } => of_service(code.as_deref(), &text.to_lowercase()),
            Self::Request(_) | Self::Slow(_) | Self::Cut | Self::Form(_) => {
                AgentError::model_provider
            }
        };
        make(self.into())
    }
}

type ToError = fn(Box<dyn Error + Send + Sync>) -> AgentError;

fn of_service(code: Option<&str>, text: &str) -> ToError {
    match code {
        Some(
            "ThrottlingException" | "ServiceQuotaExceededException" | "TooManyRequestsException",
        ) => AgentError::model_rate_limited,
        Some(
            "AccessDeniedException"
            | "UnrecognizedClientException"
            | "ExpiredTokenException"
            | "ExpiredToken"
            | "InvalidSignatureException"
            | "IncompleteSignatureException"
            | "MissingAuthenticationTokenException",
        ) => AgentError::model_auth,
        Some("ValidationException")
            if CONTEXT_LENGTH_MESSAGES
                .iter()
                .any(|part| text.contains(part)) =>
        {
            AgentError::context_length_exceeded
        }
        // The SDK has no credentials to sign with.
        None if text.contains("credential") => AgentError::model_auth,
        _ => AgentError::model_provider,
    }
}
