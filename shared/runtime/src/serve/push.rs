//! Runs the function `push`, which posts events to webhooks.

use super::batch::BatchResponse;
use super::error::ServeError;
use super::services::{clients, counters, endpoint};
use super::start::Start;
use crate::engine::{PushDispatcher, PushServices, RandomIds, SystemClock};
use crate::outbound::webhook::WebhookClient;
use crate::runtime::stores;
use crate::store::aws::sqs_client;
use crate::store::queue::Ack;
use crate::store::sqs::{self, SqsQueue};
use crate::task::Timestamp;
use a2a_lambda_model::redact::without_values;
use aws_lambda_events::event::sqs::{SqsEvent, SqsMessage};
use aws_lambda_events::event::streams::SqsEventResponse;
use lambda_runtime::{LambdaEvent, service_fn};
use std::convert::Infallible;
use std::sync::Arc;

/// Runs the push delivery worker: one message of the push queue in each invocation.
///
/// # Errors
/// [`ServeError`] when the function cannot start.
pub async fn push() -> Result<(), ServeError> {
    let start = Start::begin("push")?;
    let settings = start.settings()?;
    let client = sqs_client(endpoint("AWS_ENDPOINT_URL_SQS").as_deref()).await;
    let queue = SqsQueue::new(client, settings.push_queue()?);
    let clients = clients().await;
    let counters = counters(&clients, &settings);
    let instance = start.ready(&settings, counters);
    let store = Arc::new(stores(&clients, &settings).0);
    let outgoing = PushServices {
        tasks: store.clone(),
        pushes: store,
        queue: Arc::new(queue),
        webhooks: Arc::new(WebhookClient::new(settings.policy.reach)),
        clock: Arc::new(SystemClock),
        ids: Arc::new(RandomIds),
    };
    let deliveries = &PushWorker {
        dispatcher: PushDispatcher::new(outgoing, settings.policy),
    };
    let (process, reporter) = (instance.process, &instance.reporter);
    let handler = service_fn(move |event: LambdaEvent<SqsEvent>| async move {
        let deadline = process.deadline(event.context.deadline);
        let response = deliveries.run(event.payload, deadline).await;
        reporter.end_of_invocation().await;
        Ok::<_, Infallible>(response)
    });
    Ok(lambda_runtime::run(handler).await?)
}

struct PushWorker {
    dispatcher: PushDispatcher,
}

impl PushWorker {
    /// Handles a batch; the response names the messages to deliver again.
    async fn run(&self, event: SqsEvent, deadline: Option<Timestamp>) -> SqsEventResponse {
        let mut response = BatchResponse::default();
        for message in event.records {
            let ack = self.message(&message, deadline).await;
            response.note(message.message_id, ack);
        }
        response.build()
    }

    async fn message(&self, message: &SqsMessage, deadline: Option<Timestamp>) -> Ack {
        let item = match sqs::push::decode(message.body.as_deref().unwrap_or_default()) {
            Ok(item) => item,
            // Not deleted: a newer version of the function may be able to read it. If
            // not, SQS moves it to the dead-letter queue.
            Err(error) => {
                let error = without_values(&error.to_string());
                tracing::error!("failed to read a message of the push queue: {error}");
                return Ack::Keep;
            }
        };
        self.dispatcher.deliver(&item, deadline).await
    }
}
