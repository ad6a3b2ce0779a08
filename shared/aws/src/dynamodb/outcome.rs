//! Sends requests to DynamoDB and classifies their errors.
//!
//! An SDK error means one of five things, and only the first is a conflict: a condition
//! failed; nothing is decided yet; the result is unknown; the item can never be stored;
//! the request is wrong. A missing right or an expired credential decides
//! nothing: the request may be right, and an operator can restore the right.

use super::conditional_write::{ConditionalWrite, WriteKind};
use super::expression::{self, SdkItem};
use crate::outcome::broke_off;
use a2a_lambda_model::store::{SizeError, StoreError};
use a2a_lambda_store::table::{ConditionCheck, Item};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::Config;
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::operation::delete_item::DeleteItemError;
use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::types::{
    CancellationReason, ReturnValue, ReturnValuesOnConditionCheckFailure,
};
use aws_smithy_runtime_api::client::interceptors::context::{self, InterceptorContext};
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::retries::classifiers::{ClassifyRetry, RetryAction};
use std::error::Error;
use std::iter;

/// The SDK also repeats these requests: a write that met another write and decided
/// nothing, and a request with a truncated response.
#[derive(Debug)]
pub(super) struct RetryUndecided;

impl ClassifyRetry for RetryUndecided {
    fn classify_retry(&self, context: &InterceptorContext) -> RetryAction {
        let error = match context.output_or_error() {
            Some(Err(error)) => error.as_operation_error(),
            _ => return RetryAction::NoActionIndicated,
        };
        match error.and_then(undecided) {
            Some(ErrorClass::Contended) => RetryAction::transient_error(),
            Some(_) => RetryAction::throttling_error(),
            None if broke_off(context) => RetryAction::transient_error(),
            None => RetryAction::NoActionIndicated,
        }
    }

    fn name(&self) -> &'static str {
        "undecided writes"
    }
}

/// The SDK never repeats these requests: one without a reply, and one that the service failed.
/// Each may be stored. A request whose outcome is not decided is repeated as before.
#[derive(Debug)]
struct NeverTwice;

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

/// Why a write decided nothing, in the cases that the SDK does not recognise.
fn undecided(error: &context::Error) -> Option<ErrorClass> {
    fn met<E: ProvideErrorMetadata + Error + Send + Sync + 'static>(
        error: &context::Error,
    ) -> Option<ErrorClass> {
        let code = error.downcast_ref::<E>()?.code();
        Some(classify(code, "")).filter(|it| *it == ErrorClass::Contended)
    }
    match error.downcast_ref() {
        Some(TransactWriteItemsError::TransactionCanceledException(canceled_by)) => {
            match canceled(canceled_by.cancellation_reasons()) {
                WriteOutcome::Undecided(StoreError::Contended(_)) => Some(ErrorClass::Contended),
                WriteOutcome::Undecided(_) => Some(ErrorClass::Undecided),
                _ => None,
            }
        }
        Some(_) => None,
        None => met::<PutItemError>(error)
            .or_else(|| met::<UpdateItemError>(error))
            .or_else(|| met::<DeleteItemError>(error)),
    }
}

/// The result of a write.
#[derive(Debug)]
pub(super) enum WriteOutcome {
    /// It is stored. Has the old item if it was wanted and there was one.
    Done(Option<Item>),
    /// A condition failed. Holds one check for each statement, with the stored item if the
    /// service returned it.
    Refused(Vec<ConditionCheck>),
    /// Nothing is decided and nothing is stored: DynamoDB throttled, or another write
    /// was in progress.
    Undecided(StoreError),
    /// It may or may not be stored.
    Unknown(String),
    /// It cannot be stored, now or later.
    Failed(StoreError),
}

/// The meaning of an error that is not a failed condition.
#[derive(Debug, PartialEq, Eq)]
enum ErrorClass {
    Undecided,
    Contended,
    Unknown,
    TooLarge,
    Refused,
}

