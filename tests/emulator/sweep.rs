//! The sweep of open tasks in the table.

use a2a_lambda::engine::{Engine, Leases, Policy, Services, SystemClock};
use a2a_lambda::prelude::*;
use a2a_lambda::store::contract::SampleData;
use a2a_lambda::store::queue::TaskImage;
use a2a_lambda::task::TaskRecord;
use a2a_lambda_tests::emulator::{Emulator, run};
use a2a_local::embedded::TABLE;
use a2a_local::queue::LocalQueue;
use aws_sdk_dynamodb::types::AttributeValue;
use std::sync::Arc;
use std::time::Duration;

/// A skill that never runs here.
#[skill(id = "idle", tags = ["test"], input_modes = ["text/plain"])]
async fn idle(_: &mut TaskContext<'_>, said: String) -> AgentResult<OnRequestResult<String>> {
    OnRequestResult::done(said)
}

fn engine(emulator: &Emulator) -> Engine {
    let store = emulator.records.clone();
    let services = Services::new(store, Arc::new(emulator.blobs.clone()));
    let agent = Agent::builder("sweep").skill(idle).build().unwrap();
    Engine::new(Arc::new(agent), services, Policy::default())
}

/// A task with a turn that has died.
async fn died(emulator: &Emulator, sample: &SampleData) -> TaskRecord {
    let stores = emulator.stores();
    let task = sample.task().unwrap();
    sample.stored(&stores, &task).await.unwrap();
    let started = sample.committed(&stores, &task, [sample.start()]).await;
    started.unwrap()
}

/// Makes the content of a stored task unreadable.
async fn broken(emulator: &Emulator, task: &TaskRecord) {
    let key = task.key();
    let partition = format!("T#{}#K#{}", key.tenant(), key.local());
    let table = emulator.clients.dynamodb.update_item().table_name(TABLE);
    table
        .key("PK", AttributeValue::S(partition))
        .key("SK", AttributeValue::S("META".to_owned()))
        .update_expression("SET body = :broken")
        .condition_expression("attribute_exists(PK)")
        .expression_attribute_values(":broken", AttributeValue::S("{".to_owned()))
        .send()
        .await
        .unwrap();
}

#[tokio::test]
async fn open_tasks_are_spread_over_all_partitions_of_their_index() {
    let emulator = Emulator::start().await.unwrap();
    let sample = SampleData::new(run(), "spread").unwrap();
    for _ in 0..160 {
        let task = sample.task().unwrap();
        sample.stored(&emulator.stores(), &task).await.unwrap();
    }
    let mut counts = Vec::new();
    let sweep = emulator.records.sweep();
    for shard in 0..sweep.open_shards() {
        let page = sweep.open_tasks(shard, None, 1_000).await;
        let (mut found, next) = page.unwrap();
        assert_eq!(next, None);
        found.retain(|open| open.owner == sample.owner);
        counts.push(found.len());
    }
    assert_eq!(counts.iter().sum::<usize>(), 160);
    assert!(counts.len() >= 16, "{counts:?}");
    assert!(
        counts.iter().all(|count| (1..40).contains(count)),
        "{counts:?}"
    );
}

#[tokio::test]
async fn an_unreadable_task_does_not_block_the_sweep() {
    // A sweep covers the whole table, so the test needs its own.
    let emulator = Emulator::alone().await.unwrap();
    let sample = SampleData::new(run(), "unreadable").unwrap();
    // The sweep starts with the oldest task.
    let unreadable = died(&emulator, &sample).await;
    let task = died(&emulator, &sample).await;
    broken(&emulator, &unreadable).await;

    let engine = engine(&emulator);
    let queue = LocalQueue::new(Arc::new(SystemClock), Duration::from_secs(60));
    let swept = engine.sweeper.sweep(&queue, Leases::CountAsExpired);
    swept.await.unwrap();

    let found = sample.loaded(&emulator.stores(), &task).await.unwrap();
    let image = TaskImage::of(&found.unwrap());
    assert!(image.dispatch.is_some(), "{image:?}");
}
