//! What the errors of the services have in common.

use a2a_lambda_model::store::StoreError;
use aws_smithy_runtime_api::client::interceptors::context::InterceptorContext;
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;
use aws_smithy_types::error::operation::BuildError;

/// Whether a request succeeded but its response was cut off. The SDK does not classify this
/// error and does not repeat the request. Our store recognises its own writes, so repeating
/// them is safe.
pub(crate) fn broke_off(context: &InterceptorContext) -> bool {
    let has_failed = matches!(context.output_or_error(), Some(Err(_)));
    let is_success = |response: &HttpResponse| response.status().is_success();
    has_failed && context.response().is_some_and(is_success)
}

pub(crate) fn status<E>(error: &SdkError<E, HttpResponse>) -> Option<u16> {
    let response = error.raw_response();
    response.map(|response| response.status().as_u16())
}

/// The error of a request that `service` did not carry out. `lasts` says for which codes of
/// a 4xx a repeated request fails again.
pub(crate) fn service_error<E: ProvideErrorMetadata>(
    service: &str,
    error: &SdkError<E, HttpResponse>,
    lasts: impl FnOnce(u16, &str) -> bool,
) -> StoreError {
    let code = error.code().unwrap_or("no code");
    match status(error) {
        Some(status @ 400..=499) if lasts(status, code) => {
            StoreError::Refused(format!("{service} answered {status}: {code}"))
        }
        Some(status) => StoreError::Unavailable(format!("{service} answered {status}: {code}")),
        None => StoreError::Unavailable(format!("{service} did not answer")),
    }
}

/// The error of a request that lacks a member, which does not happen here.
#[expect(
    clippy::needless_pass_by_value,
    reason = "the form that `map_err` takes"
)]
pub(crate) fn incomplete(error: BuildError) -> StoreError {
    StoreError::Refused(error.to_string())
}
