//! The function behind the table's stream.

use super::{ServeError, clients, logging, push_queue, queue};
use crate::engine::{self, Clock, SystemClock};
use crate::settings::{Environment, Settings};
use crate::store::Blobs;
use crate::store::dynamodb::{DynamoStore, Removed, removed_of_event, task_image_of_event};
use crate::store::queue::{PushQueue, TasksByKey, WorkQueue};
use crate::store::s3::S3Blobs;
use aws_lambda_events::event::dynamodb::{Event, EventRecord};
use aws_lambda_events::event::streams::{DynamoDbBatchItemFailure, DynamoDbEventResponse};
use lambda_runtime::{LambdaEvent, service_fn};
use std::convert::Infallible;

/// Moves the turns that ask for a worker, and the events that webhooks want,
/// from the table's stream to their queues, and removes the objects of tasks
/// and conversations which the table has let go.
///
/// # Errors
/// [`ServeError`] when the function cannot start.
pub async fn relay() -> Result<(), ServeError> {
    logging();
    let settings = Settings::read_public(&Environment)?;
    let queue = queue(&settings).await?;
    let pushes = push_queue(&settings).await;
    let clients = clients().await;
    let tasks = DynamoStore::new(clients.dynamodb, &settings.table);
    let blobs = S3Blobs::new(clients.s3, &settings.bucket);
    let stands_on = &Relay {
        queue: &queue,
        pushes: pushes.as_ref().map(|queue| queue as &dyn PushQueue),
        tasks: &tasks,
        blobs: &blobs,
        clock: &SystemClock,
    };
    let handler = service_fn(move |event: LambdaEvent<Event>| async move {
        Ok::<_, Infallible>(stands_on.forward(&event.payload).await)
    });
    Ok(lambda_runtime::run(handler).await?)
}

/// What the relay stands on.
struct Relay<'a> {
    queue: &'a dyn WorkQueue,
    pushes: Option<&'a dyn PushQueue>,
    tasks: &'a dyn TasksByKey,
    blobs: &'a dyn Blobs,
    clock: &'a dyn Clock,
}

impl Relay<'_> {
    /// Forwards a batch and removes the objects of what has gone; names
    /// the records that have to come again.
    ///
    /// The stream comes back from the first of them on, so a record behind it
    /// is forwarded twice. That is what the claim is for.
    async fn forward(&self, event: &Event) -> DynamoDbEventResponse {
        let mut images = Vec::new();
        let mut records = Vec::new();
        let mut again = Vec::new();
        for record in &event.records {
            if let Some(removed) = removed_of_event(record) {
                if !self.forget(&removed).await {
                    again.push(record);
                }
                continue;
            }
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
        for index in engine::relay(self.queue, &images).await {
            again.extend(records.get(index));
        }
        if let Some(pushes) = self.pushes {
            for index in engine::relay_pushes(pushes, &images).await {
                again.extend(records.get(index));
            }
        }
        let mut response = DynamoDbEventResponse::default();
        for record in again {
            let mut failure = DynamoDbBatchItemFailure::default();
            failure.item_identifier = Some(place(record));
            response.batch_item_failures.push(failure);
        }
        response
    }

    /// Whether the objects of what has gone are gone too.
    async fn forget(&self, removed: &Removed) -> bool {
        let (tasks, blobs, now) = (self.tasks, self.blobs, self.clock.now());
        let forgotten = match removed {
            Removed::Task(task) => engine::forget_objects(tasks, blobs, task, now).await,
            Removed::Thread(thread) => engine::forget_state(tasks, blobs, thread, now).await,
        };
        if let Err(error) = &forgotten {
            tracing::warn!("failed to remove the objects of what has gone: {error}");
        }
        forgotten.is_ok()
    }
}

/// Where a record stands in the stream. An empty place fails the whole batch,
/// which is right for a record that has none.
fn place(record: &EventRecord) -> String {
    record.change.sequence_number.clone().unwrap_or_default()
}

#[cfg(test)]
mod tests;
