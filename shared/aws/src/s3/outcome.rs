//! Says what a response of S3 means: the result of a conditional put, an error, or a
//! repeat of the request.

use crate::outcome::{self, broke_off, status};
use a2a_lambda_model::store::StoreError;
use aws_sdk_s3::error::{ProvideErrorMetadata, SdkError};
use aws_smithy_runtime_api::client::interceptors::context::InterceptorContext;
use aws_smithy_runtime_api::client::retries::classifiers::{ClassifyRetry, RetryAction};

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

/// Whether a conditional write has stored the object; `false` if one exists under the key.
///
/// # Errors
/// [`StoreError`], also when another put of the key is in progress: nothing is decided.
pub(super) fn is_new<T, E: ProvideErrorMetadata>(
    key: &str,
    result: Result<T, SdkError<E>>,
) -> Result<bool, StoreError> {
    let Err(error) = result else {
        return Ok(true);
    };
    match status(&error) {
        // S3 answers a failed `If-None-Match: *` with 412, and with 409 while another put
        // of the key is in progress.
        Some(412) => Ok(false),
        Some(409) => Err(racing(key)),
        _ => Err(s3_error(&error)),
    }
}

pub(super) fn racing(key: &str) -> StoreError {
    StoreError::Unavailable(format!("every put of `{key}` met another put"))
}

pub(super) fn conflict(key: &str) -> StoreError {
    StoreError::Refused(format!("other bytes are stored under `{key}`"))
}

/// Whether the request names an object that does not exist. The response to a HEAD has no
/// body, so no code.
pub(super) fn is_missing<E: ProvideErrorMetadata>(error: &SdkError<E>) -> bool {
    matches!(
        (status(error), error.code()),
        (_, Some("NoSuchKey")) | (Some(404), None | Some("NotFound"))
    )
}

/// The error of a read that S3 did not carry out.
///
/// To a role that may not list the bucket, S3 says `AccessDenied` for an object that does not
/// exist (Amazon S3 API Reference, "`GetObject`", under "Permissions"). Most functions have no
/// such right, so that they cannot list the keys of other tenants. The same response means
/// that a right on the bucket or its key is lost.
pub(super) fn unread<E: ProvideErrorMetadata>(
    error: &SdkError<E>,
    bucket: &str,
    key: &str,
) -> StoreError {
    if status(error) == Some(403)
        && matches!(error.code(), None | Some("AccessDenied" | "Forbidden"))
    {
        let prefix = key.split_inclusive('/').next().unwrap_or_default();
        let why = "it is missing, or a right on the bucket or its key is";
        let text = format!("S3 answered 403 for an object below `{prefix}` of `{bucket}`: {why}");
        return StoreError::Denied(text);
    }
    s3_error(error)
}

/// The error of a request that S3 did not carry out.
pub(super) fn s3_error<E: ProvideErrorMetadata>(error: &SdkError<E>) -> StoreError {
    // 408 is a timeout and 429 throttling, and 403 lasts until an operator gives a right
    // back. The other 4xx fail again when repeated.
    outcome::service_error("S3", error, |status, _| !matches!(status, 403 | 408 | 429))
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_lambda_rows::each_row;
    use aws_sdk_s3::error::ErrorMetadata;
    use aws_sdk_s3::operation::get_object::GetObjectError;
    use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
    use aws_smithy_runtime_api::http::StatusCode;
    use aws_smithy_types::body::SdkBody;

    fn answer(status: u16, code: Option<&str>) -> SdkError<GetObjectError> {
        let mut metadata = ErrorMetadata::builder();
        if let Some(code) = code {
            metadata = metadata.code(code);
        }
        let status = StatusCode::try_from(status).unwrap();
        let response = HttpResponse::new(status, SdkBody::empty());
        SdkError::service_error(GetObjectError::generic(metadata.build()), response)
    }

    #[test]
    fn an_object_is_missing_only_if_s3_says_so() {
        for (status, code) in [(404, Some("NoSuchKey")), (404, None)] {
            assert!(is_missing(&answer(status, code)), "{status} {code:?}");
        }
        for code in [Some("AccessDenied"), Some("Forbidden"), None] {
            let answer = answer(403, code);
            assert!(!is_missing(&answer), "{code:?}");
            let error = unread(&answer, "files", "v1/tenant/task/key");
            assert!(matches!(error, StoreError::Denied(_)), "{error}");
            let text = error.to_string();
            assert!(text.contains("below `v1/` of `files`"), "{text}");
            assert!(!text.contains("tenant"), "{text}");
        }
    }

    #[test]
    fn a_lost_right_is_an_outage() {
        for code in [None, Some("AccessDenied"), Some("InvalidAccessKeyId")] {
            let error = s3_error(&answer(403, code));
            assert!(error.is_outage(), "{error}");
        }
    }

    #[test]
    fn a_broken_signature_or_bucket_is_no_missing_object() {
        let rows = [
            (403, Some("SignatureDoesNotMatch")),
            (403, Some("InvalidAccessKeyId")),
            (403, Some("RequestTimeTooSkewed")),
            (404, Some("NoSuchBucket")),
            (404, Some("NoSuchUpload")),
            (400, Some("ExpiredToken")),
            (503, Some("SlowDown")),
        ];
        each_row(rows, |(status, code)| {
            assert!(!is_missing(&answer(status, code)), "{status} {code:?}");
        });
    }
}
