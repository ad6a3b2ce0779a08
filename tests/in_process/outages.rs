//! Outages of the stores while turns run: they delay tasks and fail none.

use a2a_lambda::engine::{Clock as _, Leases, relay};
use a2a_lambda::prelude::*;
use a2a_lambda::settings::Settings;
use a2a_lambda::store::StoreError;
use a2a_lambda::store::queue::{Ack, Receipt, TaskImage, WorkItem, WorkQueue as _};
use a2a_lambda::task::{Owner, PartContent, Subject, TaskId, TaskRecord, TaskState, TenantId};
use a2a_lambda_rows::each_row_async;
use a2a_lambda_tests::dialect::{Dialect, Op, Say};
use a2a_lambda_tests::frames::frames;
use a2a_lambda_tests::per_dialect;
use a2a_lambda_tests::tester::Gate;
use a2a_lambda_tests::world::{Request, World};
use a2a_local::queue::LocalQueue;
use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::sync::Mutex;
use std::time::Duration;

per_dialect! {
    paused ALL:
    client_that_leaves_while_it_gets_an_error_loses_nothing
}

const DIALECT: Dialect = Dialect::Rest10;
const MINUTE: Duration = Duration::from_secs(60);
/// More bytes than a commit holds: they are an object.
const LARGE: usize = 100_000;

/// Says how many bytes the file of its message has.
#[skill(id = "reads", tags = ["test"], background = true, input_modes = ["*/*"])]
async fn reads(input: Content) -> AgentResult<String> {
    let sizes = input.parts().iter().map(|part| match &part.content {
        PartContent::Raw(bytes) => bytes.len(),
        _ => 0,
    });
    Ok(format!("{} bytes", sizes.sum::<usize>()))
}

/// Makes a file after one step.
#[skill(id = "makes", tags = ["test"])]
async fn makes(cx: &mut TaskContext<'_>, _: String) -> AgentResult<String> {
    cx.step("first", async { Ok(1) }).await?;
    let bytes = vec![7; LARGE];
    let made = Artifact::from_file("made", "application/x-test", bytes);
    cx.send_partial_artifact(made).await?;
    Ok("made".to_owned())
}

fn agent(_: Gate) -> Result<AgentDefinition, BuildError> {
    Agent::builder("outages").skill(reads).skill(makes).build()
}

fn world(change: impl FnOnce(&mut Settings)) -> World {
    World::serving(agent, change).unwrap()
}

/// A send to a skill that does not wait.
fn behind_the_call(say: &Say<'_>, file: bool) -> Request {
    let mut params = DIALECT.say(say);
    params["configuration"] = json!({"returnImmediately": true});
    if file {
        let part =
            json!({"raw": STANDARD.encode(vec![7; LARGE]), "mediaType": "application/x-test"});
        params["message"]["parts"]
            .as_array_mut()
            .unwrap()
            .push(part);
    }
    DIALECT.request(Op::Send, "", &params)
}

/// Queues a task with a file for a skill.
async fn queued<'w>(world: &'w World, skill: &str) -> Behind<'w> {
    let say = Say::to(skill, "go");
    let reply = world.call(&behind_the_call(&say, skill == "reads")).await;
    Behind::new(world, &DIALECT.task(&reply)["id"])
}

/// What runs behind the calls for one task: its relay, its queue and a worker.
struct Behind<'w> {
    world: &'w World,
    id: TaskId,
    queue: LocalQueue<WorkItem>,
    relayed: u64,
}

impl<'w> Behind<'w> {
    fn new(world: &'w World, id: &Value) -> Self {
        Self {
            world,
            id: TaskId::parse(id.as_str().unwrap()).unwrap(),
            queue: LocalQueue::new(world.clock.clone(), MINUTE),
            relayed: 0,
        }
    }

    async fn record(&self) -> TaskRecord {
        let owner = Owner {
            tenant: TenantId::parse("local").unwrap(),
            subject: Subject::parse("local").unwrap(),
        };
        let found = &self.world.store.memory().records;
        let found = found.load(&owner, &self.id, self.world.clock.now()).await;
        found.unwrap().unwrap()
    }

    async fn relays(&mut self) {
        let record = self.record().await;
        if record.dispatch() == Some(record.version) && record.version > self.relayed {
            self.relayed = record.version;
            let now = self.world.clock.now();
            assert!(
                relay(&self.queue, &[TaskImage::of(&record)], now)
                    .await
                    .is_empty()
            );
        }
    }

