//! Runs the background work of a deployment in this process: the relay, the workers,
//! the push delivery workers, the sweep and the expiry.
//!
//! Each calls the same code as its Lambda function. Loops here take the place of the
//! event sources on AWS.

use super::queue::{Delivery, LocalQueue, Queued};
use crate::embedded::Expiry;
use crate::embedded::stream::{Stream, images};
use crate::traces::Traces;
use a2a_lambda::engine::{
    Clock as _, Engine, EngineError, Ids as _, Leases, PushDelivery, PushDeliveryError,
    PushDispatcher, PushServices, RandomIds, SendPush, SweepPlaces, SystemClock, relay,
    relay_pushes,
};
use a2a_lambda::outbound::webhook::WebhookClient;
use a2a_lambda::settings::Settings;
use a2a_lambda::skill::{RecordTrace as _, TraceRow};
use a2a_lambda::store::aws::{Endpoints, sdk_config};
use a2a_lambda::store::queue::{Ack, PushItem, WorkItem};
use a2a_lambda::store::records::Deliveries;
use a2a_lambda::task::TaskKey;
use async_trait::async_trait;
use aws_sdk_dynamodbstreams::types::Record;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, interval_at};

/// Most turns of the work queue that run at the same time. Calls run their own turns
/// besides.
const WORKERS: usize = 16;
/// Most push deliveries that run at the same time.
const DISPATCHERS: usize = 16;
/// The deadline of a push delivery: the timeout of the function `push`.
const DELIVERY: Duration = Duration::from_secs(60);
/// How long a received push queue message stays hidden.
const HIDDEN: Duration = Duration::from_secs(90);

/// The running loops. Dropping this value stops them; the next start continues turns
/// that were interrupted.
#[derive(Debug)]
pub struct Pumps {
    pumps: JoinSet<()>,
}

impl Pumps {
    /// Takes over the unfinished turns of the last run, then starts the loops. Call it
    /// before the server answers its first request: the process that held the stored leases
    /// has ended. `leases` says what that means for their turns.
    ///
    /// `endpoints` has the URL of the table and its stream. `traces` get the deliveries, and count
    /// the writes.
    ///
    /// # Errors
    /// [`EngineError`] when the table cannot be read.
    pub async fn start(
        engine: &Engine,
        deliveries: Deliveries,
        endpoints: &Endpoints,
        settings: &Settings,
        leases: Leases,
        traces: Option<Arc<Traces>>,
    ) -> Result<Self, EngineError> {
        let clock = Arc::new(SystemClock);
        let pushes = LocalQueue::new(clock.clone(), HIDDEN);
        let engine = engine.clone().with_push_queue(Arc::new(pushes.clone()));
        let queue = LocalQueue::new(clock.clone(), settings.policy.lease);
        let report = Box::pin(engine.sweeper.sweep(&queue, leases)).await?;
        if report.redispatched + report.failed > 0 {
            tracing::info!(
                "took over {} unfinished tasks, gave up {}",
                report.redispatched,
                report.failed
            );
        }
        let config = sdk_config(endpoints.dynamodb.as_deref(), endpoints.keys.as_ref()).await;
        let client = aws_sdk_dynamodbstreams::Client::new(&config);
        let stream = Stream::new(client, &settings.table);
        let policy = settings.policy.clone();
        let outgoing = PushServices {
            deliveries,
            queue: Arc::new(pushes.clone()),
            webhooks: Arc::new(TracedWebhooks {
                client: WebhookClient::new(policy.reach),
                traces: traces.clone(),
            }),
            clock,
            ids: Arc::new(RandomIds),
        };
        let dispatcher = PushDispatcher::new(outgoing, policy);
        let mut pumps = JoinSet::new();
        let (turns, events) = (queue.clone(), pushes.clone());
        // The relay: sends turns and push deliveries from the stream to the queues.
        let take = async move |records: &[Record]| {
            if let Some(traces) = &traces {
                traces.add_writes(records.len());
            }
            let images = images(records);
            let rest = relay(&turns, &images, SystemClock.now()).await;
            relay_pushes(&events, &images).await;
            rest.is_empty()
        };
        pumps.spawn(stream.follow(take));
        let deliver = move |delivery| deliver(dispatcher.clone(), delivery);
        pumps.spawn(drain(pushes, DISPATCHERS, deliver));
        let worker = engine.clone();
        let work = move |delivery| work(worker.clone(), delivery);
        pumps.spawn(drain(queue.clone(), WORKERS, work));
        pumps.spawn(sweep(engine, queue, settings.sweep_interval));
        Ok(Self { pumps })
    }

