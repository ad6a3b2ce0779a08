//! The sweep of objects removes replaced objects, and those of expired tasks and threads.

use crate::full_tenant::{Estate, Side};
use a2a_lambda::engine::{Clock as _, Engine, SystemClock};
use a2a_lambda::runtime::Runtime;
use a2a_lambda::settings::Settings;
use a2a_lambda::store::Blobs as _;
use a2a_lambda::store::contract::{SampleData, noise};
use a2a_lambda::store::dynamodb;
use a2a_lambda::store::queue::ObjectsPlace;
use a2a_lambda::store::records::Records;
use a2a_lambda::store::s3::S3Blobs;
use a2a_lambda::store::{ThreadState, stored};
use a2a_lambda::task::{
    Change, ContextId, OutputCounts, TaskKey, TaskRecord, ThreadKey, Timestamp,
};
use a2a_lambda::testing::TestClock;
use a2a_lambda_tests::emulator::Emulator;
use a2a_local::embedded::TABLE;
use aws_sdk_dynamodb::types::AttributeValue;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// More bytes than a value inside an item may have (32 KiB).
const LARGE: usize = 300 * 1024;
const HOUR: Duration = Duration::from_secs(3600);

/// An engine with these stores, at this time.
pub(crate) fn engine(side: &Side, now: Timestamp) -> Engine {
    runtime(&side.records, &side.blobs, now, |_| ())
        .engine()
        .clone()
}

fn runtime(
    records: &Records,
    blobs: &S3Blobs,
    now: Timestamp,
    change: impl FnOnce(&mut Settings),
) -> Runtime {
    let mut settings = crate::full_tenant::settings();
    change(&mut settings);
    Runtime::builder(crate::full_tenant::agent(), settings)
        .table(records.table())
        .blobs(Arc::new(blobs.clone()))
        .clock(Arc::new(TestClock::standing(now)))
        .build()
        .unwrap()
}

/// A task and two commits of it. Each replaces the value of the one before; the last one
/// asks a question.
fn growing(sample: &SampleData) -> [TaskRecord; 3] {
    let keeps = |size: usize| Change::Save {
        key: "k".to_owned(),
        value: noise(1, size).into(),
        outputs: OutputCounts::new(),
        reads: Vec::new(),
        save_place: Box::default(),
        order: None,
    };
    let task = sample.task().unwrap();
    let first = sample.next(&task, [sample.start(), keeps(LARGE)]).unwrap();
    let asks = Change::AskInput {
        message: a2a_lambda::task::Message::from_agent("m", Vec::new()),
        slot: a2a_lambda::task::SavedSlot {
            version: 1,
            value: serde_json::Value::Null,
        },
    };
    let (write, later) = (sample.write_id(), sample.now.plus(1000 * HOUR));
    let second = first.next([keeps(LARGE + 1), asks], write, sample.now, later);
    let mut second = second.unwrap();
    stored::arrange(&mut second);
    [task, first, second]
}

/// The number of objects in each folder.
async fn counts(estate: &Estate, folders: &[String; 2]) -> [usize; 2] {
    let count = async |folder: &String| {
        let below = format!("v1/{folder}/");
        let keys = estate.near.blobs.keys(&below, None, 10).await;
        keys.unwrap().len()
    };
    [count(&folders[0]).await, count(&folders[1]).await]
}