    /// Lets the relay and the worker run for this time; returns how many messages came.
    async fn runs_for(&mut self, time: Duration) -> usize {
        let end = self.world.clock.now().plus(time);
        let mut received = 0;
        loop {
            self.relays().await;
            tokio::select! {
                delivery = self.queue.receive() => {
                    received += 1;
                    let engine = self.world.engine();
                    if engine.turns.work(&delivery.item, &delivery.receipt, None).await == Ack::Delete {
                        delivery.receipt.delete();
                    }
                }
                () = self.world.clock.sleep_until(end) => return received,
            }
        }
    }

    /// Runs a worker with its own message, received for the `receives`th time.
    async fn works(&self, receives: u32) -> (Ack, Duration) {
        let record = self.record().await;
        let item = WorkItem {
            owner: record.owner.clone(),
            task: self.id.clone(),
            incarnation: record.incarnation.clone(),
            turn: record.turn,
            dispatch: record.last_dispatch,
        };
        let hides = Hides {
            receives,
            times: Mutex::default(),
        };
        let ack = self.world.engine().turns.work(&item, &hides, None).await;
        let times = hides.times.lock().unwrap();
        (ack, *times.last().unwrap())
    }
}

/// The receipt of a message that notes for how long it is hidden.
struct Hides {
    receives: u32,
    times: Mutex<Vec<Duration>>,
}

#[async_trait]
impl Receipt for Hides {
    async fn hide(&self, time: Duration) -> Result<(), StoreError> {
        self.times.lock().unwrap().push(time);
        Ok(())
    }

    fn receives(&self) -> u32 {
        self.receives
    }
}

fn code_of(record: &TaskRecord) -> Value {
    let message = record.status.message.as_ref();
    message.map_or(Value::Null, |it| {
        it.metadata["a2a-lambda/errorCode"].clone()
    })
}

