//! What a function answers about a batch of queue messages.

use crate::store::queue::Ack;
use aws_lambda_events::event::streams::{SqsBatchItemFailure, SqsEventResponse};

/// The answer to a batch, message by message: it names those that have to come
/// again (AWS Lambda, `ReportBatchItemFailures`).
#[derive(Default)]
pub(super) struct Answer(SqsEventResponse);

impl Answer {
    /// Notes what becomes of the message `id`.
    pub(super) fn note(&mut self, id: Option<String>, ack: Ack) {
        if ack == Ack::Keep {
            let mut failure = SqsBatchItemFailure::default();
            // An empty id fails the whole batch, so nothing of it is lost.
            failure.item_identifier = Some(id.unwrap_or_default());
            self.0.batch_item_failures.push(failure);
        }
    }

    /// The answer as the platform takes it.
    pub(super) fn build(self) -> SqsEventResponse {
        self.0
    }
}
