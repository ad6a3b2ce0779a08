//! Fairness between the webhooks of two tenants.

use a2a_lambda::engine::{
    Clock as _, Policy, PushDelivery, PushDeliveryError, PushDispatcher, PushServices, RandomIds,
    SendPush, relay_pushes,
};
use a2a_lambda::store::queue::{Ack, PushItem, TaskImage};
use a2a_lambda::task::{Owner, Subject, TaskId, TenantId, Timestamp};
use a2a_lambda_tests::dialect::{Dialect, Say};
use a2a_lambda_tests::world::World;
use a2a_local::queue::LocalQueue;
use async_trait::async_trait;
use serde_json::json;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const SILENT: usize = 200;
const DISPATCHERS: usize = 2;
/// The timeout of one attempt.
const ATTEMPT: Duration = Duration::from_secs(10);

/// Webhook hosts; those with `silent` in their name never answer.
struct Hosts {
    clock: Arc<a2a_lambda::testing::TestClock>,
    called: Mutex<Vec<(String, Timestamp)>>,
}

#[async_trait]
impl SendPush for Hosts {
    async fn post(&self, notice: &PushDelivery) -> Result<(), PushDeliveryError> {
        let url = notice.url.as_str().to_owned();
        let call = (url.clone(), self.clock.now());
        self.called.lock().unwrap().push(call);
        if url.contains("silent") {
            std::future::pending::<()>().await;
        }
        Ok(())
    }
}

fn owner(tenant: &str) -> Owner {
    Owner {
        tenant: TenantId::parse(tenant).unwrap(),
        subject: Subject::parse("ann").unwrap(),
    }
}

/// Sends a message with a push config for `host`, and relays its push queue messages.
async fn sent(world: &World, queue: &LocalQueue<PushItem>, caller: &'static str, host: &str) {
    let mut request = Dialect::Rest10.send(&Say::to("echo", "hi")).from(caller);
    let mut body: serde_json::Value = serde_json::from_slice(&request.body).unwrap();
    let url = format!("https://{host}.example/hook");
    body["configuration"]["taskPushNotificationConfig"] = json!({"url": url});
    request.body = serde_json::to_vec(&body).unwrap();
    let task = Dialect::Rest10.task(&world.call(&request).await);
    let id = TaskId::parse(task["id"].as_str().unwrap()).unwrap();
    let owner = owner(caller.split(':').next().unwrap());
    let record = world
        .store
        .memory()
        .records
        .load(&owner, &id, world.clock.now());
    let image = TaskImage::of(&record.await.unwrap().unwrap());
    assert_eq!(relay_pushes(queue, &[image]).await, 0);
}

/// The services of push deliveries to `webhooks`.
pub(crate) fn outgoing(
    world: &World,
    queue: &LocalQueue<PushItem>,
    webhooks: Arc<dyn SendPush>,
) -> PushServices {
    PushServices {
        deliveries: world.store.memory().records.deliveries(),
        queue: Arc::new(queue.clone()),
        webhooks,
        clock: world.clock.clone(),
        ids: Arc::new(RandomIds),
    }
}

async fn deliver(dispatcher: PushDispatcher, queue: LocalQueue<PushItem>) {
    loop {
        let delivery = queue.receive().await;
        if dispatcher.deliver(&delivery.item, None).await == Ack::Delete {
            delivery.receipt.delete();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn silent_webhooks_delay_another_tenant_by_at_most_one_attempt() {
    let world = World::new().unwrap();
    let visibility = Duration::from_secs(90);
    let queue = LocalQueue::<PushItem>::new(world.clock.clone(), visibility);
    let hosts = Arc::new(Hosts {
        clock: world.clock.clone(),
        called: Mutex::default(),
    });
    let dispatcher =
        PushDispatcher::new(outgoing(&world, &queue, hosts.clone()), Policy::default());
    for number in 0..SILENT {
        sent(&world, &queue, "noisy:ann", &format!("silent-{number}")).await;
    }
    let mut dispatchers = tokio::task::JoinSet::new();
    for _ in 0..DISPATCHERS {
        dispatchers.spawn(deliver(dispatcher.clone(), queue.clone()));
    }
    // During the first attempts, the shortened ones, and after many failures.
    for (round, seconds) in [1, 600, 3600].into_iter().enumerate() {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        let rung = world.clock.now();
        let host = format!("quick-{round}");
        sent(&world, &queue, "other:ann", &host).await;
        tokio::time::sleep(ATTEMPT + Duration::from_millis(1)).await;
        let called = hosts.called.lock().unwrap();
        let first = called.iter().find(|(url, _)| url.contains(&host));
        let (_, first) = first.unwrap_or_else(|| panic!("round {round}: not called"));
        assert!(first.since(rung) <= ATTEMPT, "round {round}");
    }
    let called = hosts.called.lock().unwrap();
    let silent = called.iter().filter(|(url, _)| url.contains("silent"));
    assert!(silent.count() > SILENT, "the silent webhooks were called");
    dispatchers.abort_all();
}
