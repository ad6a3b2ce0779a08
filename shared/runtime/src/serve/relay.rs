//! The function behind the table's stream.

use super::{ServeError, logging, push_queue, queue};
use crate::engine;
use crate::settings::{Environment, Settings};
use crate::store::dynamodb::task_image_of_event;
use crate::store::queue::{PushQueue, WorkQueue};
use aws_lambda_events::event::dynamodb::EventRecord;
use aws_lambda_events::event::streams::{DynamoDbBatchItemFailure, DynamoDbEventResponse};
use lambda_runtime::{LambdaEvent, service_fn};
use serde::Deserialize;
use serde_json::Value;
use std::convert::Infallible;

/// Moves the turns that ask for a worker, and the events that webhooks want,
/// from the table's stream to their queues. It does nothing else: it has no
/// client of the table or of the bucket.
///
/// # Errors
/// [`ServeError`] when the function cannot start.
pub async fn relay() -> Result<(), ServeError> {
    logging();
    let settings = Settings::read_public(&Environment)?;
    let queue = queue(&settings).await?;
    let pushes = push_queue(&settings).await;
    let relay = &Relay {
        queue: &queue,
        pushes: pushes.as_ref().map(|queue| queue as &dyn PushQueue),
    };
    let handler = service_fn(move |event: LambdaEvent<Batch>| async move {
        Ok::<_, Infallible>(relay.forward(event.payload).await)
    });
    Ok(lambda_runtime::run(handler).await?)
}

/// A batch of the stream. Each record is read by itself, so that one which
/// cannot be read holds up no other.
#[derive(Deserialize)]
struct Batch {
    #[serde(rename = "Records", default)]
    records: Vec<Value>,
}

/// The queues behind the stream.
struct Relay<'a> {
    queue: &'a dyn WorkQueue,
    pushes: Option<&'a dyn PushQueue>,
}

impl Relay<'_> {
    /// Forwards a batch, turns first; names the records that have to come again.
    ///
    /// The stream comes back from the first of them on, so a record behind it
    /// is forwarded twice. That is what the claim is for.
    async fn forward(&self, batch: Batch) -> DynamoDbEventResponse {
        let mut images = Vec::new();
        let mut places = Vec::new();
        for record in batch.records {
            // No later try could read it, and the stream would wait a day for it.
            // The sweep finds its turn.
            let read = EventRecord::deserialize(record).map_err(|error| error.to_string());
            let read = read.and_then(|record| {
                let image = task_image_of_event(&record).map_err(|error| error.to_string())?;
                Ok(image.map(|image| (image, place(record))))
            });
            match read {
                Ok(Some((image, place))) => {
                    images.push(image);
                    places.push(place);
                }
                Ok(None) => {}
                Err(error) => tracing::error!("skipped a record of the stream: {error}"),
            }
        }
        let mut again = engine::relay(self.queue, &images).await;
        if let Some(pushes) = self.pushes {
            again.extend(engine::relay_pushes(pushes, &images).await);
        }
        let mut response = DynamoDbEventResponse::default();
        for place in again.into_iter().filter_map(|index| places.get(index)) {
            let mut failure = DynamoDbBatchItemFailure::default();
            failure.item_identifier = Some(place.clone());
            response.batch_item_failures.push(failure);
        }
        response
    }
}

/// Where a record stands in the stream. An empty place fails the whole batch,
/// which is right for a record that has none.
fn place(record: EventRecord) -> String {
    record.change.sequence_number.unwrap_or_default()
}

#[cfg(test)]
mod tests;
