//! The function between the table's stream and the queue.

use super::{ServeError, logging, push_queue, queue};
use crate::engine;
use crate::settings::{Environment, Settings};
use crate::store::dynamodb::task_image_of_event;
use crate::store::queue::{PushQueue, WorkQueue};
use aws_lambda_events::event::dynamodb::{Event, EventRecord};
use aws_lambda_events::event::streams::DynamoDbEventResponse;
use lambda_runtime::{LambdaEvent, service_fn};
use std::convert::Infallible;

/// Moves the turns that ask for a worker, and the events that webhooks want,
/// from the table's stream to their queues.
///
/// # Errors
/// [`ServeError`] when the function cannot start.
pub async fn relay() -> Result<(), ServeError> {
    logging();
    let settings = Settings::read_public(&Environment)?;
    let queue = &queue(&settings).await?;
    let pushes = push_queue(&settings).await;
    let pushes = &pushes.as_ref().map(|queue| queue as &dyn PushQueue);
    let handler = service_fn(move |event: LambdaEvent<Event>| async move {
        Ok::<_, Infallible>(forward(queue, *pushes, &event.payload).await)
    });
    Ok(lambda_runtime::run(handler).await?)
}

/// Forwards a batch; names the records that have to come again.
///
/// The stream comes back from the first of them on, so a record behind it is
/// forwarded twice. That is what the claim is for.
async fn forward(
    queue: &dyn WorkQueue,
    pushes: Option<&dyn PushQueue>,
    event: &Event,
) -> DynamoDbEventResponse {
    let mut images = Vec::new();
    let mut records = Vec::new();
    let mut again = Vec::new();
    for record in &event.records {
        match task_image_of_event(record) {
            Ok(Some(image)) => {
                images.push(image);
                records.push(record);
            }
            Ok(None) => {}
            // It may be of a later program that is being rolled out.
            Err(error) => {
                tracing::error!("failed to read a record of the stream: {error}");
                again.push(record);
            }
        }
    }
    for index in engine::relay(queue, &images).await {
        again.extend(records.get(index));
    }
    if let Some(pushes) = pushes {
        for index in engine::relay_pushes(pushes, &images).await {
            again.extend(records.get(index));
        }
    }
    let mut response = DynamoDbEventResponse::default();
    for record in again {
        let mut failure = aws_lambda_events::event::streams::DynamoDbBatchItemFailure::default();
        failure.item_identifier = Some(place(record));
        response.batch_item_failures.push(failure);
    }
    response
}

/// Where a record stands in the stream. An empty place fails the whole batch,
/// which is right for a record that has none.
fn place(record: &EventRecord) -> String {
    record.change.sequence_number.clone().unwrap_or_default()
}

#[cfg(test)]
mod tests;
