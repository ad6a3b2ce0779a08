//! Runs the function `push`, which posts events to webhooks.

use super::batch;
use super::error::ServeError;
use super::services::{clients, counters, sqs_queue};
use super::start::Start;
use crate::engine::{PushDispatcher, PushServices, RandomIds, SystemClock};
use crate::outbound::webhook::WebhookClient;
use crate::runtime::stores;
use crate::store::sqs;
use aws_lambda_events::event::sqs::SqsMessage;
use std::convert::Infallible;
use std::sync::Arc;

/// Runs the push delivery worker: one message of the push queue in each invocation.
///
/// # Errors
/// [`ServeError`] when the function cannot start.
pub async fn push() -> Result<(), ServeError> {
    let start = Start::begin("push")?;
    let settings = start.settings()?;
    let queue = sqs_queue(settings.push_queue()?).await;
    let clients = clients().await;
    let counters = counters(&clients, &settings);
    let service = start.ready(counters);
    let outgoing = PushServices {
        deliveries: stores(&clients, &settings).0.deliveries(),
        queue: Arc::new(queue.clone()),
        webhooks: Arc::new(WebhookClient::new(settings.policy.reach)),
        clock: Arc::new(SystemClock),
        ids: Arc::new(RandomIds),
    };
    let queues = (&queue, settings.dead_letters_url.as_deref());
    let dispatcher = PushDispatcher::new(outgoing, settings.policy);
    let run = async |event, deadline| {
        let deliver = async |item, _: &SqsMessage| dispatcher.deliver(&item, deadline).await;
        let response = batch::respond(queues, event, sqs::push::decode, deliver);
        Ok::<_, Infallible>(response.await)
    };
    service.run(run).await
}
