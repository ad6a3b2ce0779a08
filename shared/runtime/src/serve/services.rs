//! The services of AWS that functions use.

use super::error::ServeError;
use crate::runtime::stores;
use crate::settings::{Environment, Settings, Source as _};
use crate::store::aws::{AwsClients, Endpoints, sqs_client};
use crate::store::counters::Counters;
use crate::store::sqs::SqsQueue;
use crate::telemetry::metrics::MetricsMode;

/// The counters of all processes, if the settings send counters there.
pub(super) fn counters(clients: &AwsClients, settings: &Settings) -> Option<Counters> {
    let store = || Counters::new(stores(clients, settings).0.table());
    (settings.metrics == MetricsMode::Table).then(store)
}

/// Clients of AWS, or of the emulator that `AWS_ENDPOINT_URL…` names.
pub(super) async fn clients() -> AwsClients {
    let endpoints = Endpoints {
        dynamodb: endpoint("AWS_ENDPOINT_URL_DYNAMODB"),
        s3: endpoint("AWS_ENDPOINT_URL_S3"),
        keys: None,
    };
    AwsClients::connect(&endpoints).await
}

/// The work queue.
///
/// # Errors
/// [`ServeError::Settings`] when the settings name none.
pub(super) async fn queue(settings: &Settings) -> Result<SqsQueue, ServeError> {
    let url = settings.work_queue()?;
    let client = sqs_client(endpoint("AWS_ENDPOINT_URL_SQS").as_deref()).await;
    Ok(SqsQueue::new(client, url))
}

/// The push queue, if the settings name one and push notifications are on.
pub(super) async fn push_queue(settings: &Settings) -> Option<SqsQueue> {
    let url = settings
        .push_queue_url
        .as_deref()
        .filter(|_| settings.push)?;
    let client = sqs_client(endpoint("AWS_ENDPOINT_URL_SQS").as_deref()).await;
    Some(SqsQueue::new(client, url))
}

/// The endpoint in the variable `name`, else in `AWS_ENDPOINT_URL`; `None` means
/// AWS itself.
pub(super) fn endpoint(name: &str) -> Option<String> {
    let everywhere = || Environment.get("AWS_ENDPOINT_URL");
    Environment.get(name).or_else(everywhere)
}
