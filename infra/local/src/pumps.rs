//! What moves work behind the calls, in this process: the stream, the queue,
//! the workers and the schedule that a deployment has as functions. The steps
//! are those of the functions; only what starts them is ours.

use crate::embedded::Expiry;
use crate::queue::{Delivery, LocalQueue};
use crate::stream::Stream;
use a2a_lambda::engine::{
    Clock as _, Courier, Engine, EngineError, Leases, Outgoing, RandomIds, SweepPlaces,
    SystemClock, relay, relay_pushes,
};
use a2a_lambda::settings::Settings;
use a2a_lambda::store::aws::{Endpoints, sdk_config};
use a2a_lambda::store::dynamodb::{DynamoStore, Removed};
use a2a_lambda::store::queue::{Ack, PushItem, WorkItem};
use a2a_lambda::webhook::HttpWebhooks;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, interval_at, sleep};

/// Turns that run at once, beside those which calls run themselves.
const WORKERS: usize = 16;
/// Deliveries to webhooks at once.
const COURIERS: usize = 16;
/// What a delivery may take, as in a deployment.
const DELIVERY: Duration = Duration::from_secs(60);
/// For how long it is hidden.
const HIDDEN: Duration = Duration::from_secs(90);
/// How often the stream is asked for more.
const POLL: Duration = Duration::from_millis(100);
/// How long a pump rests after a failure.
const REST: Duration = Duration::from_secs(1);
/// New shards are looked for once in so many looks at the stream.
const DISCOVER: u32 = 100;

/// Why there are no pumps.
#[derive(Debug, thiserror::Error)]
pub enum PumpsError {
    /// The turns of the last run cannot be taken over.
    #[error("failed to look for unfinished tasks: {0}")]
    TakeOver(#[from] EngineError),
}

/// The running pumps. Dropping them ends them; a turn that is cut is taken up
/// by the next start.
#[derive(Debug)]
pub struct Pumps {
    pumps: JoinSet<()>,
}

impl Pumps {
    /// Takes over the turns which the last run left behind, then starts. It has
    /// to be called before any call is served: every lease that is stored now
    /// counts as one of a process that is gone.
    ///
    /// `endpoints` is where the table and its stream answer.
    ///
    /// # Errors
    /// [`PumpsError`] when the table cannot be read.
    pub async fn start(
        engine: &Engine,
        tasks: DynamoStore,
        endpoints: &Endpoints,
        settings: &Settings,
    ) -> Result<Self, PumpsError> {
        let clock = Arc::new(SystemClock);
        let pushes = LocalQueue::new(clock.clone(), HIDDEN);
        let store = Arc::new(tasks.clone());
        let engine = engine
            .clone()
            .with_push_queue(store.clone(), Arc::new(pushes.clone()));
        let taken = Box::pin(engine.sweep(&tasks, Leases::CountAsExpired)).await?;
        if taken.redispatched + taken.failed > 0 {
            tracing::info!(
                "took over {} unfinished tasks, gave up {}",
                taken.redispatched,
                taken.failed
            );
        }
        let config = sdk_config(endpoints.dynamodb.as_deref(), endpoints.keys.as_ref()).await;
        let client = aws_sdk_dynamodbstreams::Client::new(&config);
        let stream = Stream::new(client, &settings.table);
        let queue = LocalQueue::new(clock.clone(), settings.policy.lease);
        let policy = settings.policy.clone();
        let outgoing = Outgoing {
            tasks: store.clone(),
            pushes: store,
            queue: Arc::new(pushes.clone()),
            webhooks: Arc::new(HttpWebhooks::new(policy.reach)),
            clock,
            ids: Arc::new(RandomIds),
        };
        let courier = Courier::new(outgoing, policy);
        let mut pumps = JoinSet::new();
        pumps.spawn(forward(
            stream,
            queue.clone(),
            pushes.clone(),
            engine.clone(),
            tasks.clone(),
        ));
        pumps.spawn(deliver(courier, pushes));
        pumps.spawn(work(engine.clone(), queue));
        pumps.spawn(sweep(engine, tasks, settings.sweep_interval));
        Ok(Self { pumps })
    }

    /// Lets the embedded database remove what has expired, at each tick of the
    /// schedule: by itself it removes nothing.
    pub fn expire(&mut self, expiry: Expiry, every: Duration) {
        self.pumps.spawn(clean(expiry, every));
    }