#[tokio::test(start_paused = true)]
async fn a_queued_task_survives_ten_minutes_without_its_bucket() {
    for skill in ["reads", "makes"] {
        let world = world(|_| ());
        let mut behind = queued(&world, skill).await;
        world.store.refuse_objects(true);
        let tries = behind.runs_for(10 * MINUTE).await;
        assert!((4..12).contains(&tries), "{skill}: {tries} tries");
        let record = behind.record().await;
        assert_eq!(record.state(), TaskState::Working, "{skill}");
        assert_eq!(record.attempt, 1, "{skill}: an outage is no attempt");
        world.store.refuse_objects(false);
        behind.runs_for(20 * MINUTE).await;
        let record = behind.record().await;
        assert_eq!(record.state(), TaskState::Completed, "{skill}");
        assert!(behind.queue.is_empty(), "{skill}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_outage_longer_than_the_limit_fails_the_task() {
    let world = world(|settings| settings.policy.task_run_max = 60 * MINUTE);
    let mut behind = queued(&world, "reads").await;
    world.store.refuse_objects(true);
    behind.runs_for(59 * MINUTE).await;
    assert_eq!(behind.record().await.state(), TaskState::Working);
    behind.runs_for(20 * MINUTE).await;
    let record = behind.record().await;
    assert_eq!(record.state(), TaskState::Failed);
    assert_eq!(code_of(&record), "RUN_LIMIT_EXCEEDED");
}

#[tokio::test(start_paused = true)]
async fn a_released_turn_is_neither_sent_nor_begun_before_its_time() {
    let world = world(|_| ());
    let mut behind = queued(&world, "reads").await;
    world.store.refuse_objects(true);
    behind.runs_for(Duration::from_secs(1)).await;
    let record = behind.record().await;
    let left = record.not_before.unwrap().since(world.clock.now());
    assert_eq!(left, Duration::from_secs(9), "ten seconds after the run");
    let visible = behind.queue.waiting().await.unwrap();
    assert_eq!((behind.queue.len(), visible), (1, 0));
    // A duplicate of the message comes early.
    assert_eq!(behind.works(1).await, (Ack::Keep, left));
    assert_eq!(behind.record().await, record);
    // The sweep counts the age of the intent from then on.
    let sweep = async || {
        let swept = world
            .engine()
            .sweeper
            .sweep(&behind.queue, Leases::Respect)
            .await;
        swept.unwrap().redispatched
    };
    tokio::time::sleep(left + 5 * MINUTE - Duration::from_millis(1)).await;
    assert_eq!(sweep().await, 0);
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(sweep().await, 1);
}

#[tokio::test(start_paused = true)]
async fn a_message_is_hidden_for_longer_while_nothing_can_be_stored() {
    let world = world(|_| ());
    let behind = queued(&world, "reads").await;
    let before = behind.record().await;
    world.store.refuse_commits(true);
    let rows = [(1, 1), (2, 2), (3, 4), (4, 8), (5, 15), (6, 15), (20, 15)];
    each_row_async(rows, async |(receives, minutes)| {
        assert_eq!(behind.works(receives).await, (Ack::Keep, minutes * MINUTE));
    })
    .await;
    // The index of open tasks brings the turn back.
    assert_eq!(behind.works(21).await.0, Ack::Delete);
    assert_eq!(behind.record().await, before, "the claim was not stored");
}

#[tokio::test(start_paused = true)]
async fn a_duplicate_message_returns_less_often_and_ends_with_its_dispatch() {
    let world = World::new().unwrap();
    let behind = queued(&world, "slow").await;
    let item = {
        let record = behind.record().await;
        let asks = TaskImage::of(&record).asks();
        asks.unwrap()
    };
    let first = behind.works(1);
    let others = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let lease = Duration::from_secs(59);
        let rows = [
            (1, lease),
            (2, 2 * lease),
            (4, 8 * lease),
            (20, 60 * MINUTE),
        ];
        each_row_async(rows, async |(receives, hidden)| {
            assert_eq!(
                behind.works(receives).await,
                (Ack::Keep, hidden),
                "{receives}"
            );
        })
        .await;
        let older = WorkItem {
            dispatch: item.dispatch - 1,
            ..item.clone()
        };
        let hides = Hides {
            receives: 1,
            times: Mutex::default(),
        };
        let ack = world.engine().turns.work(&older, &hides, None).await;
        assert_eq!(
            ack,
            Ack::Delete,
            "a later dispatch has a message of its own"
        );
        world.gate.open();
    };
    let ((ack, _), ()) = tokio::join!(first, others);
    assert_eq!(ack, Ack::Delete);
}

#[tokio::test(start_paused = true)]
async fn an_outage_in_a_call_leaves_its_turn_to_a_worker() {
    for streams in [false, true] {
        let world = world(|_| ());
        world.store.refuse_objects(true);
        let say = Say::to("makes", "go");
        let task = if streams {
            let reply = world.call(&DIALECT.stream(&say)).await;
            frames(&reply).unwrap()[0].data["task"].clone()
        } else {
            let reply = world.call(&DIALECT.send(&say)).await;
            let task = DIALECT.task(&reply);
            assert_eq!(DIALECT.state(&task), "working");
            task
        };
        let mut behind = Behind::new(&world, &task["id"]);
        let record = behind.record().await;
        assert_eq!(record.attempt, 1, "{streams}");
        world.store.refuse_objects(false);
        behind.runs_for(20 * MINUTE).await;
        let record = behind.record().await;
        assert_eq!((record.state(), record.attempt), (TaskState::Completed, 1));
    }
}

async fn client_that_leaves_while_it_gets_an_error_loses_nothing(dialect: Dialect) {
    // It leaves before the error, after the event of the error, and at the end of the stream.
    for count in 0..3 {
        let world = World::new().unwrap();
        let mut live = world.open(&dialect.stream(&Say::to("slow", "go"))).await;
        let start = live.next().await.unwrap().unwrap();
        let id = world.store.commits()[0].task.to_string();
        world.store.refuse_commits(true);
        world.gate.open();
        for _ in 0..count {
            live.next().await.unwrap();
        }
        drop(live);
        tokio::time::sleep(Duration::from_secs(1)).await;
        let left = world.call(&dialect.of_task(Op::Get, &id)).await;
        let left = dialect.task(&left);
        assert_eq!(dialect.state(&left), "working", "{count}: {left}");

        world.store.refuse_commits(false);
        let mut behind = Behind::new(&world, &json!(id));
        tokio::time::sleep(2 * MINUTE).await;
        let swept = world
            .engine()
            .sweeper
            .sweep(&behind.queue, Leases::Respect)
            .await;
        assert_eq!(swept.unwrap().redispatched, 1, "{count}");
        assert_eq!(behind.runs_for(MINUTE).await, 1, "{count}");
        let resume = dialect.of_task(Op::Subscribe, &id);
        let resume = resume.header("last-event-id", start.id.as_ref().unwrap());
        let shown = frames(&world.call(&resume).await).unwrap();
        let shown: Vec<String> = shown.iter().map(|it| dialect.described(it)).collect();
        let index = if dialect.is_v01() { "#0 " } else { "" };
        let result = format!("artifact {index}slow at last.");
        assert_eq!(shown[1..], [&*result, "status completed"], "{count}");
    }
}