fn classify(code: Option<&str>, message: &str) -> ErrorClass {
    match code {
        Some(
            "TransactionConflict"
            | "TransactionConflictException"
            | "ReplicatedWriteConflictException",
        ) => ErrorClass::Contended,
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
        ) => ErrorClass::Undecided,
        Some("ItemCollectionSizeLimitExceeded" | "ItemCollectionSizeLimitExceededException") => {
            ErrorClass::TooLarge
        }
        // DynamoDB has no error code for an item above 400 KB; only the message tells.
        Some("ValidationError" | "ValidationException") if message.contains("size") => {
            ErrorClass::TooLarge
        }
        // These codes, and a missing code as after a truncated response, say nothing
        // about what was stored.
        None
        | Some(
            "InternalServerError"
            | "InternalFailure"
            | "ServiceUnavailable"
            | "IdempotentParameterMismatchException",
        ) => ErrorClass::Unknown,
        Some(_) => ErrorClass::Refused,
    }
}

fn outcome<E: ProvideErrorMetadata>(error: &SdkError<E>) -> WriteOutcome {
    let text = describe(error);
    let SdkError::ServiceError(service) = error else {
        return match error {
            SdkError::ConstructionFailure(_) => WriteOutcome::Failed(StoreError::Refused(text)),
            _ => WriteOutcome::Unknown(text),
        };
    };
    // DynamoDB may have applied a write before it fails with a 5xx.
    if service.raw().status().as_u16() >= 500 {
        return WriteOutcome::Unknown(text);
    }
    let message = error.message().unwrap_or_default();
    match classify(error.code(), message) {
        ErrorClass::Undecided => WriteOutcome::Undecided(StoreError::Unavailable(text)),
        ErrorClass::Contended => WriteOutcome::Undecided(StoreError::Contended(text)),
        ErrorClass::Unknown => WriteOutcome::Unknown(text),
        ErrorClass::TooLarge => WriteOutcome::Failed(StoreError::TooLarge(SizeError::Other(text))),
        ErrorClass::Refused => WriteOutcome::Failed(StoreError::Refused(text)),
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
        WriteOutcome::Failed(error) => error,
        _ => StoreError::Unavailable(describe(error)),
    }
}

/// How a single statement is sent.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct WriteOptions {
    /// The SDK must not send it again if it may be stored.
    pub(super) once: bool,
    /// The outcome has the item as it was before.
    pub(super) wants_old: bool,
}

/// Writes all of `statements` or none of them. Only a single statement has options.
pub(super) async fn write(
    client: &Client,
    table: &str,
    mut statements: Vec<ConditionalWrite>,
    options: WriteOptions,
) -> WriteOutcome {
    match (statements.pop(), statements.is_empty()) {
        (Some(only), true) => write_one(client, table, only, options).await,
        (last, _) => {
            statements.extend(last);
            write_several(client, table, statements).await
        }
    }
}

async fn write_one(
    client: &Client,
    table: &str,
    statement: ConditionalWrite,
    options: WriteOptions,
) -> WriteOutcome {
    let (names, values) = (statement.names, statement.values);
    let condition = statement.condition;
    macro_rules! send {
        ($request:expr, $outcome:ident) => {{
            let request = $request
                .table_name(table)
                .set_condition_expression(condition)
                .set_expression_attribute_names(names)
                .set_expression_attribute_values(values)
                .set_return_values(options.wants_old.then_some(ReturnValue::AllOld))
                .return_values_on_condition_check_failure(
                    ReturnValuesOnConditionCheckFailure::AllOld,
                );
            let sent = if options.once {
                let once = Config::builder().retry_classifier(NeverTwice);
                request.customize().config_override(once).send().await
            } else {
                request.send().await
            };
            match sent {
                Ok(done) => WriteOutcome::Done(done.attributes.map(expression::item)),
                Err(error) => $outcome(&error),
            }
        }};
    }
    match statement.kind {
        WriteKind::Put(item) => send!(client.put_item().set_item(Some(item)), put_outcome),
        WriteKind::Delete(key) => send!(client.delete_item().set_key(Some(key)), delete_outcome),
        WriteKind::Update { key, expression } => {
            let update = client.update_item().set_key(Some(key));
            send!(update.update_expression(expression), update_outcome)
        }
    }
}

/// What an error of a single write means.
macro_rules! outcome_of {
    ($name:ident, $error:ident) => {
        fn $name(error: &SdkError<$error>) -> WriteOutcome {
            match error.as_service_error() {
                Some($error::ConditionalCheckFailedException(failed)) => {
                    WriteOutcome::Refused(vec![self::failed(failed.item.as_ref())])
                }
                _ => outcome(error),
            }
        }
    };
}