    /// Ends the pumps and waits until nothing of them runs.
    pub async fn stop(mut self) {
        self.pumps.shutdown().await;
    }
}

/// From the stream to the queues; the objects of tasks that are gone go as well.
async fn forward(
    mut stream: Stream,
    queue: LocalQueue<WorkItem>,
    pushes: LocalQueue<PushItem>,
    engine: Engine,
    tasks: DynamoStore,
) {
    let mut looks: u32 = 0;
    loop {
        if looks.is_multiple_of(DISCOVER)
            && let Err(error) = stream.discover().await
        {
            tracing::warn!("{error}");
            sleep(REST).await;
            continue;
        }
        looks = looks.wrapping_add(1);
        let mut idle = true;
        for shard in stream.open() {
            match stream.read(&shard).await {
                Ok(Some(batch)) => {
                    idle &= batch.is_empty();
                    let forgotten = forget(&engine, &tasks, &batch.removed).await;
                    let kept = relay(&queue, &batch.images).await.is_empty() && forgotten;
                    if kept && relay_pushes(&pushes, &batch.images).await.is_empty() {
                        stream.done(batch);
                    }
                }
                Ok(None) => {}
                Err(error) => {
                    tracing::warn!("{error}");
                    sleep(REST).await;
                }
            }
        }
        if idle {
            sleep(POLL).await;
        }
    }
}

/// Whether the objects of all that is gone are gone too.
async fn forget(engine: &Engine, tasks: &DynamoStore, removed: &[Removed]) -> bool {
    for gone in removed {
        let forgotten = match gone {
            Removed::Task(task) => engine.forget_objects(tasks, task).await,
            Removed::Thread(thread) => engine.forget_state(tasks, thread).await,
        };
        if let Err(error) = forgotten {
            tracing::warn!("failed to remove the objects of what has gone: {error}");
            return false;
        }
    }
    true
}

/// From the queue to the skills.
async fn work(engine: Engine, queue: LocalQueue<WorkItem>) {
    let mut turns = JoinSet::new();
    loop {
        tokio::select! {
            delivery = queue.receive(), if turns.len() < WORKERS => {
                turns.spawn(turn(engine.clone(), delivery));
            }
            Some(ended) = turns.join_next() => {
                // Its message comes again when the lease is over.
                if let Err(error) = ended {
                    tracing::error!("a worker died: {error}");
                }
            }
        }
    }
}

async fn turn(engine: Engine, delivery: Delivery<WorkItem>) {
    let Delivery { item, receipt } = delivery;
    match Box::pin(engine.work(&item, &receipt, None)).await {
        Ack::Delete => {
            if !receipt.delete() {
                tracing::debug!(task.id = %item.task, "a message has come again meanwhile");
            }
        }
        // Shown again when the time is over for which it is hidden.
        Ack::Keep => {}
    }
}

/// From the queue of deliveries to the webhooks.
async fn deliver(courier: Courier, queue: LocalQueue<PushItem>) {
    let mut deliveries = JoinSet::new();
    loop {
        tokio::select! {
            delivery = queue.receive(), if deliveries.len() < COURIERS => {
                deliveries.spawn(delivered(courier.clone(), delivery));
            }
            Some(ended) = deliveries.join_next() => {
                if let Err(error) = ended {
                    tracing::error!("a delivery died: {error}");
                }
            }
        }
    }
}

async fn delivered(courier: Courier, delivery: Delivery<PushItem>) {
    let Delivery { item, receipt } = delivery;
    let deadline = SystemClock.now().plus(DELIVERY);
    if courier.deliver(&item, Some(deadline)).await == Ack::Delete && !receipt.delete() {
        tracing::debug!(task.id = %item.task, "a delivery has come again meanwhile");
    }
}

/// Native TTL, on the schedule.
async fn clean(expiry: Expiry, every: Duration) {
    let mut ticks = interval_at(Instant::now() + every, every);
    loop {
        ticks.tick().await;
        match expiry.clean().await {
            Ok(items) => tracing::debug!(items, "removed what has expired"),
            Err(error) => tracing::warn!("{error}"),
        }
    }
}

/// The schedule.
async fn sweep(engine: Engine, tasks: DynamoStore, every: Duration) {
    let mut ticks = interval_at(Instant::now() + every, every);
    let mut places = SweepPlaces::default();
    loop {
        ticks.tick().await;
        let swept = Box::pin(engine.sweep_round(&tasks, &mut places, None)).await;
        tracing::debug!(?swept, "swept");
    }
}
