//! Runs the function `relay`, which reads the table's stream.

use super::error::ServeError;
use super::services::{push_queue, queue};
use super::start::Start;
use crate::engine::{self, Clock as _, SystemClock};
use crate::store::dynamodb::task_image_of_event;
use crate::store::queue::{PushQueue, WorkQueue};
use a2a_lambda_model::redact::without_values;
use aws_lambda_events::event::dynamodb::EventRecord;
use aws_lambda_events::event::streams::{DynamoDbBatchItemFailure, DynamoDbEventResponse};
use serde::Deserialize;
use serde_json::Value;
use std::convert::Infallible;

/// Runs the relay. It reads the table's stream, and sends each turn that waits for a
/// worker to the work queue and each push delivery to the push queue. It has no
/// client of the table or of the bucket.
///
/// # Errors
/// [`ServeError`] when the function cannot start.
pub async fn relay() -> Result<(), ServeError> {
    let start = Start::begin("relay")?;
    let settings = start.public_settings()?;
    let queue = queue(&settings).await?;
    let pushes = push_queue(&settings).await;
    let relay = Relay {
        queue: &queue,
        pushes: pushes.as_ref().map(|queue| queue as &dyn PushQueue),
    };
    let forward = async |batch, _| Ok::<_, Infallible>(relay.forward(batch).await);
    start.ready(None).run(forward).await
}

/// A batch of the stream. Each record is decoded alone, so that an unreadable one does
/// not block the others.
#[derive(Deserialize)]
struct Batch {
    #[serde(rename = "Records", default)]
    records: Vec<Value>,
}

/// The queues to which the relay sends.
struct Relay<'a> {
    queue: &'a dyn WorkQueue,
    pushes: Option<&'a dyn PushQueue>,
}

impl Relay<'_> {
    /// Forwards a batch, turns first; the response names the records whose turn the queue did
    /// not accept. A push queue that refuses names none, so that it holds up no turn.
    ///
    /// AWS Lambda repeats the stream from the first failed record on, so the relay
    /// forwards later records twice. A turn still starts once, since only one worker
    /// can claim it.
    async fn forward(&self, batch: Batch) -> DynamoDbEventResponse {
        let mut images = Vec::new();
        let mut numbers = Vec::new();
        for record in batch.records {
            // An unreadable record is skipped: a retry would not help, and would block
            // the shard for up to 24 hours. The sweep finds the record's turn.
            let result = EventRecord::deserialize(record).map_err(|error| error.to_string());
            let result = result.and_then(|record| {
                let image = task_image_of_event(&record).map_err(|error| error.to_string())?;
                // Without a number AWS Lambda repeats the whole batch.
                let number = record.change.sequence_number.unwrap_or_default();
                Ok(image.map(|image| (image, number)))
            });
            match result {
                Ok(Some((image, number))) => {
                    images.push(image);
                    numbers.push(number);
                }
                Ok(None) => {}
                Err(error) => {
                    let error = without_values(&error);
                    tracing::error!("skipped an unreadable stream record: {error}");
                }
            }
        }
        let again = engine::relay(self.queue, &images, SystemClock.now()).await;
        if let Some(pushes) = self.pushes {
            engine::relay_pushes(pushes, &images).await;
        }
        let mut response = DynamoDbEventResponse::default();
        for number in again.into_iter().filter_map(|index| numbers.get(index)) {
            let mut failure = DynamoDbBatchItemFailure::default();
            failure.item_identifier = Some(number.clone());
            response.batch_item_failures.push(failure);
        }
        response
    }
}

#[cfg(test)]
mod tests;
