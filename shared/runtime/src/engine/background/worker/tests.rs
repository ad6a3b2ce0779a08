//! Tests turns that a worker runs, over the memory store and tokio's paused clock. A
//! crash is a dropped future.

use crate::auth::Caller;
use crate::engine::CallBudget;
use crate::engine::doubles::{
    FakeQueue, START, ann, owner, send_command, sent_task, services, work_item,
};
use crate::engine::relay;
use crate::engine::{Engine, EngineError, Leases, Policy, SweepReport};
use crate::prelude::*;
use crate::store::memory::MemoryStore;
use crate::store::queue::{Ack, TaskImage, WorkItem, WorkMessage, WorkQueue};
use crate::store::{Measured, RecordQuery, StoreError};
use crate::task::{
    CancelCommand, Event, Frame, Generation, Message, OutputCounts, Part, PartContent, SendCommand,
    SendMode, Sent, StepResult, SubscribeCommand, Task, TaskId, TaskRecord, TaskState,
};
use async_trait::async_trait;
use bytes::Bytes;
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::Instant;

mod answers;

const MINUTE: Duration = Duration::from_secs(60);

/// Counts the runs of the skill and the effects of its steps.
#[derive(Default)]
struct Counter {
    runs: AtomicU32,
    effects: AtomicU32,
}

/// Works in the way its input names.
#[skill(id = "work", tags = ["test"], input_modes = ["text/plain"])]
struct Worker(Arc<Counter>);

impl SkillHandler for Worker {
    type Input = String;
    type Output = String;

    async fn on_request(
        &self,
        cx: &mut TaskContext<'_>,
        input: String,
    ) -> AgentResult<OnRequestResult<String>> {
        self.0.runs.fetch_add(1, Ordering::SeqCst);
        match input.as_str() {
            "long steps" => {
                for n in 0..20 {
                    let minute = async {
                        tokio::time::sleep(MINUTE).await;
                        Ok(n)
                    };
                    cx.step(&format!("long-{n}"), minute).await?;
                }
            }
            "steps" => {
                for n in 0..3 {
                    cx.step(&format!("step-{n}"), async {
                        tokio::time::sleep(Duration::from_secs(20)).await;
                        self.0.effects.fetch_add(1, Ordering::SeqCst);
                        Ok(n)
                    })
                    .await?;
                }
            }
            "chunks" => {
                let mut chunks = cx.artifact_chunks("log");
                chunks.push("one ").await?;
                chunks.push("two ").await?;
                tokio::time::sleep(10 * MINUTE).await;
                chunks.finish().await?;
            }
            "who" => {
                let caller = cx.caller();
                let scopes: Vec<&str> = caller.scopes.iter().map(String::as_str).collect();
                let modes = cx.accepted_output_modes().join(" ");
                let who = format!("{} {} {modes}", caller.tier, scopes.join(" "));
                return OnRequestResult::done(who);
            }
            "quick" => {}
            _ => tokio::time::sleep(10 * MINUTE).await,
        }
        OnRequestResult::done("done".to_owned())
    }
}

/// Completes in a worker.
#[skill(id = "behind", tags = ["test"], input_modes = ["text/plain"], background = true)]
async fn behind(_: String) -> AgentResult<String> {
    Ok("done".to_owned())
}

/// An engine, its queue, and the counter of its skill.
struct WorkerFixture {
    engine: Engine,
    store: MemoryStore,
    line: FakeQueue<WorkItem>,
    counter: Arc<Counter>,
}

impl WorkerFixture {
    fn new() -> Self {
        let counter = Arc::new(Counter::default());
        let agent = Agent::builder("test").skill(Worker(counter.clone()));
        Self::with(agent.build().unwrap(), counter)
    }

    /// A fixture with the `background` skill if `words` name it, else with [`Worker`].
    fn with_message(words: &str) -> Self {
        match words {
            "background" => {
                let agent = Agent::builder("test").skill(behind);
                Self::with(agent.build().unwrap(), Arc::default())
            }
            _ => Self::new(),
        }
    }

