//! Says what a response of S3 means: the result of a conditional put, an error, or a
//! repeat of the request.

use crate::clients::broke_off;
use a2a_lambda_model::store::StoreError;
use aws_sdk_s3::error::{ProvideErrorMetadata, SdkError};
use aws_smithy_runtime_api::client::interceptors::context::InterceptorContext;
use aws_smithy_runtime_api::client::retries::classifiers::{ClassifyRetry, RetryAction};

/// The result of one attempt of a put.
pub(super) enum PutResult {
    Stored,
    /// An object exists under the key.
    Taken,
    /// Another put of the key is in progress: nothing is decided.
    Racing,
}

/// The SDK also repeats these requests: a put that meets another put of its key, which can
/// only be an earlier attempt of our own, and a request with a truncated response.
#[derive(Debug)]
pub(super) struct RetryPut;

impl ClassifyRetry for RetryPut {
    fn classify_retry(&self, context: &InterceptorContext) -> RetryAction {
        let racing = context
            .response()
            .is_some_and(|response| response.status().as_u16() == 409);
        if racing || broke_off(context) {
            RetryAction::transient_error()
        } else {
            RetryAction::NoActionIndicated
        }
    }

    fn name(&self) -> &'static str {
        "undecided writes"
    }
}

/// Converts the response to a conditional write.
pub(super) fn put_of<T, E: ProvideErrorMetadata>(
    sent: Result<T, SdkError<E>>,
) -> Result<PutResult, StoreError> {
    match sent {
        Ok(_) => Ok(PutResult::Stored),
        Err(error) => match status(&error) {
            // S3 answers a failed `If-None-Match: *` with 412, and with 409 while another put
            // of the key is in progress.
            Some(412) => Ok(PutResult::Taken),
            Some(409) => Ok(PutResult::Racing),
            status => Err(failed(status, &error)),
        },
    }
}

pub(super) fn racing(key: &str) -> StoreError {
    StoreError::Unavailable(format!("every put of `{key}` met another put"))
}

pub(super) fn taken(key: &str) -> StoreError {
    StoreError::Refused(format!("other bytes are stored under `{key}`"))
}

pub(super) fn status<E>(error: &SdkError<E>) -> Option<u16> {
    error
        .raw_response()
        .map(|response| response.status().as_u16())
}

/// The error of a request that S3 did not carry out.
pub(super) fn failed<E: ProvideErrorMetadata>(
    status: Option<u16>,
    error: &SdkError<E>,
) -> StoreError {
    let code = error.code().unwrap_or("no code");
    match status {
        // 408 is a timeout and 429 throttling; the other 4xx fail again when repeated.
        Some(status @ 400..=499) if !matches!(status, 408 | 429) => {
            StoreError::Refused(format!("S3 answered {status}: {code}"))
        }
        Some(status) => StoreError::Unavailable(format!("S3 answered {status}: {code}")),
        None => StoreError::Unavailable("S3 did not answer".to_owned()),
    }
}
