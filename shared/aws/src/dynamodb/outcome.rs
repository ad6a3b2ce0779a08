//! Says what an error of DynamoDB means.
//!
//! An SDK error means one of five things, and only the first is a conflict: a condition
//! failed; nothing is decided yet; the result is unknown; the item can never be stored;
//! the request is wrong. A missing right or an expired credential decides
//! nothing: the request may be right, and an operator can restore the right.

use super::expression::{self, SdkItem};
use crate::outcome::broke_off;
use a2a_lambda_model::store::{SizeError, StoreError};
use a2a_lambda_store::table::{ConditionCheck, WriteResult};
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::operation::delete_item::DeleteItemError;
use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::types::CancellationReason;
use aws_smithy_runtime_api::client::interceptors::context::{self, InterceptorContext};
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::retries::classifiers::{ClassifyRetry, RetryAction};
use std::error::Error;
use std::iter;

/// The SDK also repeats these requests: a write that met another write and decided
/// nothing, and a request with a truncated response.
#[derive(Debug)]
pub(super) struct RetryClass;

impl ClassifyRetry for RetryClass {
    fn classify_retry(&self, context: &InterceptorContext) -> RetryAction {
        let error = match context.output_or_error() {
            Some(Err(error)) => error.as_operation_error(),
            _ => return RetryAction::NoActionIndicated,
        };
        match error.and_then(undecided_error) {
            Some(StoreError::Contended(_)) => RetryAction::transient_error(),
            Some(StoreError::Unavailable(_)) => RetryAction::throttling_error(),
            _ if broke_off(context) => RetryAction::transient_error(),
            _ => RetryAction::NoActionIndicated,
        }
    }

    fn name(&self) -> &'static str {
        "undecided writes"
    }
}

/// The SDK never repeats these requests: one without a reply, and one that the service failed.
/// Each may be stored. A request whose outcome is not decided is repeated as before.
#[derive(Debug)]
pub(super) struct NeverTwice;

impl ClassifyRetry for NeverTwice {
    fn classify_retry(&self, context: &InterceptorContext) -> RetryAction {
        let is_refusal = |reply: &HttpResponse| (400..500).contains(&reply.status().as_u16());
        match context.response().is_some_and(is_refusal) {
            true => RetryAction::NoActionIndicated,
            false => RetryAction::RetryForbidden,
        }
    }

    fn name(&self) -> &'static str {
        "sums"
    }
}

/// Why a write failed, in the cases in which it decided nothing and the SDK does not see it.
fn undecided_error(error: &context::Error) -> Option<StoreError> {
    fn contention_error<E: ProvideErrorMetadata + Error + Send + Sync + 'static>(
        error: &context::Error,
    ) -> Option<StoreError> {
        let code = error.downcast_ref::<E>()?.code();
        let error = classify(code, "", String::new()).err();
        error.filter(|it| matches!(it, StoreError::Contended(_)))
    }
    match error.downcast_ref() {
        Some(TransactWriteItemsError::TransactionCanceledException(canceled_by)) => {
            classify_reasons(canceled_by.cancellation_reasons()).err()
        }
        Some(_) => None,
        None => contention_error::<PutItemError>(error)
            .or_else(|| contention_error::<UpdateItemError>(error))
            .or_else(|| contention_error::<DeleteItemError>(error)),
    }
}

