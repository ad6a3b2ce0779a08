//! Why a call of Bedrock fails, and the error of the skill for it.

use crate::provider::{ModelCallError, ToError, out_of_order};
use a2a_lambda_skill::AgentError;
use aws_sdk_bedrockruntime::error::{DisplayErrorContext, ProvideErrorMetadata, SdkError};
use aws_sdk_bedrockruntime::types::error::ConverseStreamOutputError;
use aws_smithy_types::event_stream::RawMessage;
use std::error::Error;

/// The most characters of the SDK's text that the cause keeps.
const TEXT_LIMIT: usize = 400;

/// The error of a call that the service refused, or that did not reach it.
pub(super) fn of_call<E>(error: &SdkError<E>) -> ModelCallError
where
    E: Error + ProvideErrorMetadata + 'static,
{
    let code = error
        .as_service_error()
        .and_then(ProvideErrorMetadata::code);
    let response = error.raw_response();
    let status = response.map(|response| response.status().as_u16());
    let mut failure = service_error(error, code, status);
    if let (SdkError::DispatchFailure(_), ModelCallError::Service { error, .. }) =
        (error, &mut failure)
    {
        *error = out_of_order;
    }
    failure
}

/// The error of a stream. The SDK gives its exceptions a type and no name.
pub(super) fn of_event(error: &SdkError<ConverseStreamOutputError, RawMessage>) -> ModelCallError {
    let code = match error.as_service_error() {
        Some(ConverseStreamOutputError::ThrottlingException(_)) => Some("ThrottlingException"),
        Some(ConverseStreamOutputError::ValidationException(_)) => Some("ValidationException"),
        _ => None,
    };
    service_error(error, code, None)
}

fn service_error(
    error: &(dyn Error + 'static),
    code: Option<&str>,
    status: Option<u16>,
) -> ModelCallError {
    let text = DisplayErrorContext(error).to_string();
    let text: String = text.chars().take(TEXT_LIMIT).collect();
    let error = of_service(code, status, &text.to_lowercase());
    ModelCallError::Service { error, text }
}

/// Parts of the message of a `ValidationException`, in lower case.
const CONTEXT_LENGTH_MESSAGES: &[&str] = &[
    "too long",
    "too many input tokens",
    "exceeds the maximum",
    "maximum context length",
];

fn of_service(code: Option<&str>, status: Option<u16>, text: &str) -> ToError {
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
        // Bedrock sends it with the status 429.
        Some("ModelNotReadyException") => out_of_order,
        // The SDK has no credentials to sign with.
        None if text.contains("credential") => AgentError::model_auth,
        _ if status.is_some_and(|status| status >= 500) => out_of_order,
        _ => AgentError::model_provider,
    }
}
