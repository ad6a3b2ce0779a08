//! Objects that nobody removed when they were replaced, and those of what the
//! table lets go by itself.

use crate::estate::{Estate, Side};
use a2a_lambda::engine::{Clock, Engine, SystemClock};
use a2a_lambda::runtime::Runtime;
use a2a_lambda::settings::Settings;
use a2a_lambda::store::Blobs as _;
use a2a_lambda::store::aws::AwsClients;
use a2a_lambda::store::contract::World;
use a2a_lambda::store::dynamodb::DynamoStore;
use a2a_lambda::store::queue::{ObjectsPlace, SweepObjects as _};
use a2a_lambda::store::s3::S3Blobs;
use a2a_lambda::store::{
    ReadThreads as _, ThreadState, WriteTasks as _, WriteThreads as _, stored,
};
use a2a_lambda::task::{Change, ContextId, Owner, TaskKey, TaskRecord, ThreadKey, Timestamp};
use a2a_lambda_tests::emulator::{outside, run};
use a2a_local::embedded::{BUCKET, Embedded, TABLE};
use a2a_local::pumps::Pumps;
use futures::future::BoxFuture;
use std::sync::Arc;
use std::time::Duration;

/// Above what stays in an item.
const LARGE: usize = 300 * 1024;
const HOUR: Duration = Duration::from_secs(3600);

/// A clock that stands.
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

/// An engine over these stores, at this time.
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
    let mut settings = crate::estate::settings();
    change(&mut settings);
    Runtime::builder(crate::estate::agent(), settings)
        .tasks(store.clone())
        .threads(store.clone())
        .pushes(store)
        .blobs(Arc::new(blobs.clone()))
        .clock(clock)
        .build()
        .unwrap()
}

/// A task and two commits of it, each of which replaces what the one before has
/// kept; the last one asks.
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

/// How many objects lie in each folder.
async fn counts(estate: &Estate, folders: &[String; 2]) -> [usize; 2] {
    let count = async |folder: &String| {
        let below = format!("v1/{folder}/");
        let keys = estate.near.blobs.keys(&below, None, 10).await;
        keys.unwrap().len()
    };
    [count(&folders[0]).await, count(&folders[1]).await]
}

#[tokio::test]
async fn a_sweep_finds_what_a_writer_left_that_died_before_it_removed_what_it_had_replaced() {
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
        // Each is a process that has seen nothing of the others.
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
    // What is named is there.
    let side = estate.side();
    let found =
        a2a_lambda::store::ReadTasks::load(&side.records, &world.owner, task.id(), world.now);
    assert!(found.await.unwrap().as_ref() == Some(&second));
    let found = side.records.load_thread(&world.owner, &context).await;
    assert!(found.unwrap().as_ref() == Some(&state(2).record));
}

#[tokio::test]
async fn the_place_of_a_sweep_is_stored_and_holds_nothing_of_a_tenant_in_the_clear() {
    let estate = Estate::new("place").await;
    let records = &estate.near.records;
    let place = ObjectsPlace {
        began: estate.world.now,
        after: Some("v1/x/y".to_owned()),
    };
    for place in [
        place.clone(),
        ObjectsPlace {
            after: None,
            ..place
        },
    ] {
        records.note_objects_place(&place).await.unwrap();
        let noted = estate.side().records.objects_place().await.unwrap();
        assert_eq!(noted, Some(place));
    }
}

/// What is stored of anybody.
async fn everything(clients: &AwsClients, blobs: &S3Blobs, owner: &Owner) -> (usize, usize) {
    let scan = clients.dynamodb.scan().table_name(TABLE).send().await;
    let items = scan.unwrap().items.unwrap_or_default();
    let tenant = format!("T#{}#", owner.tenant);
    let ours = items
        .iter()
        .filter(|item| item["PK"].as_s().unwrap().starts_with(&tenant));
    let objects = blobs.keys("v1/", None, 1000).await.unwrap();
    (ours.count(), objects.len())
}

#[tokio::test]
async fn what_the_table_lets_go_by_itself_takes_its_objects_along_through_the_stream() {
    if outside().is_some() {
        println!("SKIPPED: only the emulator in this process can be told to remove");
        return;
    }
    let embedded = Embedded::start(None).await.unwrap();
    let clients = AwsClients::connect(embedded.endpoints()).await;
    let blobs = S3Blobs::new(clients.s3.clone(), BUCKET);
    let records = DynamoStore::new(clients.dynamodb.clone(), TABLE);
    let records = records.with_blobs(Arc::new(blobs.clone()));
    let owner = World::new(run(), "removed").unwrap().owner;
    let short = |settings: &mut Settings| {
        settings.policy.task_ttl = HOUR;
        // The sweep is not what removes anything here.
        settings.sweep_interval = 100 * HOUR;
    };
    // All of it happened three days ago, and is over by this machine's clock.
    let then = SystemClock.now().as_millis() - 3 * 24 * 3_600_000;
    let clock = Arc::new(At(Timestamp::from_millis(then)));
    let past = runtime(&records, &blobs, clock, short);
    let task = crate::estate::say(past.engine(), &owner, "much", |_| ()).await;
    let (items, objects) = everything(&clients, &blobs, &owner).await;
    assert!(items > 3 && objects == 3, "{items} {objects} {task:?}");

    let present = runtime(&records, &blobs, Arc::new(SystemClock), short);
    let mut settings = crate::estate::settings();
    short(&mut settings);
    TABLE.clone_into(&mut settings.table);
    let pumps = Pumps::start(
        present.engine(),
        records.clone(),
        embedded.endpoints(),
        &settings,
    );
    let mut pumps = Box::pin(pumps).await.unwrap();
    assert_eq!(everything(&clients, &blobs, &owner).await, (items, objects));
    pumps.expire(embedded.expiry(), Duration::from_millis(20));
    let gone = async {
        while everything(&clients, &blobs, &owner).await != (0, 0) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let gone = tokio::time::timeout(Duration::from_secs(60), gone).await;
    let left = everything(&clients, &blobs, &owner).await;
    assert!(gone.is_ok(), "left after a minute: {left:?}");
    pumps.stop().await;
    embedded.stop().await;
}