/// What an error code means that is not a failed condition; `text` describes it.
fn classify(code: Option<&str>, message: &str, text: String) -> Result<WriteResult, StoreError> {
    Err(match code {
        Some(
            "TransactionConflict"
            | "TransactionConflictException"
            | "ReplicatedWriteConflictException",
        ) => StoreError::Contended(text),
        // `TransactionInProgress`: DynamoDB still runs the same transaction.
        Some(
            "TransactionInProgressException"
            | "ThrottlingError"
            | "ThrottlingException"
            | "ProvisionedThroughputExceeded"
            | "ProvisionedThroughputExceededException"
            | "RequestLimitExceeded"
            | "AccessDeniedException"
            | "ExpiredTokenException"
            | "InvalidSignatureException"
            | "MissingAuthenticationTokenException"
            | "UnrecognizedClientException",
        ) => StoreError::Unavailable(text),
        Some("ItemCollectionSizeLimitExceeded" | "ItemCollectionSizeLimitExceededException") => {
            StoreError::TooLarge(SizeError::Other(text))
        }
        // DynamoDB has no error code for an item above 400 KB; only the message tells.
        Some("ValidationError" | "ValidationException") if message.contains("size") => {
            StoreError::TooLarge(SizeError::Other(text))
        }
        // These codes, and a missing code as after a truncated response, say nothing
        // about what was stored.
        None
        | Some(
            "InternalServerError"
            | "InternalFailure"
            | "ServiceUnavailable"
            | "IdempotentParameterMismatchException",
        ) => return Ok(WriteResult::Unknown(text)),
        Some(_) => StoreError::Refused(text),
    })
}

/// The outcome of a write with this error. [`StoreError::Unavailable`] and
/// [`StoreError::Contended`] say that nothing is decided and nothing is stored.
pub(super) fn outcome<E: ProvideErrorMetadata>(
    error: &SdkError<E>,
) -> Result<WriteResult, StoreError> {
    let text = describe(error);
    match error {
        // DynamoDB may have applied a write before it fails with a 5xx.
        SdkError::ServiceError(service) if service.raw().status().as_u16() < 500 => {
            classify(error.code(), error.message().unwrap_or_default(), text)
        }
        SdkError::ConstructionFailure(_) => Err(StoreError::Refused(text)),
        _ => Ok(WriteResult::Unknown(text)),
    }
}

/// The code and the message of an error; never the content of an item.
fn describe<E: ProvideErrorMetadata>(error: &SdkError<E>) -> String {
    match error {
        SdkError::TimeoutError(_) => "DynamoDB did not answer in time".to_owned(),
        // Nothing was sent: the last cause names what the SDK lacks.
        SdkError::DispatchFailure(failure)
            if failure.is_other() && failure.as_other().is_none() =>
        {
            let first = failure.as_connector_error().and_then(Error::source);
            let last = iter::successors(first, |cause| (*cause).source()).last();
            let cause = last.map_or_else(|| "no request was made".to_owned(), ToString::to_string);
            // The SDK lists each place where it looked on a line of its own.
            let cause = cause.lines().next().unwrap_or_default();
            format!("DynamoDB needs a region and credentials, as the AWS CLI does: {cause}")
        }
        SdkError::DispatchFailure(_) => "DynamoDB could not be reached".to_owned(),
        SdkError::ResponseError(_) => "the response of DynamoDB was cut off".to_owned(),
        _ => format!(
            "{}: {}",
            error.code().unwrap_or("no code"),
            error.message().unwrap_or("no message")
        ),
    }
}

/// The error of a read.
pub(super) fn read_error<E: ProvideErrorMetadata>(error: &SdkError<E>) -> StoreError {
    match outcome(error) {
        Err(error @ (StoreError::TooLarge(_) | StoreError::Refused(_))) => error,
        _ => StoreError::Unavailable(describe(error)),
    }
}

pub(super) fn failed_check(item: Option<&SdkItem>) -> ConditionCheck {
    ConditionCheck::Failed(item.cloned().map(expression::item))
}

