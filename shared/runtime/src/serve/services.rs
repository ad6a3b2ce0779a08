//! The services of AWS that functions use.

use super::error::ServeError;
use crate::runtime::{Runtime, RuntimeBuilder, stores};
use crate::settings::{Environment, Settings};
use crate::store::aws::{AwsClients, Endpoints, sqs_client};
use crate::store::counters::Counters;
use crate::store::sqs::SqsQueue;
use crate::telemetry::metrics::MetricsMode;
use a2a_lambda_skill::AgentDefinition;

/// The counters of all processes, if the settings send counters there.
pub(super) fn counters(clients: &AwsClients, settings: &Settings) -> Option<Counters> {
    let store = || Counters::new(stores(clients, settings).0.table());
    (settings.metrics == MetricsMode::Table).then(store)
}

/// The runtime of `agent` over the stores of the settings, and what counts calls there.
pub(super) async fn over_stores(
    agent: AgentDefinition,
    settings: &Settings,
) -> (RuntimeBuilder, Option<Counters>) {
    let clients = clients().await;
    let counters = counters(&clients, settings);
    let runtime = Runtime::builder(agent, settings.clone());
    (runtime.aws(&clients), counters)
}

/// Clients of AWS, or of the emulator that `AWS_ENDPOINT_URL…` names.
pub(super) async fn clients() -> AwsClients {
    let endpoints = Endpoints {
        dynamodb: Environment::aws_endpoint("AWS_ENDPOINT_URL_DYNAMODB"),
        s3: Environment::aws_endpoint("AWS_ENDPOINT_URL_S3"),
        keys: None,
    };
    AwsClients::connect(&endpoints).await
}

/// The work queue.
///
/// # Errors
/// [`ServeError::Settings`] when the settings name none.
pub(super) async fn queue(settings: &Settings) -> Result<SqsQueue, ServeError> {
    Ok(sqs_queue(settings.work_queue()?).await)
}

/// The push queue, if the settings name one and push notifications are on.
pub(super) async fn push_queue(settings: &Settings) -> Option<SqsQueue> {
    let url = settings.push_queue_url.as_deref();
    Some(sqs_queue(url.filter(|_| settings.push)?).await)
}

/// The queue at `url`.
pub(super) async fn sqs_queue(url: &str) -> SqsQueue {
    let endpoint = Environment::aws_endpoint("AWS_ENDPOINT_URL_SQS");
    SqsQueue::new(sqs_client(endpoint.as_deref()).await, url)
}
