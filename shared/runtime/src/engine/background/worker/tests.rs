//! Tests turns that a worker runs, over the memory store and tokio's paused clock. A
//! crash is a dropped future.

use crate::auth::Caller;
use crate::engine::doubles::{
    FakeQueue, START, ann, owner, send_command, sent_task, services, work_item,
};
use crate::engine::{Engine, Leases, Policy, SweepReport, relay};
use crate::prelude::*;
use crate::store::StoreError;
use crate::store::memory::MemoryStore;
use crate::store::queue::{Ack, TaskImage, WorkItem, WorkMessage, WorkQueue};
use crate::task::{
    CancelCommand, Generation, Message, OutputCounts, Part, SendCommand, SendMode, StepOutcome,
    StepResult, Task, TaskId, TaskRecord, TaskState,
};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

mod answers;
mod recovery;
mod share;
mod streams;

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
        self.engine.turns.work(&item, &self.line, None).await
    }

    /// Runs a worker that dies after `time`.
    async fn crash_after(&self, id: &TaskId, time: Duration) {
        let item = self.item(id).await;
        let dying = self.engine.turns.work(&item, &self.line, None);
        assert!(
            tokio::time::timeout(time, dying).await.is_err(),
            "the worker did not die"
        );
    }

    async fn sweep(&self, leases: Leases) -> SweepReport {
        self.engine.sweeper.sweep(&self.line, leases).await.unwrap()
    }
}

fn text_of(record: &TaskRecord, artifact: &str) -> String {
    let found = record
        .artifacts
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
    fixture.engine.tasks.cancel(&caller, &cancel).await.unwrap();
    fixture
        .engine
        .tasks
        .delete_task(&caller, &id)
        .await
        .unwrap();
    send().await;
    let before = fixture.record(&id).await;
    let same = WorkItem {
        incarnation: earlier.incarnation.clone(),
        ..fixture.item(&id).await
    };
    assert_eq!(same, earlier, "only the incarnation differs");
    assert_eq!(
        fixture
            .engine
            .turns
            .work(&earlier, &fixture.line, None)
            .await,
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
    let said = Artifact::from(record.artifacts[0].clone()).text().unwrap();
    assert_eq!(said, "gold read write text/plain");
    assert_eq!(
        record.request.as_ref(),
        None,
        "the request is kept only while the turn runs"
    );
}

#[test]
fn turn_starts_without_the_steps_of_the_previous_turn() {
    use crate::store::contract::SampleData;
    use crate::task::{Change, SavedSlot};
    let sample = SampleData::new(1, "steps").unwrap();
    let message = || Message::from_user("m", vec![Part::text("x")]);
    let kept = [
        sample.start(),
        Change::Step {
            key: "step#1".to_owned(),
            result: Box::new(StepResult {
                outcome: StepOutcome::Value(1.into()),
                ordinal: 1,
                ..StepResult::default()
            }),
            outputs: OutputCounts::new(),
            reads: Vec::new(),
        },
        Change::Save {
            key: "k".to_owned(),
            value: 2.into(),
            outputs: OutputCounts::new(),
            reads: Vec::new(),
            save_place: Box::default(),
            order: None,
        },
        Change::AskInput {
            message: message(),
            slot: SavedSlot {
                version: 0,
                value: serde_json::Value::Null,
            },
        },
    ];
    let asked = sample.next(&sample.task().unwrap(), kept).unwrap();
    let answers = [
        Change::Queue {
            message: message(),
            secret: None,
        },
        Change::Resume {
            began_at: Default::default(),
            message: message(),
            secret: None,
            lease_until: sample.at(60_000),
        },
    ];
    for answer in answers {
        let next = sample.next(&asked, [answer]).unwrap();
        assert!(next.saved.steps.is_empty());
        assert_eq!(next.saved.data.len(), 1, "saved values belong to the task");
    }
}