    /// Removes expired items from the embedded database, once in each `every`. The database
    /// does not do so itself, as DynamoDB does.
    pub fn expire(&mut self, expiry: Expiry, every: Duration) {
        self.pumps.spawn(clean(expiry, every));
    }

    /// Stops the loops and waits until they have ended.
    pub async fn stop(mut self) {
        self.pumps.shutdown().await;
    }
}

/// Calls webhooks, and records it.
struct TracedWebhooks {
    client: WebhookClient,
    traces: Option<Arc<Traces>>,
}

#[async_trait]
impl SendPush for TracedWebhooks {
    async fn post(&self, delivery: &PushDelivery) -> Result<(), PushDeliveryError> {
        let start = SystemClock.now().as_millis();
        let result = self.client.post(delivery).await;
        if let Some(traces) = &self.traces {
            let mut row = TraceRow {
                id: format!("{:08x}.1", RandomIds.next() & u128::from(u32::MAX)),
                kind: "delivery",
                name: format!("event {}", delivery.id),
                start,
                end: Some(SystemClock.now().as_millis()),
                ..TraceRow::default()
            };
            if let Some(trace) = &delivery.trace {
                row.fact("traceparent", trace.to_string());
            }
            if let Err(error) = &result {
                row.fact("error", error.to_string());
            }
            let task = TaskKey::new(&delivery.owner, &delivery.task);
            traces.record(&task, &delivery.incarnation, row);
        }
        result
    }
}

/// Handles the messages of a queue, at most `most` at the same time. A message that is not
/// acknowledged is delivered again when its time to be hidden is over.
async fn drain<I: Queued, F>(queue: LocalQueue<I>, most: usize, handle: impl Fn(Delivery<I>) -> F)
where
    F: Future<Output = Ack> + Send + 'static,
{
    let mut running = JoinSet::new();
    loop {
        tokio::select! {
            delivery = queue.receive(), if running.len() < most => {
                let (receipt, (_, task)) = (delivery.receipt.clone(), delivery.item.group_and_task());
                let task = task.to_owned();
                let ack = handle(delivery);
                running.spawn(async move {
                    if ack.await == Ack::Delete && !receipt.delete() {
                        tracing::debug!(
                            a2a.task = task,
                            "failed to delete a message: it was received again"
                        );
                    }
                });
            }
            Some(result) = running.join_next() => {
                if let Err(error) = result {
                    tracing::error!("failed to run a turn or a push delivery: {error}");
                }
            }
        }
    }
}

/// Runs a turn of the work queue.
async fn work(engine: Engine, delivery: Delivery<WorkItem>) -> Ack {
    let Delivery { item, receipt } = delivery;
    Box::pin(engine.turns.work(&item, &receipt, None)).await
}

/// Posts events to a webhook.
async fn deliver(dispatcher: PushDispatcher, delivery: Delivery<PushItem>) -> Ack {
    let deadline = SystemClock.now().plus(DELIVERY);
    dispatcher.deliver(&delivery.item, Some(deadline)).await
}

/// The expiry: removes expired items, once in each `every`.
async fn clean(expiry: Expiry, every: Duration) {
    let mut ticks = interval_at(Instant::now() + every, every);
    loop {
        ticks.tick().await;
        match expiry.clean().await {
            Ok(items) => tracing::debug!(items, "removed expired items"),
            Err(error) => tracing::warn!("{error}"),
        }
    }
}

/// The sweep: one round in each `every`.
async fn sweep(engine: Engine, queue: LocalQueue<WorkItem>, every: Duration) {
    // `Pumps::start` has swept once, so the first round is due after `every`.
    let mut ticks = interval_at(Instant::now() + every, every);
    let mut places = SweepPlaces::default();
    loop {
        ticks.tick().await;
        let swept = Box::pin(engine.sweeper.sweep_round(&queue, &mut places, None)).await;
        if let Some(error) = swept.error {
            tracing::warn!("failed to sweep: {error}");
        }
    }
}
