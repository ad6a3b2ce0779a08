//! Runs the function `push`, which posts events to webhooks.

use super::batch;
use super::error::ServeError;
use super::services::{clients, counters, queue_with_dead_letters};
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
    let (queue, dead_letters) = queue_with_dead_letters(settings.push_queue()?, &settings).await;
    let clients = clients().await;
    let counters = counters(&clients, &settings);
    let service = start.ready(counters);
    let outgoing = PushServices {
        deliveries: stores(&clients, &settings).0.deliveries(),
        queue: Arc::new(queue),
        webhooks: Arc::new(WebhookClient::new(settings.policy.reach)),
        clock: Arc::new(SystemClock),
        ids: Arc::new(RandomIds),
    };
    let dispatcher = PushDispatcher::new(outgoing, settings.policy);
    let run = async |event, deadline| {
        let deliver = async |item, _: &SqsMessage| dispatcher.deliver(&item, deadline).await;
        let response = batch::respond(dead_letters.as_ref(), event, sqs::push::decode, deliver);
        Ok::<_, Infallible>(response.await)
    };
    service.run(run).await
}
