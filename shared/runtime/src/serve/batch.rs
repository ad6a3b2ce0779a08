//! Answers a batch of queue messages.

use crate::store::queue::Ack;
use a2a_lambda_model::redact::without_values;
use aws_lambda_events::event::sqs::{SqsEvent, SqsMessage};
use aws_lambda_events::event::streams::{SqsBatchItemFailure, SqsEventResponse};
use std::fmt::Display;

/// Handles each message that `decode` reads. The response names the messages that SQS must
/// deliver again (AWS Lambda, `ReportBatchItemFailures`).
pub(super) async fn respond<T, E: Display>(
    event: SqsEvent,
    decode: fn(&str) -> Result<T, E>,
    handle: impl AsyncFn(T, &SqsMessage) -> Ack,
) -> SqsEventResponse {
    let mut response = SqsEventResponse::default();
    for message in event.records {
        let ack = match decode(message.body.as_deref().unwrap_or_default()) {
            Ok(item) => handle(item, &message).await,
            // Not deleted: a newer version of the function may be able to read it. If
            // not, SQS moves it to the dead-letter queue.
            Err(error) => {
                let error = without_values(&error.to_string());
                tracing::error!("failed to read a message of the queue: {error}");
                Ack::Keep
            }
        };
        if ack == Ack::Keep {
            let mut failure = SqsBatchItemFailure::default();
            // AWS Lambda takes an empty id as a failure of the whole batch, so a message
            // without an id is delivered again too.
            failure.item_identifier = Some(message.message_id.unwrap_or_default());
            response.batch_item_failures.push(failure);
        }
    }
    response
}