    fn with(agent: AgentDefinition, counter: Arc<Counter>) -> Self {
        let store = MemoryStore::new();
        let services = services(&store);
        let engine = Engine::new(Arc::new(agent), services, Policy::default());
        Self {
            engine,
            store,
            line: FakeQueue::default(),
            counter,
        }
    }

    async fn send(&self, text: &str, mode: SendMode) -> Task {
        sent_task(&self.engine, &ann(), send_command(text, mode)).await
    }

    async fn record(&self, id: &TaskId) -> TaskRecord {
        let now = self.engine.reader.clock.now();
        let found = self.store.records.load(&owner(), id, now).await;
        found.unwrap().unwrap()
    }

    async fn item(&self, id: &TaskId) -> WorkItem {
        work_item(&self.record(id).await)
    }

    async fn work(&self, id: &TaskId) -> Ack {
        let item = self.item(id).await;
        self.engine.work(&item, &self.line, None).await
    }

    /// Runs a worker that dies after `time`.
    async fn crash_after(&self, id: &TaskId, time: Duration) {
        let item = self.item(id).await;
        let dying = self.engine.work(&item, &self.line, None);
        assert!(
            tokio::time::timeout(time, dying).await.is_err(),
            "the worker did not die"
        );
    }

    async fn sweep(&self, leases: Leases) -> SweepReport {
        self.engine.sweep(&self.line, leases).await.unwrap()
    }
}

