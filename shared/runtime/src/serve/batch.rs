//! Answers a batch of queue messages.

use crate::store::StoreError;
use crate::store::queue::Ack;
use crate::store::sqs::SqsQueue;
use a2a_lambda_model::redact::without_values;
use aws_lambda_events::event::sqs::{SqsEvent, SqsMessage};
use aws_lambda_events::event::streams::{SqsBatchItemFailure, SqsEventResponse};

/// Handles each message that `decode` reads. The response names the messages that SQS must
/// deliver again (AWS Lambda, `ReportBatchItemFailures`).
pub(super) async fn respond<T>(
    (queue, dead_letters): (&SqsQueue, Option<&str>),
    event: SqsEvent,
    decode: fn(&str) -> Result<T, StoreError>,
    handle: impl AsyncFn(T, &SqsMessage) -> Ack,
) -> SqsEventResponse {
    let mut response = SqsEventResponse::default();
    for message in event.records {
        let body = message.body.as_deref().unwrap_or_default();
        let ack = match decode(body) {
            Ok(item) => handle(item, &message).await,
            // SQS shows it again after the visibility timeout, then perhaps to the release that
            // wrote it. The task counts no attempt.
            Err(error @ StoreError::Form(_)) => {
                tracing::warn!("left a message of the queue to another release: {error}");
                Ack::Keep
            }
            Err(error) => Box::pin(put_away((queue, dead_letters), body, &error)).await,
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

/// Sends a message that nobody can read to the dead letters. SQS itself would do so after 100
/// receives, a day later.
async fn put_away(
    (queue, dead_letters): (&SqsQueue, Option<&str>),
    body: &str,
    error: &StoreError,
) -> Ack {
    let reason = without_values(&error.to_string());
    tracing::error!("failed to read a message of the queue: {reason}");
    let Some(url) = dead_letters else {
        return Ack::Keep;
    };
    match queue.send_dead_letter(url, body, &reason).await {
        Ok(()) => Ack::Delete,
        Err(error) => {
            tracing::error!("failed to send a message to the dead letters: {error}");
            Ack::Keep
        }
    }
}

#[cfg(test)]
mod tests;