/// Classifies the cancellation reasons of a transaction, one for each statement.
pub(super) fn classify_reasons(reasons: &[CancellationReason]) -> Result<WriteResult, StoreError> {
    let mut checks = Vec::new();
    let mut is_refused = false;
    let mut other = None;
    for reason in reasons {
        match reason.code() {
            Some("ConditionalCheckFailed") => {
                is_refused = true;
                checks.push(failed_check(reason.item.as_ref()));
            }
            None | Some("None") => checks.push(ConditionCheck::Held),
            Some(code) => {
                let message = reason.message().unwrap_or_default();
                other = Some(classify(Some(code), message, format!("{code}: {message}")));
            }
        }
    }
    match other {
        // Of a canceled transaction nothing is stored.
        Some(Ok(WriteResult::Unknown(text))) => Err(StoreError::Unavailable(text)),
        // DynamoDB skipped a condition, and it may be the one that recognises our own
        // write.
        Some(outcome) => outcome,
        None if is_refused => Ok(WriteResult::Refused(checks)),
        None => {
            let why = "a transaction was canceled without a reason";
            Ok(WriteResult::Unknown(why.to_owned()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ConditionCheck, HttpResponse, WriteResult, classify_reasons, outcome};
    use a2a_lambda_model::store::StoreError;
    use a2a_lambda_rows::each_row;
    use aws_sdk_dynamodb::error::{ErrorMetadata, SdkError};
    use aws_sdk_dynamodb::operation::put_item::PutItemError;
    use aws_sdk_dynamodb::types::CancellationReason;
    use aws_smithy_types::body::SdkBody;

    type Found = Result<WriteResult, StoreError>;
    type IsClass = fn(&Found) -> bool;

    fn classify(code: Option<&str>, message: &str) -> Found {
        super::classify(code, message, "text".to_owned())
    }

    /// Whether nothing is decided, since another write met this one.
    fn is_contended(found: &Found) -> bool {
        matches!(found, Err(StoreError::Contended(_)))
    }

    /// Whether nothing is decided for another reason.
    fn is_undecided(found: &Found) -> bool {
        matches!(found, Err(StoreError::Unavailable(_)))
    }

    fn is_unknown(found: &Found) -> bool {
        matches!(found, Ok(WriteResult::Unknown(_)))
    }

    fn is_too_large(found: &Found) -> bool {
        matches!(found, Err(StoreError::TooLarge(_)))
    }

    fn is_refused(found: &Found) -> bool {
        matches!(found, Err(StoreError::Refused(_)))
    }

    fn reasons(codes: &[&str]) -> Vec<CancellationReason> {
        let reason = |code: &&str| CancellationReason::builder().code(*code).build();
        codes.iter().map(reason).collect()
    }

    #[test]
    fn a_transaction_is_refused_only_if_every_condition_was_checked() {
        let outcome = classify_reasons(&reasons(&["None", "ConditionalCheckFailed", "None"]));
        let Ok(WriteResult::Refused(checks)) = outcome else {
            panic!("{outcome:?}");
        };
        assert!(matches!(
            checks.as_slice(),
            [
                ConditionCheck::Held,
                ConditionCheck::Failed(None),
                ConditionCheck::Held
            ]
        ));
        let rows: [([&str; 2], IsClass); 4] = [
            (
                ["TransactionConflict", "ConditionalCheckFailed"],
                is_contended,
            ),
            (
                ["ConditionalCheckFailed", "TransactionConflict"],
                is_contended,
            ),
            (["ThrottlingError", "None"], is_undecided),
            (
                ["ConditionalCheckFailed", "InternalServerError"],
                is_undecided,
            ),
        ];
        each_row(rows, |(codes, is_expected)| {
            let outcome = classify_reasons(&reasons(&codes));
            assert!(is_expected(&outcome), "{outcome:?}");
        });
        let outcome = classify_reasons(&reasons(&[]));
        assert!(is_unknown(&outcome), "{outcome:?}");
    }

    #[test]
    fn conflicts_and_throttling_are_never_taken_for_a_decision() {
        for code in ["TransactionConflictException", "TransactionConflict"] {
            assert!(is_contended(&classify(Some(code), "")), "{code}");
        }
        for code in [
            "ThrottlingException",
            "ProvisionedThroughputExceededException",
            "TransactionInProgressException",
        ] {
            assert!(is_undecided(&classify(Some(code), "")), "{code}");
        }
        assert!(is_unknown(&classify(None, "")));
        assert!(is_unknown(&classify(Some("InternalServerError"), "")));
    }

    #[test]
    fn every_error_code_of_dynamodb_has_its_class() {
        let classes: [(IsClass, &[&str]); 4] = [
            (
                is_contended,
                &[
                    "TransactionConflict",
                    "TransactionConflictException",
                    "ReplicatedWriteConflictException",
                ],
            ),
            (
                is_undecided,
                &[
                    "TransactionInProgressException",
                    "ThrottlingError",
                    "ThrottlingException",
                    "ProvisionedThroughputExceeded",
                    "ProvisionedThroughputExceededException",
                    "RequestLimitExceeded",
                ],
            ),
            (
                is_too_large,
                &[
                    "ItemCollectionSizeLimitExceeded",
                    "ItemCollectionSizeLimitExceededException",
                ],
            ),
            // The write may be stored. A mismatch means that the token was used before.
            (
                is_unknown,
                &[
                    "InternalServerError",
                    "InternalFailure",
                    "ServiceUnavailable",
                    "IdempotentParameterMismatchException",
                ],
            ),
        ];
        each_row(classes, |(is_of_class, codes)| {
            for code in codes.iter().copied() {
                assert!(is_of_class(&classify(Some(code), "")), "{code}");
            }
        });
        let other = classify(Some("ResourceNotFoundException"), "");
        assert!(is_refused(&other), "{other:?}");
    }

    /// An error response with this status and code.
    fn response(status: u16, code: &str) -> SdkError<PutItemError> {
        let error = PutItemError::generic(ErrorMetadata::builder().code(code).build());
        let raw = HttpResponse::new(status.try_into().unwrap(), SdkBody::empty());
        SdkError::service_error(error, raw)
    }

    #[test]
    fn a_write_is_unknown_after_an_error_of_the_service() {
        // Whatever the code says.
        for code in ["InternalServerError", "ThrottlingException", "Other"] {
            let found = outcome(&response(500, code));
            assert!(is_unknown(&found), "{found:?}");
        }
        let found = outcome(&response(400, "ThrottlingException"));
        assert!(is_undecided(&found), "{found:?}");
        let found = outcome(&response(400, "Other"));
        assert!(is_refused(&found), "{found:?}");
    }

    #[test]
    fn a_missing_right_or_credential_is_an_outage() {
        let codes = [
            "AccessDeniedException",
            "ExpiredTokenException",
            "InvalidSignatureException",
            "MissingAuthenticationTokenException",
            "UnrecognizedClientException",
        ];
        each_row(codes, |code| {
            let read = super::read_error(&response(400, code));
            assert!(matches!(read, StoreError::Unavailable(_)), "{read:?}");
            let write = outcome(&response(400, code));
            assert!(is_undecided(&write), "{write:?}");
        });
    }

    #[test]
    fn a_request_that_was_never_sent_has_failed() {
        let unsent: SdkError<PutItemError> = SdkError::construction_failure("no table");
        let found = outcome(&unsent);
        assert!(is_refused(&found), "{found:?}");
        let late: SdkError<PutItemError> = SdkError::timeout_error("late");
        let found = outcome(&late);
        assert!(is_unknown(&found), "{found:?}");
    }

    #[test]
    fn a_transaction_that_can_never_be_stored_has_failed() {
        let held = || CancellationReason::builder().code("None").build();
        let invalid = |message: &str| {
            let reason = CancellationReason::builder().code("ValidationError");
            reason.message(message).build()
        };
        let large = "Item size to update has exceeded the maximum allowed size";
        let found = classify_reasons(&[held(), invalid(large)]);
        assert!(is_too_large(&found), "{found:?}");
        let found = classify_reasons(&[invalid("wrong type"), held()]);
        assert!(is_refused(&found), "{found:?}");
    }

    #[test]
    fn an_item_that_is_too_large_is_a_permanent_error() {
        let texts = [
            "Item size has exceeded the maximum allowed size",
            "Item size to update has exceeded the maximum allowed size",
        ];
        for text in texts {
            let meaning = classify(Some("ValidationException"), text);
            assert!(is_too_large(&meaning), "{text}");
        }
        let other = classify(Some("ValidationException"), "wrong type");
        assert!(is_refused(&other), "{other:?}");
    }
}