fn text_of(record: &TaskRecord, artifact: &str) -> String {
    let found = record
        .artifacts()
        .iter()
        .find(|a| a.name.as_deref() == Some(artifact))
        .unwrap();
    Artifact::from(found.clone()).text().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_send_that_does_not_wait_is_answered_before_its_turn_runs() {
    let fixture = WorkerFixture::new();
    let task = fixture.send("quick", SendMode::Immediate).await;
    assert_eq!(task.status.state, TaskState::Submitted);
    assert_eq!(fixture.counter.runs.load(Ordering::SeqCst), 0);
    assert_eq!(fixture.work(&task.id).await, Ack::Delete);
    assert_eq!(fixture.record(&task.id).await.state(), TaskState::Completed);
    assert_eq!(
        fixture.work(&task.id).await,
        Ack::Delete,
        "a repeated message finds the task at rest"
    );
    assert_eq!(fixture.counter.runs.load(Ordering::SeqCst), 1);
}

/// Says back a text in a worker.
#[skill(id = "repeat", tags = ["test"], background = true)]
async fn repeat(text: String) -> AgentResult<String> {
    Ok(text)
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Word {
    word: String,
}

/// Says back a word in a worker.
#[skill(id = "word", tags = ["test"], background = true)]
async fn word(word: Word) -> AgentResult<String> {
    Ok(word.word)
}

#[tokio::test(start_paused = true)]
async fn a_worker_gives_a_skill_the_input_of_a_command() {
    let agent = Agent::builder("test").skill(repeat).skill(word);
    let fixture = WorkerFixture::with(agent.build().unwrap(), Arc::default());
    for (text, skill) in [
        ("/repeat hello", "repeat"),
        (r#"/word {"word": "hello"}"#, "word"),
    ] {
        let task = fixture.send(text, SendMode::Immediate).await;
        fixture.work(&task.id).await;
        let record = fixture.record(&task.id).await;
        assert_eq!(record.state(), TaskState::Completed, "{text}");
        assert_eq!(text_of(&record, skill), "hello", "{text}");
    }
}

/// The frames of a stream, and how long it lasted.
async fn watched(
    work: impl Future<Output = Result<(), EngineError>>,
    frames: &mut UnboundedReceiver<Frame>,
) -> (Vec<Frame>, Duration) {
    let begun = Instant::now();
    work.await.unwrap();
    let mut shown = Vec::new();
    while let Ok(frame) = frames.try_recv() {
        shown.push(frame);
    }
    (shown, begun.elapsed())
}

#[tokio::test(start_paused = true)]
async fn stream_ends_before_its_invocation_and_asks_to_reconnect() {
    // `long steps` is handed over, `background` is dispatched to a worker, and `steps`
    // ends within the stream. `None`: without a deadline.
    for (words, mode, left, lasts) in [
        ("long steps", SendMode::Blocking, Some(900), 898),
        ("long steps", SendMode::Blocking, Some(60), 58),
        ("background", SendMode::Blocking, Some(900), 300),
        ("background", SendMode::Blocking, Some(90), 88),
        ("background", SendMode::Blocking, Some(1), 0),
        ("background", SendMode::Blocking, None, 300),
        ("steps", SendMode::Blocking, None, 60),
    ] {
        let fixture = WorkerFixture::with_message(words);
        let clock = &fixture.engine.reader.clock;
        let deadline = left.map(|left| clock.now().plus(Duration::from_secs(left)));
        let command = send_command(words, mode);
        let (sender, mut frames) = unbounded_channel();
        let caller = ann();
        let stream = fixture
            .engine
            .stream(&caller, command, CallBudget::until(deadline), sender);
        let (shown, lasted) = Box::pin(watched(stream, &mut frames)).await;
        assert_eq!(lasted.as_secs(), lasts, "{words} {left:?}");
        let ends = shown.iter().filter(|frame| **frame == Frame::ComeBack);
        let planned = usize::from(words != "steps");
        assert_eq!(ends.count(), planned, "{words} {left:?}");
        assert_eq!(shown.last() == Some(&Frame::ComeBack), planned == 1);
    }
}

#[tokio::test(start_paused = true)]
async fn subscription_ends_before_its_invocation_and_asks_to_reconnect() {
    let fixture = WorkerFixture::new();
    let id = fixture.send("steps", SendMode::Immediate).await.id;
    let caller = ann();
    let command = SubscribeCommand {
        id: id.clone(),
        last_event: None,
    };
    for (left, lasts) in [(Some(60), 58), (Some(900), 300), (Some(2), 0), (None, 300)] {
        let reader = fixture.engine.reader();
        let deadline = left.map(|left| reader.clock.now().plus(Duration::from_secs(left)));
        let (sender, mut frames) = unbounded_channel();
        let stream = reader.subscribe(&caller, &command, CallBudget::until(deadline), sender);
        let (shown, lasted) = watched(stream, &mut frames).await;
        assert_eq!((lasted.as_secs(), shown.len()), (lasts, 2), "{left:?}");
        assert_eq!(shown.last(), Some(&Frame::ComeBack), "{left:?}");
    }
    let (sender, mut frames) = unbounded_channel();
    let stream =
        fixture
            .engine
            .reader()
            .subscribe(&caller, &command, CallBudget::default(), sender);
    let watching = watched(stream, &mut frames);
    let ((shown, _), _) = tokio::join!(watching, fixture.work(&id));
    assert!(!shown.contains(&Frame::ComeBack), "the task has ended");
}

#[tokio::test(start_paused = true)]
async fn a_subscription_ends_when_its_client_leaves() {
    let fixture = WorkerFixture::new();
    let id = fixture.send("steps", SendMode::Immediate).await.id;
    let (caller, last_event) = (ann(), None);
    let command = SubscribeCommand { id, last_event };
    let (sender, mut frames) = unbounded_channel();
    let reader = fixture.engine.reader();
    let stream = reader.subscribe(&caller, &command, CallBudget::default(), sender);
    let begun = Instant::now();
    let client = async {
        frames.recv().await.unwrap();
        // The next read of the log is due a second after the last.
        tokio::time::sleep(Duration::from_millis(10_001)).await;
        drop(frames);
    };
    let (ended, ()) = tokio::join!(stream, client);
    ended.unwrap();
    assert_eq!(begun.elapsed().as_millis(), 10_001);
}

#[tokio::test(start_paused = true)]
async fn blocking_send_returns_before_its_invocation_ends() {
    for words in ["steps", "background"] {
        let fixture = WorkerFixture::with_message(words);
        let begun = Instant::now();
        let deadline = fixture
            .engine
            .reader
            .clock
            .now()
            .plus(Duration::from_secs(10));
        let command = send_command(words, SendMode::Blocking);
        let caller = ann();
        let sent = fixture
            .engine
            .send(&caller, command, CallBudget::until(Some(deadline)));
        assert!(matches!(sent.await.unwrap(), Sent::Task(_)));
        assert!(
            begun.elapsed() <= Duration::from_secs(9),
            "{:?}",
            begun.elapsed()
        );
    }
}

#[tokio::test(start_paused = true)]
async fn message_of_a_deleted_task_leaves_its_successor_unchanged() {
    let fixture = WorkerFixture::new();
    let (caller, id) = (ann(), TaskId::parse("order-1").unwrap());
    let send = async || {
        let mut command = send_command("quick", SendMode::Immediate);
        command.client_task_id = Some(id.clone());
        command.generation = Generation::V01;
        sent_task(&fixture.engine, &caller, command).await
    };
    send().await;
    let earlier = fixture.item(&id).await;
    let cancel = CancelCommand {
        id: id.clone(),
        metadata: serde_json::Map::new(),
    };
    fixture.engine.cancel(&caller, &cancel).await.unwrap();
    fixture.engine.delete_task(&caller, &id).await.unwrap();
    send().await;
    let before = fixture.record(&id).await;
    let same = WorkItem {
        incarnation: earlier.incarnation.clone(),
        ..fixture.item(&id).await
    };
    assert_eq!(same, earlier, "only the incarnation differs");
    assert_eq!(
        fixture.engine.work(&earlier, &fixture.line, None).await,
        Ack::Delete
    );
    assert_eq!(fixture.record(&id).await, before);
    assert_eq!(fixture.counter.runs.load(Ordering::SeqCst), 0);
    assert_eq!(fixture.work(&id).await, Ack::Delete);
    assert_eq!(fixture.record(&id).await.state(), TaskState::Completed);
}

#[tokio::test(start_paused = true)]
async fn relay_forwards_an_intent_only_from_the_image_that_set_it() {
    let fixture = WorkerFixture::new();
    let task = fixture.send("quick", SendMode::Immediate).await;
    let asking = TaskImage::of(&fixture.record(&task.id).await);
    let later = TaskImage {
        version: asking.version + 1,
        ..asking.clone()
    };
    let quiet = TaskImage {
        dispatch: None,
        ..asking.clone()
    };
    assert_eq!(
        relay(&fixture.line, &[later, quiet, asking], START).await,
        Vec::<usize>::new()
    );
    assert_eq!(fixture.line.items.lock().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn relay_reports_images_the_queue_did_not_accept() {
    struct Full;
    #[async_trait]
    impl WorkQueue for Full {
        async fn send(&self, messages: &[WorkMessage]) -> Result<Vec<bool>, StoreError> {
            Ok((0..messages.len()).map(|place| place == 0).collect())
        }

        async fn waiting(&self) -> Result<usize, StoreError> {
            Ok(0)
        }
    }
    let fixture = WorkerFixture::new();
    let task = fixture.send("quick", SendMode::Immediate).await;
    let asking = TaskImage::of(&fixture.record(&task.id).await);
    let quiet = TaskImage {
        dispatch: None,
        ..asking.clone()
    };
    let images = [quiet, asking.clone(), asking];
    assert_eq!(relay(&Full, &images, START).await, [2]);
}

#[tokio::test(start_paused = true)]
async fn blocking_send_returns_within_its_budget_and_a_worker_continues() {
    let fixture = WorkerFixture::new();
    let begun = Instant::now();
    let task = fixture.send("steps", SendMode::Blocking).await;
    assert!(
        begun.elapsed() <= Duration::from_secs(28),
        "{:?}",
        begun.elapsed()
    );
    assert_eq!(task.status.state, TaskState::Working);
    assert_eq!(fixture.work(&task.id).await, Ack::Delete);
    assert_eq!(fixture.record(&task.id).await.state(), TaskState::Completed);
    assert_eq!(fixture.counter.runs.load(Ordering::SeqCst), 2);
    // In the first run one step completed and the second was cut off.
    assert_eq!(fixture.counter.effects.load(Ordering::SeqCst), 3);
}

#[tokio::test(start_paused = true)]
async fn a_step_that_completed_is_not_run_again_after_a_crash() {
    let fixture = WorkerFixture::new();
    let task = fixture.send("steps", SendMode::Immediate).await;
    fixture.crash_after(&task.id, Duration::from_secs(50)).await;
    assert_eq!(fixture.counter.effects.load(Ordering::SeqCst), 2);
    tokio::time::sleep(3 * MINUTE).await;
    assert_eq!(fixture.work(&task.id).await, Ack::Delete);
    assert_eq!(fixture.record(&task.id).await.state(), TaskState::Completed);
    assert_eq!(fixture.counter.effects.load(Ordering::SeqCst), 3);
}

#[tokio::test(start_paused = true)]
async fn restarted_turn_reports_the_restart_and_doubles_no_output() {
    let fixture = WorkerFixture::new();
    let task = fixture.send("chunks", SendMode::Immediate).await;
    fixture.crash_after(&task.id, Duration::from_secs(30)).await;
    assert_eq!(text_of(&fixture.record(&task.id).await, "log"), "one two ");
    tokio::time::sleep(3 * MINUTE).await;
    assert_eq!(fixture.work(&task.id).await, Ack::Delete);
    let record = fixture.record(&task.id).await;
    assert_eq!(text_of(&record, "log"), "one two ");
    let restarts = record.log().iter().filter(|logged| match &logged.event {
        Event::Status(update) => update.metadata.contains_key("a2a-lambda/restarted"),
        Event::Artifact(_) => false,
    });
    assert_eq!(restarts.count(), 1);
    let ids: Vec<&str> = (record.log().iter())
        .filter_map(|logged| match &logged.event {
            Event::Artifact(update) => Some((update, update.artifact.name.as_deref()?)),
            Event::Status(_) => None,
        })
        .filter(|(_, name)| *name == "log")
        .map(|(update, _)| update.artifact.id.as_str())
        .collect();
    assert!(
        ids.windows(2).all(|pair| pair[0] == pair[1]),
        "one id in every attempt"
    );
    let numbers: Vec<u64> = record.log().iter().map(|logged| logged.seq).collect();
    assert_eq!(numbers, (1..=record.last_seq()).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn worker_keeps_the_message_of_a_turn_with_a_live_lease() {
    let fixture = WorkerFixture::new();
    let task = fixture.send("long", SendMode::Immediate).await;
    let item = fixture.item(&task.id).await;
    let first = fixture.engine.work(&item, &fixture.line, None);
    let second = async {
        tokio::time::sleep(2 * MINUTE).await;
        fixture.line.hidden.lock().unwrap().clear();
        let ack = fixture.engine.work(&item, &fixture.line, None).await;
        (ack, fixture.line.hidden.lock().unwrap().clone())
    };
    let (first, (second, hidden)) = tokio::join!(first, second);
    assert_eq!((first, second), (Ack::Delete, Ack::Keep));
    assert!(hidden.last().unwrap() <= &MINUTE, "{hidden:?}");
    assert_eq!(fixture.counter.runs.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn fenced_worker_changes_nothing_and_ends_its_message() {
    let fixture = WorkerFixture::new();
    let task = fixture.send("long", SendMode::Immediate).await;
    let item = fixture.item(&task.id).await;
    let first = fixture.engine.work(&item, &fixture.line, None);
    let thief = async {
        tokio::time::sleep(Duration::from_secs(5)).await;
        // The sweep counts the first worker's lease as expired, and a second worker takes
        // over.
        fixture.sweep(Leases::CountAsExpired).await;
        let item = fixture.item(&task.id).await;
        fixture.engine.work(&item, &fixture.line, None).await
    };
    let (first, second) = tokio::join!(first, thief);
    // The second dispatch has a message of its own.
    assert_eq!((first, second), (Ack::Delete, Ack::Delete));
    let record = fixture.record(&task.id).await;
    assert_eq!((record.state(), record.epoch()), (TaskState::Completed, 2));
}

#[tokio::test(start_paused = true)]
async fn cancel_reaches_the_worker_at_its_next_heartbeat() {
    let fixture = WorkerFixture::new();
    let task = fixture.send("long", SendMode::Immediate).await;
    let item = fixture.item(&task.id).await;
    let begun = Instant::now();
    let working = fixture.engine.work(&item, &fixture.line, None);
    let canceling = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let command = CancelCommand {
            id: task.id.clone(),
            metadata: serde_json::Map::new(),
        };
        fixture.engine.cancel(&ann(), &command).await.unwrap()
    };
    let (ack, canceled) = tokio::join!(working, canceling);
    assert_eq!(ack, Ack::Delete);
    assert!(begun.elapsed() < MINUTE);
    let record = fixture.record(&task.id).await;
    assert_eq!(record.state(), TaskState::Canceled);
    assert_eq!(
        Some(record.version()),
        canceled.last_event.map(|event| event.version)
    );
}

#[tokio::test(start_paused = true)]
async fn task_that_kills_its_workers_fails_after_five_attempts() {
    let fixture = WorkerFixture::new();
    let task = fixture.send("long", SendMode::Immediate).await;
    for _ in 0..5 {
        fixture.crash_after(&task.id, Duration::from_secs(30)).await;
        tokio::time::sleep(3 * MINUTE).await;
    }
    assert_eq!(fixture.work(&task.id).await, Ack::Delete);
    let record = fixture.record(&task.id).await;
    assert_eq!(record.state(), TaskState::Failed);
    let message = record.status().message.clone().unwrap();
    assert_eq!(
        message.metadata["a2a-lambda/errorCode"],
        "ATTEMPTS_EXHAUSTED"
    );
    assert_eq!(fixture.counter.runs.load(Ordering::SeqCst), 5);
}

#[tokio::test(start_paused = true)]
async fn sweep_dispatches_an_inline_turn_that_died() {
    let fixture = WorkerFixture::new();
    let dying = fixture.send("chunks", SendMode::Blocking);
    assert!(
        tokio::time::timeout(Duration::from_secs(5), dying)
            .await
            .is_err()
    );
    let page = RecordQuery {
        context_id: None,
        state: None,
        status_after: None,
        after: None,
        limit: 1,
        count_limit: 0,
        now: fixture.engine.reader.clock.now(),
    };
    let found = fixture.store.records.list(&owner(), &page).await.unwrap();
    let id = found.records[0].id().clone();
    assert_eq!(
        fixture.sweep(Leases::Respect).await.redispatched,
        0,
        "its lease is live"
    );
    tokio::time::sleep(2 * MINUTE).await;
    assert_eq!(fixture.sweep(Leases::Respect).await.redispatched, 1);
    assert_eq!(fixture.work(&id).await, Ack::Delete);
    assert_eq!(fixture.record(&id).await.state(), TaskState::Completed);
}

#[tokio::test(start_paused = true)]
async fn sweep_resends_an_old_intent_without_a_write() {
    let fixture = WorkerFixture::new();
    let task = fixture.send("quick", SendMode::Immediate).await;
    let before = fixture.record(&task.id).await;
    tokio::time::sleep(5 * MINUTE - Duration::from_millis(1)).await;
    let swept = fixture.sweep(Leases::Respect).await;
    assert_eq!(
        swept.redispatched, 0,
        "the intent is younger than five minutes"
    );
    tokio::time::sleep(Duration::from_millis(1)).await;
    let swept = fixture.sweep(Leases::Respect).await;
    assert_eq!((swept.redispatched, swept.failed), (1, 0));
    let item = fixture.item(&task.id).await;
    assert_eq!(*fixture.line.items.lock().unwrap(), [item]);
    assert_eq!(fixture.record(&task.id).await, before);
    assert_eq!(fixture.work(&task.id).await, Ack::Delete);
    assert_eq!(fixture.record(&task.id).await.state(), TaskState::Completed);
}

#[tokio::test(start_paused = true)]
async fn worker_knows_the_callers_tier_scopes_and_output_modes() {
    let fixture = WorkerFixture::new();
    let caller = Caller {
        tier: "gold".to_owned(),
        scopes: ["read", "write"].map(str::to_owned).into(),
        ..ann()
    };
    let command = SendCommand {
        accepted_output_modes: vec!["text/plain".to_owned()],
        ..send_command("who", SendMode::Immediate)
    };
    let task = sent_task(&fixture.engine, &caller, command).await;
    assert_eq!(fixture.work(&task.id).await, Ack::Delete);
    let record = fixture.record(&task.id).await;
    let said = Artifact::from(record.artifacts()[0].clone())
        .text()
        .unwrap();
    assert_eq!(said, "gold read write text/plain");
    assert_eq!(
        record.request(),
        None,
        "the request is kept only while the turn runs"
    );
}

#[test]
fn turn_starts_without_the_steps_of_the_previous_turn() {
    use crate::store::contract::World;
    use crate::task::{Change, SavedSlot};
    let world = World::new(1, "steps").unwrap();
    let message = || Message::from_user("m", vec![Part::text("x")]);
    let kept = [
        world.start(),
        Change::Step {
            key: "step#1".to_owned(),
            result: Box::new(StepResult {
                value: 1.into(),
                ordinal: 1,
                ..StepResult::default()
            }),
            outputs: OutputCounts::new(),
        },
        Change::Save {
            key: "k".to_owned(),
            value: 2.into(),
            outputs: OutputCounts::new(),
        },
        Change::AskInput {
            message: message(),
            slot: SavedSlot {
                version: 0,
                value: serde_json::Value::Null,
            },
        },
    ];
    let asked = world.next(&world.task().unwrap(), kept).unwrap();
    let answers = [
        Change::Queue {
            message: message(),
            secret: None,
        },
        Change::Resume {
            message: message(),
            secret: None,
            lease_until: world.at(60_000),
        },
    ];
    for answer in answers {
        let next = world.next(&asked, [answer]).unwrap();
        assert!(next.saved().steps.is_empty());
        assert_eq!(
            next.saved().data.len(),
            1,
            "saved values belong to the task"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn sweep_waits_30_seconds_after_a_lease_has_expired() {
    let fixture = WorkerFixture::new();
    let task = fixture.send("long", SendMode::Immediate).await;
    fixture.crash_after(&task.id, Duration::from_secs(30)).await;
    let ends = fixture.record(&task.id).await.lease_until().unwrap();
    let left = ends.since(fixture.engine.reader.clock.now());
    tokio::time::sleep(left + Duration::from_millis(29_999)).await;
    let swept = fixture.sweep(Leases::Respect).await;
    assert_eq!(swept.redispatched, 0);
    tokio::time::sleep(Duration::from_millis(1)).await;
    let swept = fixture.sweep(Leases::Respect).await;
    assert_eq!(swept.redispatched, 1);
}

#[tokio::test(start_paused = true)]
async fn sweep_fails_a_task_without_attempts_left() {
    let fixture = WorkerFixture::new();
    let task = fixture.send("long", SendMode::Immediate).await;
    for attempt in 1..=5 {
        fixture.crash_after(&task.id, Duration::from_secs(30)).await;
        tokio::time::sleep(3 * MINUTE).await;
        let swept = fixture.sweep(Leases::Respect).await;
        let last = usize::from(attempt == 5);
        assert_eq!((swept.failed, swept.redispatched), (last, 1 - last));
    }
    let record = fixture.record(&task.id).await;
    assert_eq!(record.state(), TaskState::Failed);
}