#[tokio::test]
async fn a_sweep_removes_replaced_objects_and_keeps_named_ones() {
    let estate = Estate::new("leftover").await;
    let sample = &estate.sample;
    let context = ContextId::parse("c:1").unwrap();
    let state = |expect: u64| {
        let mut write = sample.thread(&sample.owner, &context, expect);
        let value = noise(1, LARGE).into();
        write.record.state = ThreadState {
            session: [("k".to_owned(), value)].into(),
            ..ThreadState::default()
        };
        write
    };
    let [task, first, second] = growing(sample);
    let writes = [
        sample.create(&task),
        sample.update(&first, &task),
        sample.update(&second, &first),
    ];
    for (n, write) in (0..).zip(&writes) {
        // Each is a process that has read nothing of the others' writes.
        let side = estate.side();
        side.records.commit(write).await.unwrap();
        side.records.put_thread(&state(n)).await.unwrap();
    }
    let folders = [
        TaskKey::new(&sample.owner, &task.id).folder(),
        ThreadKey::new(&sample.owner, &context).folder(),
    ];
    assert_eq!(counts(&estate, &folders).await, [2, 3]);
    for (hours, left) in [(23, [2, 3]), (25, [1, 1]), (49, [1, 1])] {
        let now = sample.now.plus(hours * HOUR);
        let from_the_start = ObjectsPlace::default();
        let sweep = estate.near.records.sweep();
        let noted = sweep.note_objects_place(&from_the_start);
        noted.await.unwrap();
        let engine = engine(&estate.near, now);
        let swept = engine.sweeper.sweep_objects();
        let swept = Box::pin(swept).await.unwrap();
        assert!(swept.is_complete);
        assert_eq!(counts(&estate, &folders).await, left, "{hours}");
        // The round is over, and the next one begins with the first object.
        let noted = estate.side().records.sweep().objects_place().await.unwrap();
        let over = ObjectsPlace {
            began: now,
            before: Some(Timestamp::default()),
            after: None,
        };
        assert_eq!(noted, Some(over), "{hours}");
    }
    // Named objects still exist long before the end of their task's life.
    let side = estate.side();
    let found = side.records.load(&sample.owner, &task.id, sample.now);
    assert!(found.await.unwrap().as_ref() == Some(&second));
    let found = side.records.load_thread(&sample.owner, &context).await;
    assert!(found.unwrap().as_ref() == Some(&state(2).record));
}

#[tokio::test]
async fn the_position_of_a_sweep_can_be_stored_and_read() {
    // All tenants share the position, so the test needs its own table.
    let emulator = Emulator::alone().await.unwrap();
    let table = &emulator.clients.dynamodb;
    let began = Timestamp::from_millis(4_102_444_800_000);
    let before = Timestamp::from_millis(4_102_441_200_000);
    let number = |text: &str| AttributeValue::N(text.to_owned());
    let text = |text: &str| AttributeValue::S(text.to_owned());
    let key = [("PK", text("S#sweep")), ("SK", text("OBJECTS"))];
    let first = ObjectsPlace {
        began,
        before: None,
        after: Some("v1/x/y".to_owned()),
    };
    let second = ObjectsPlace {
        began,
        before: Some(before),
        after: None,
    };
    let began = ("began", number("4102444800000"));
    // The second position leaves nothing of the first.
    for (place, beside) in [
        (first, ("after", text("v1/x/y"))),
        (second, ("before", number("4102441200000"))),
    ] {
        emulator
            .records
            .sweep()
            .note_objects_place(&place)
            .await
            .unwrap();
        let other = dynamodb::records(table.clone(), TABLE);
        assert_eq!(other.sweep().objects_place().await.unwrap(), Some(place));
        let mut get = table.get_item().table_name(TABLE).consistent_read(true);
        for (name, value) in key.clone() {
            get = get.key(name, value);
        }
        let found = get.send().await.unwrap().item.unwrap();
        let members = key.clone().into_iter().chain([began.clone(), beside]);
        let members = members.map(|(name, value)| (name.to_owned(), value));
        assert_eq!(found, members.collect::<HashMap<_, _>>());
    }
}

#[tokio::test]
async fn a_sweep_removes_objects_of_expired_tasks_and_keeps_others() {
    let estate = Estate::new("over").await;
    let [owner, colleague, _] = estate.owners();
    // Everything happened three days ago, except for one context that is still alive.
    let now = SystemClock.now();
    let then = Timestamp::from_millis(now.as_millis() - 3 * 24 * 3_600_000);
    let short = |settings: &mut Settings| {
        settings.policy.task_ttl = HOUR;
        settings.policy.thread_ttl = HOUR;
    };
    let (records, blobs) = (&estate.near.records, &estate.near.blobs);
    let past = runtime(records, blobs, then, short);
    crate::full_tenant::say(past.engine(), owner, "much", |_| ()).await;
    let alive = estate.say(colleague, "much", |_| ()).await;
    let before = estate.stored(&owner.tenant).await;
    let present = runtime(records, blobs, now.plus(25 * HOUR), short);
    let swept = Box::pin(present.engine().sweeper.sweep_objects());
    assert!(swept.await.unwrap().removals > 3);
    let after = estate.stored(&owner.tenant).await;
    assert_eq!(after.items, before.items, "items are left to native TTL");
    // The living task keeps the objects it names: a file, its values, and its thread's state.
    // The state of the expired thread is removed by the sweep of threads, or after its item.
    let found = records.load(colleague, &alive.id, now);
    assert!(found.await.unwrap().is_some());
    assert_eq!(after.objects.len(), 4, "{:?}", after.names());
}
