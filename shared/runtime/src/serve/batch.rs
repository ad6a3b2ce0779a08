//! Collects the response of a function to a batch of queue messages.

use crate::store::queue::Ack;
use aws_lambda_events::event::streams::{SqsBatchItemFailure, SqsEventResponse};

/// The response to a batch. It names the messages that SQS must deliver again (AWS
/// Lambda, `ReportBatchItemFailures`).
#[derive(Default)]
pub(super) struct BatchResponse(SqsEventResponse);

impl BatchResponse {
    /// Records whether the message `id` is done.
    pub(super) fn note(&mut self, id: Option<String>, ack: Ack) {
        if ack == Ack::Keep {
            let mut failure = SqsBatchItemFailure::default();
            // AWS Lambda takes an empty id as a failure of the whole batch, so a message
            // without an id is delivered again too.
            failure.item_identifier = Some(id.unwrap_or_default());
            self.0.batch_item_failures.push(failure);
        }
    }

    /// The response for AWS Lambda.
    pub(super) fn build(self) -> SqsEventResponse {
        self.0
    }
}
