//! The sweep of objects removes replaced objects, and those of expired tasks and threads.

use crate::full_tenant::{Estate, Side};
use a2a_lambda::engine::{Clock, Engine, SystemClock};
use a2a_lambda::runtime::Runtime;
use a2a_lambda::settings::Settings;
use a2a_lambda::store::Blobs as _;
use a2a_lambda::store::contract::World;
use a2a_lambda::store::dynamodb::DynamoStore;
use a2a_lambda::store::queue::{ObjectsPlace, SweepObjects as _};
use a2a_lambda::store::s3::S3Blobs;
use a2a_lambda::store::{
    ReadThreads as _, ThreadState, WriteTasks as _, WriteThreads as _, stored,
};
use a2a_lambda::task::{Change, ContextId, TaskKey, TaskRecord, ThreadKey, Timestamp};
use futures::future::BoxFuture;
use std::sync::Arc;
use std::time::Duration;

/// More bytes than a value inside an item may have (32 KiB).
const LARGE: usize = 300 * 1024;
const HOUR: Duration = Duration::from_secs(3600);

/// A clock that always shows this time.
#[derive(Debug)]
struct At(Timestamp);

impl Clock for At {
    fn now(&self) -> Timestamp {
        self.0
    }

    fn sleep_until(&self, at: Timestamp) -> BoxFuture<'_, ()> {
        Box::pin(tokio::time::sleep(at.since(self.0)))
    }
}

/// An engine with these stores, at this time.
pub(crate) fn engine(side: &Side, now: Timestamp) -> Engine {
    runtime(&side.records, &side.blobs, Arc::new(At(now)), |_| ())
        .engine()
        .clone()
}

fn runtime(
    records: &DynamoStore,
    blobs: &S3Blobs,
    clock: Arc<dyn Clock>,
    change: impl FnOnce(&mut Settings),
) -> Runtime {
    let store = Arc::new(records.clone());
    let mut settings = crate::full_tenant::settings();
    change(&mut settings);
    Runtime::builder(crate::full_tenant::agent(), settings)
        .tasks(store.clone())
        .threads(store.clone())
        .pushes(store)
        .blobs(Arc::new(blobs.clone()))
        .clock(clock)
        .build()
        .unwrap()
}

/// A task and two commits of it. Each replaces the value of the one before; the last one
/// asks a question.
fn growing(world: &World) -> [TaskRecord; 3] {
    let keeps = |size: usize| Change::Save {
        key: "k".to_owned(),
        value: "x".repeat(size).into(),
    };
    let task = world.task().unwrap();
    let first = world.next(&task, [world.start(), keeps(LARGE)]).unwrap();
    let asks = Change::AskInput {
        message: a2a_lambda::task::Message::from_agent("m", Vec::new()),
        slot: a2a_lambda::task::SavedSlot {
            version: 1,
            value: serde_json::Value::Null,
        },
    };
    let (write, later) = (world.write_id(), world.now.plus(1000 * HOUR));
    let second = first.next([keeps(LARGE + 1), asks], write, world.now, later);
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
    let world = &estate.world;
    let context = ContextId::parse("c:1").unwrap();
    let state = |expect: u64| {
        let mut write = world.thread(&world.owner, &context, expect);
        let value = "x".repeat(LARGE).into();
        write.record.state = ThreadState {
            session: [("k".to_owned(), value)].into(),
            ..ThreadState::default()
        };
        write
    };
    let [task, first, second] = growing(world);
    let writes = [
        world.create(&task),
        world.update(&first, &task),
        world.update(&second, &first),
    ];
    for (n, write) in (0..).zip(&writes) {
        // Each is a process that has read nothing of the others' writes.
        let side = estate.side();
        side.records.commit(write).await.unwrap();
        side.records.put_thread(&state(n)).await.unwrap();
    }
    let folders = [
        TaskKey::new(&world.owner, task.id()).folder(),
        ThreadKey::new(&world.owner, &context).folder(),
    ];
    assert_eq!(counts(&estate, &folders).await, [2, 3]);
    for (hours, left) in [(23, [2, 3]), (25, [1, 1]), (49, [1, 1])] {
        let now = world.now.plus(hours * HOUR);
        let from_the_start = ObjectsPlace::default();
        let noted = estate.near.records.note_objects_place(&from_the_start);
        noted.await.unwrap();
        let engine = engine(&estate.near, now);
        let swept = engine.sweep_objects(&estate.near.records);
        let swept = Box::pin(swept).await.unwrap();
        assert!(swept.whole);
        assert_eq!(counts(&estate, &folders).await, left, "{hours}");
    }
    // Named objects still exist long before the end of their task's life.
    let side = estate.side();
    let found =
        a2a_lambda::store::ReadTasks::load(&side.records, &world.owner, task.id(), world.now);
    assert!(found.await.unwrap().as_ref() == Some(&second));
    let found = side.records.load_thread(&world.owner, &context).await;
    assert!(found.unwrap().as_ref() == Some(&state(2).record));
}

#[tokio::test]
async fn the_position_of_a_sweep_can_be_stored_and_read() {
    let estate = Estate::new("place").await;
    let records = &estate.near.records;
    let place = ObjectsPlace {
        began: estate.world.now,
        before: None,
        after: Some("v1/x/y".to_owned()),
    };
    for place in [
        place.clone(),
        ObjectsPlace {
            before: Some(estate.world.now.minus(HOUR)),
            after: None,
            ..place
        },
    ] {
        records.note_objects_place(&place).await.unwrap();
        let noted = estate.side().records.objects_place().await.unwrap();
        assert_eq!(noted, Some(place));
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
    let past = runtime(records, blobs, Arc::new(At(then)), short);
    crate::full_tenant::say(past.engine(), owner, "much", |_| ()).await;
    let alive = estate.say(colleague, "much", |_| ()).await;
    let before = estate.stored(&owner.tenant).await;
    let present = runtime(records, blobs, Arc::new(At(now.plus(25 * HOUR))), short);
    let swept = Box::pin(present.engine().sweep_objects(records));
    assert!(swept.await.unwrap().removed > 3);
    let after = estate.stored(&owner.tenant).await;
    assert_eq!(after.items, before.items, "items are left to native TTL");
    // The living task keeps the objects it names: a file, its values, and its thread's state.
    // The state of the expired thread is removed by the sweep of threads, or after its item.
    let found = a2a_lambda::store::ReadTasks::load(records, colleague, &alive.id, now);
    assert!(found.await.unwrap().is_some());
    assert_eq!(after.objects.len(), 4, "{:?}", after.names());
}