outcome_of!(put_outcome, PutItemError);
outcome_of!(delete_outcome, DeleteItemError);
outcome_of!(update_outcome, UpdateItemError);

fn failed(item: Option<&SdkItem>) -> ConditionCheck {
    ConditionCheck::Failed(item.cloned().map(expression::item))
}

async fn write_several(
    client: &Client,
    table: &str,
    statements: Vec<ConditionalWrite>,
) -> WriteOutcome {
    let actions: Result<Vec<_>, _> = statements
        .into_iter()
        .map(|statement| statement.into_action(table))
        .collect();
    let actions = match actions {
        Ok(actions) => actions,
        Err(error) => return WriteOutcome::Failed(StoreError::Refused(error.to_string())),
    };
    // The SDK adds a client token and keeps it over its attempts, so a repeated
    // transaction is applied once.
    let result = client
        .transact_write_items()
        .set_transact_items(Some(actions))
        .send()
        .await;
    result.map_or_else(
        |error| transaction_outcome(&error),
        |_| WriteOutcome::Done(None),
    )
}

fn transaction_outcome(error: &SdkError<TransactWriteItemsError>) -> WriteOutcome {
    let Some(TransactWriteItemsError::TransactionCanceledException(canceled_by)) =
        error.as_service_error()
    else {
        return outcome(error);
    };
    canceled(canceled_by.cancellation_reasons())
}

/// Classifies the cancellation reasons of a transaction, one for each statement.
fn canceled(reasons: &[CancellationReason]) -> WriteOutcome {
    let mut checks = Vec::new();
    let mut is_refused = false;
    let mut other = None;
    for reason in reasons {
        match reason.code() {
            Some("ConditionalCheckFailed") => {
                is_refused = true;
                checks.push(failed(reason.item.as_ref()));
            }
            None | Some("None") => checks.push(ConditionCheck::Held),
            Some(code) => {
                let message = reason.message().unwrap_or_default();
                other = Some((classify(Some(code), message), format!("{code}: {message}")));
            }
        }
    }
    match other {
        Some((ErrorClass::TooLarge, text)) => {
            WriteOutcome::Failed(StoreError::TooLarge(SizeError::Other(text)))
        }
        Some((ErrorClass::Refused, text)) => WriteOutcome::Failed(StoreError::Refused(text)),
        // DynamoDB skipped a condition, and it may be the one that recognises our own
        // write.
        Some((ErrorClass::Contended, text)) => WriteOutcome::Undecided(StoreError::Contended(text)),
        Some((_, text)) => WriteOutcome::Undecided(StoreError::Unavailable(text)),
        None if is_refused => WriteOutcome::Refused(checks),
        None => WriteOutcome::Unknown("a transaction was canceled without a reason".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::{
        ConditionCheck, ErrorClass, HttpResponse, WriteOutcome, canceled, classify, outcome,
    };
    use a2a_lambda_model::store::StoreError;
    use a2a_lambda_rows::each_row;
    use aws_sdk_dynamodb::error::{ErrorMetadata, SdkError};
    use aws_sdk_dynamodb::operation::put_item::PutItemError;
    use aws_sdk_dynamodb::types::CancellationReason;
    use aws_smithy_types::body::SdkBody;

    fn reasons(codes: &[&str]) -> Vec<CancellationReason> {
        let reason = |code: &&str| CancellationReason::builder().code(*code).build();
        codes.iter().map(reason).collect()
    }

    #[test]
    fn a_transaction_is_refused_only_if_every_condition_was_checked() {
        let outcome = canceled(&reasons(&["None", "ConditionalCheckFailed", "None"]));
        let WriteOutcome::Refused(checks) = outcome else {
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
        for codes in [
            ["TransactionConflict", "ConditionalCheckFailed"],
            ["ConditionalCheckFailed", "TransactionConflict"],
            ["ThrottlingError", "None"],
        ] {
            let outcome = canceled(&reasons(&codes));
            assert!(matches!(outcome, WriteOutcome::Undecided(_)), "{outcome:?}");
        }
        let outcome = canceled(&reasons(&[]));
        assert!(matches!(outcome, WriteOutcome::Unknown(_)), "{outcome:?}");
    }

    #[test]
    fn conflicts_and_throttling_are_never_taken_for_a_decision() {
        for code in ["TransactionConflictException", "TransactionConflict"] {
            assert_eq!(classify(Some(code), ""), ErrorClass::Contended, "{code}");
        }
        for code in [
            "ThrottlingException",
            "ProvisionedThroughputExceededException",
            "TransactionInProgressException",
        ] {
            assert_eq!(classify(Some(code), ""), ErrorClass::Undecided, "{code}");
        }
        assert_eq!(classify(None, ""), ErrorClass::Unknown);
        assert_eq!(
            classify(Some("InternalServerError"), ""),
            ErrorClass::Unknown
        );
    }

    #[test]
    fn every_error_code_of_dynamodb_has_its_class() {
        let classes: [(ErrorClass, &[&str]); 4] = [
            (
                ErrorClass::Contended,
                &[
                    "TransactionConflict",
                    "TransactionConflictException",
                    "ReplicatedWriteConflictException",
                ],
            ),
            (
                ErrorClass::Undecided,
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
                ErrorClass::TooLarge,
                &[
                    "ItemCollectionSizeLimitExceeded",
                    "ItemCollectionSizeLimitExceededException",
                ],
            ),
            // The write may be stored. A mismatch means that the token was used before.
            (
                ErrorClass::Unknown,
                &[
                    "InternalServerError",
                    "InternalFailure",
                    "ServiceUnavailable",
                    "IdempotentParameterMismatchException",
                ],
            ),
        ];
        each_row(classes, |(class, codes)| {
            for code in codes.iter().copied() {
                assert_eq!(classify(Some(code), ""), class, "{code}");
            }
        });
        let other = classify(Some("ResourceNotFoundException"), "");
        assert_eq!(other, ErrorClass::Refused);
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
            assert!(matches!(found, WriteOutcome::Unknown(_)), "{found:?}");
        }
        let found = outcome(&response(400, "ThrottlingException"));
        assert!(matches!(found, WriteOutcome::Undecided(_)), "{found:?}");
        let found = outcome(&response(400, "Other"));
        assert!(matches!(found, WriteOutcome::Failed(_)), "{found:?}");
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
            let is_outage = matches!(write, WriteOutcome::Undecided(StoreError::Unavailable(_)));
            assert!(is_outage, "{write:?}");
        });
    }

    #[test]
    fn a_request_that_was_never_sent_has_failed() {
        let unsent: SdkError<PutItemError> = SdkError::construction_failure("no table");
        let found = outcome(&unsent);
        assert!(matches!(found, WriteOutcome::Failed(_)), "{found:?}");
        let late: SdkError<PutItemError> = SdkError::timeout_error("late");
        let found = outcome(&late);
        assert!(matches!(found, WriteOutcome::Unknown(_)), "{found:?}");
    }

    #[test]
    fn a_transaction_that_can_never_be_stored_has_failed() {
        let held = || CancellationReason::builder().code("None").build();
        let invalid = |message: &str| {
            let reason = CancellationReason::builder().code("ValidationError");
            reason.message(message).build()
        };
        let large = "Item size to update has exceeded the maximum allowed size";
        let found = canceled(&[held(), invalid(large)]);
        assert!(
            matches!(found, WriteOutcome::Failed(StoreError::TooLarge(_))),
            "{found:?}"
        );
        let found = canceled(&[invalid("wrong type"), held()]);
        assert!(
            matches!(found, WriteOutcome::Failed(StoreError::Refused(_))),
            "{found:?}"
        );
    }

    #[test]
    fn an_item_that_is_too_large_is_a_permanent_error() {
        let texts = [
            "Item size has exceeded the maximum allowed size",
            "Item size to update has exceeded the maximum allowed size",
        ];
        for text in texts {
            let meaning = classify(Some("ValidationException"), text);
            assert_eq!(meaning, ErrorClass::TooLarge, "{text}");
        }
        let other = classify(Some("ValidationException"), "wrong type");
        assert_eq!(other, ErrorClass::Refused);
    }
}
