use super::payload::leave_out;
use super::*;
use crate::engine::doubles::{
    FakeQueue, ann, open_tasks, owner, send_command, sent_task, services,
};
use crate::engine::{Clock, Engine, RandomIds, SecretKeys, Services, SweepReport};
use crate::store::StoreError;
use crate::store::brake::{BrakeTarget, Brakes};
use crate::store::keys::Key;
use crate::store::memory::MemoryStore;
use crate::store::queue::{OpenTask, TaskImage};
use crate::store::records::Records;
use crate::store::table::{Action, Item, ItemChange, Table, Write, WriteResult};
use crate::task::metadata_keys::TRUNCATED;
use crate::task::{
    A2aError, CreatePush, Part, PartContent, PushConfig, PushId, PushOffer, Secret, SendMode, Task,
    TaskId, TaskState,
};
use crate::testing::{ItemKind, TableHooks, TableLayer, reads, writes};
use a2a_lambda_skill::{
    Agent, AgentResult, Content, OnInputResult, OnRequestResult, Skill, SkillHandler,
    SkillMetadata, SkillSlot, TaskContext,
};
use async_trait::async_trait;
use serde_json::Value;
use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

mod configs;
mod hosts;
mod pacing;

/// `done` completes, `ask` asks for input, `file` makes a large file, `talk` sends two
/// updates first, and a number as many.
struct Teller;

impl Skill for Teller {
    const METADATA: SkillMetadata = SkillMetadata::new("teller", "Tells.", &["test"]);
}

#[derive(serde::Serialize, serde::Deserialize)]
struct Asked;

impl SkillSlot for Asked {}

impl SkillHandler<Asked> for Teller {
    type Input = Content;
    type Output = String;

    async fn on_request(
        &self,
        cx: &mut TaskContext<'_>,
        input: Content,
    ) -> AgentResult<OnRequestResult<String, Asked>> {
        match input.first_text() {
            Some("ask") => OnRequestResult::ask("which?", Asked),
            Some("talk") => {
                cx.send_intermediate_update("one").await?;
                cx.send_intermediate_update("two").await?;
                OnRequestResult::done("talked".to_owned())
            }
            Some("file") => OnRequestResult::done("x".repeat(100_000)),
            text => {
                for number in 0..text.and_then(|text| text.parse().ok()).unwrap_or(0) {
                    cx.send_intermediate_update(format!("{number}")).await?;
                }
                OnRequestResult::done("done".to_owned())
            }
        }
    }

    async fn on_input_received(
        &self,
        _: &mut TaskContext<'_>,
        _: Asked,
        _: Content,
    ) -> AgentResult<OnInputResult<String, Asked>> {
        OnInputResult::done("answered".to_owned())
    }
}

/// Webhooks that accept every delivery, unless `answers` says otherwise.
#[derive(Default)]
struct Hooks {
    got: Mutex<Vec<PushDelivery>>,
    /// The status codes of the next calls; after them, success.
    answers: Mutex<VecDeque<u16>>,
    /// How long each call takes.
    takes: Mutex<Duration>,
    /// The number of calls that began.
    calls: AtomicUsize,
    /// Whether nobody can connect to the host.
    is_closed: AtomicBool,
}

#[async_trait]
impl SendPush for Hooks {
    async fn post(&self, delivery: &PushDelivery) -> Result<(), PushDeliveryError> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let takes = *self.takes.lock().unwrap();
        tokio::time::sleep(takes).await;
        if self.is_closed.load(Ordering::Relaxed) {
            return Err(PushDeliveryError::Unconnected("refused".to_owned()));
        }
        if let Some(status) = self.answers.lock().unwrap().pop_front() {
            return Err(PushDeliveryError::Status(status));
        }
        self.got.lock().unwrap().push(delivery.clone());
        Ok(())
    }
}

/// An engine, and the worker that delivers its events to webhooks.
struct PushFixture {
    engine: Engine,
    dispatcher: PushDispatcher,
    store: MemoryStore,
    hooks: Arc<Hooks>,
    line: Arc<FakeQueue<PushItem>>,
    clock: Arc<dyn Clock>,
}

impl PushFixture {
    fn new() -> Self {
        let policy = Policy {
            secrets: SecretKeys::from_keys([b"a secret of this test".to_vec()]),
            ..Policy::default()
        };
        let store = MemoryStore::new();
        let services = Services {
            push: true,
            brakes: Some(Brakes::new(store.table.clone())),
            ..services(&store)
        };
        let clock = services.clock.clone();
        let agent = Agent::builder("test").skill(Teller).build().unwrap();
        let line = Arc::new(FakeQueue::default());
        let hooks = Arc::new(Hooks::default());
        let engine =
            Engine::new(Arc::new(agent), services, policy.clone()).with_push_queue(line.clone());
        let outgoing = PushServices {
            deliveries: store.records.deliveries(),
            queue: line.clone(),
            webhooks: hooks.clone(),
            clock: clock.clone(),
            ids: Arc::new(RandomIds),
        };
        let dispatcher = PushDispatcher::new(outgoing, policy);
        Self {
            engine,
            dispatcher,
            store,
            hooks,
            line,
            clock,
        }
    }

    /// The deliveries of the same records, with these hooks in front of the table.
    fn behind(&self, hooks: impl TableHooks + 'static) -> Deliveries {
        let table = TableLayer::new(self.store.table.clone(), hooks);
        Records::new(table).deliveries()
    }

    async fn say(&self, task: Option<&TaskId>, text: &str, push: Option<PushOffer>) -> Task {
        self.say_under(None, task, text, push).await
    }

    /// Sends a message. `new` is a client-made id for a new task.
    async fn say_under(
        &self,
        new: Option<&TaskId>,
        task: Option<&TaskId>,
        text: &str,
        push: Option<PushOffer>,
    ) -> Task {
        let mut command = send_command(text, SendMode::Blocking);
        command.message.task_id = task.cloned();
        command.client_task_id = new.cloned();
        command.push = push;
        sent_task(&self.engine, &ann(), command).await
    }

    async fn create(&self, task: &TaskId, offer: PushOffer) -> Result<PushConfig, A2aError> {
        let command = CreatePush {
            task: task.clone(),
            offer,
        };
        let created = self.engine.pushes.create_push(&ann(), &command).await;
        created.map_err(|error| error.a2a_error)
    }

    async fn record(&self, task: &TaskId) -> TaskRecord {
        let owner = owner();
        let now = self.clock.now();
        self.store
            .records
            .load(&owner, task, now)
            .await
            .unwrap()
            .unwrap()
    }

    async fn push(&self, task: &TaskId) -> PushRecord {
        let owner = owner();
        self.store
            .records
            .pushes(&owner, task)
            .await
            .unwrap()
            .remove(0)
    }

    /// A push queue message for one push config.
    async fn item(&self, task: &TaskId, config: &str) -> PushItem {
        PushItem {
            owner: owner(),
            task: task.clone(),
            incarnation: self.record(task).await.incarnation.clone(),
            config: PushId::parse(config).unwrap(),
        }
    }

    /// Delivers for one push config, as if its message had arrived.
    async fn deliver(&self, task: &TaskId, config: &str) -> Ack {
        let item = self.item(task, config).await;
        self.dispatcher.deliver(&item, None).await
    }

    /// Delivers each message that the one before it has sent, as Lambda does, until none
    /// follows; returns how many there were.
    async fn chain(&self, task: &TaskId) -> usize {
        let item = self.item(task, "a").await;
        self.line.items.lock().unwrap().clear();
        for messages in 1..=5_000 {
            // The timeout of the function `push`.
            let end = self.clock.now().plus(Duration::from_secs(60));
            let ack = self.dispatcher.deliver(&item, Some(end)).await;
            assert_eq!(ack, Ack::Delete);
            if self.line.items.lock().unwrap().pop().is_none() {
                return messages;
            }
            tokio::time::advance(self.last_wait()).await;
        }
        panic!("the chain has no end");
    }

    fn calls(&self) -> usize {
        self.hooks.calls.load(Ordering::Relaxed)
    }

    /// The delay of the last push queue message.
    fn last_wait(&self) -> Duration {
        *self.line.waits.lock().unwrap().last().unwrap()
    }

    /// The ids of the events the webhooks got.
    fn got(&self) -> Vec<String> {
        let got = self.hooks.got.lock().unwrap();
        got.iter().map(|delivery| delivery.id.to_string()).collect()
    }

    async fn logged(&self, task: &TaskId) -> Vec<String> {
        let record = self.record(task).await;
        record
            .log
            .iter()
            .map(|event| event.id.to_string())
            .collect()
    }

    async fn is_open(&self, task: &TaskId) -> bool {
        open_tasks(&self.store).await.contains(&OpenTask {
            owner: owner(),
            task: task.clone(),
        })
    }

    async fn sweep(&self) -> SweepReport {
        let leases = crate::engine::Leases::Respect;
        let turns = FakeQueue::default();
        let swept = self.engine.sweeper.sweep(&turns, leases);
        swept.await.unwrap()
    }
}

fn hook(id: &str) -> PushOffer {
    PushOffer {
        at: "configuration.taskPushNotificationConfig".to_owned(),
        id: Some(PushId::parse(id).unwrap()),
        url: "https://hook.example/x".to_owned(),
        token: Some(Secret::new("canary-token")),
        schemes: vec!["Bearer".to_owned()],
        credentials: Some(Secret::new("canary-credentials")),
        generation: Generation::V10,
        signs: false,
    }
}

#[tokio::test(start_paused = true)]
async fn webhook_sent_with_a_message_gets_every_event_once_in_order() {
    let fixture = PushFixture::new();
    let task = fixture.say(None, "talk", Some(hook("a"))).await;
    assert_eq!(task.status.state, TaskState::Completed);
    let image = TaskImage::of(&fixture.record(&task.id).await);
    assert_eq!(
        crate::engine::relay_pushes(&*fixture.line, &[image]).await,
        0
    );
    let sent = fixture.line.items.lock().unwrap().remove(0);
    assert_eq!((sent.config.as_str(), &sent.task), ("a", &task.id));
    assert!(
        fixture.is_open(&task.id).await,
        "the webhook has not got the end"
    );
    for _ in 0..2 {
        assert_eq!(fixture.deliver(&task.id, "a").await, Ack::Delete);
        assert_eq!(fixture.got(), fixture.logged(&task.id).await);
    }
    assert!(fixture.got().len() >= 4, "{:?}", fixture.got());
    assert!(
        !fixture.is_open(&task.id).await,
        "the end has been confirmed"
    );
    let last: Vec<bool> = fixture
        .hooks
        .got
        .lock()
        .unwrap()
        .iter()
        .map(|delivery| matches!(delivery.frame, Frame::Event { last: true, .. }))
        .collect();
    let end = last.len() - 1;
    assert!(last[end] && !last[..end].contains(&true), "{last:?}");
    let delivery = fixture.hooks.got.lock().unwrap().remove(0);
    assert_eq!(delivery.token.unwrap().expose(), "canary-token");
    assert_eq!(delivery.credentials.unwrap().expose(), "canary-credentials");
    assert_eq!(delivery.scheme.as_deref(), Some("Bearer"));
    let kept = format!("{:?}", fixture.push(&task.id).await);
    assert!(!kept.contains("canary"), "{kept}");
}

#[tokio::test(start_paused = true)]
async fn event_logged_during_a_delivery_is_sent_by_the_same_worker() {
    let fixture = PushFixture::new();
    let task = fixture.say(None, "ask", Some(hook("a"))).await;
    *fixture.hooks.takes.lock().unwrap() = Duration::from_secs(2);
    let before = fixture.logged(&task.id).await.len();
    let news = async {
        // During the last call a new event is logged, and its message arrives.
        let calls = Duration::from_secs(2) * u32::try_from(before).unwrap();
        tokio::time::sleep(calls - Duration::from_secs(1)).await;
        fixture.say(Some(&task.id), "blue", None).await;
        assert_eq!(fixture.deliver(&task.id, "a").await, Ack::Delete);
        assert_eq!(fixture.calls(), before, "one worker at a time");
    };
    let (ack, ()) = tokio::join!(fixture.deliver(&task.id, "a"), news);
    assert_eq!(ack, Ack::Delete);
    let all = fixture.logged(&task.id).await;
    assert!(all.len() > before);
    assert_eq!(fixture.got(), all);
}

#[tokio::test(start_paused = true)]
async fn events_of_a_dead_worker_are_sent_after_its_lease() {
    let fixture = PushFixture::new();
    let task = fixture.say(None, "talk", Some(hook("a"))).await;
    *fixture.hooks.takes.lock().unwrap() = Duration::from_secs(2);
    let dies = Duration::from_secs(3);
    let dead = tokio::time::timeout(dies, fixture.deliver(&task.id, "a")).await;
    assert!(dead.is_err() && fixture.got().len() == 1);
    // Its lease counts from the last event that the webhook accepted.
    tokio::time::advance(LEASE - Duration::from_millis(1_001)).await;
    assert_eq!(fixture.deliver(&task.id, "a").await, Ack::Delete);
    assert_eq!(fixture.calls(), 2);
    tokio::time::advance(Duration::from_millis(1)).await;
    assert_eq!(fixture.deliver(&task.id, "a").await, Ack::Delete);
    assert_eq!(fixture.got(), fixture.logged(&task.id).await);
}

/// Takes 15 s to store the progress of a delivery.
#[derive(Debug)]
struct Slow;

#[async_trait]
impl TableHooks for Slow {
    async fn write(&self, table: &dyn Table, write: Write) -> Result<WriteResult, StoreError> {
        if notes_delivery(&write) {
            tokio::time::sleep(Duration::from_secs(15)).await;
        }
        table.write(write).await
    }
}

/// Whether a write stores the progress of a delivery: a lease alone sets no cursor.
fn notes_delivery(write: &Write) -> bool {
    let sets_cursor =
        |change: &ItemChange| matches!(change, ItemChange::Set(path, _) if path.name == "cursor");
    write
        .statements
        .iter()
        .any(|statement| match &statement.action {
            Action::Update(changes) => changes.iter().any(sets_cursor),
            _ => false,
        })
}

#[tokio::test(start_paused = true)]
async fn no_call_starts_without_enough_lease_to_store_its_result() {
    let mut fixture = PushFixture::new();
    fixture.dispatcher.to.deliveries = fixture.behind(Slow);
    let task = fixture.say(None, "talk", Some(hook("a"))).await;
    assert_eq!(fixture.deliver(&task.id, "a").await, Ack::Delete);
    assert_eq!(fixture.calls(), 1, "15 s of the lease are left");
    assert_eq!(fixture.push(&task.id).await.delivery.lease, None);
    assert_eq!(
        fixture.last_wait(),
        Duration::ZERO,
        "another worker continues"
    );
    assert_eq!(fixture.line.items.lock().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_webhook_of_an_older_generation_gets_the_task_as_of_each_event() {
    for generation in [Generation::V03, Generation::V01] {
        let fixture = PushFixture::new();
        let offer = PushOffer {
            generation,
            ..hook("a")
        };
        let task = fixture.say(None, "done", Some(offer)).await;
        fixture.deliver(&task.id, "a").await;
        let got = fixture.hooks.got.lock().unwrap();
        let states: Vec<TaskState> = got
            .iter()
            .map(|delivery| match &delivery.frame {
                Frame::Task(task) => task.status.state,
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(states.first(), Some(&TaskState::Working));
        assert_eq!(states.last(), Some(&TaskState::Completed));
        let (media, body) = a2a_lambda_wire::push_payload(generation, &got[0].frame).unwrap();
        assert_eq!(media, "application/json");
        let body: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(body["id"], task.id.as_str());
        assert_eq!(body.get("kind").is_some(), generation == Generation::V03);
    }
}

#[tokio::test(start_paused = true)]
async fn large_bytes_are_left_out_of_a_delivery() {
    let stored = crate::task::Blob {
        key: "v1/x".to_owned(),
        size: 9,
        sha256: "ab".repeat(32),
        upload: None,
    };
    let mut part = Part::new(PartContent::Stored(stored));
    leave_out(&mut part);
    let expected = format!("urn:sha256:{}", "ab".repeat(32));
    assert_eq!(part.content, PartContent::Url(expected));
    assert_eq!(part.metadata[TRUNCATED], true);
}

/// Refuses the read of a task that follows a lease: that of its content, which the function
/// `push` may not read in the bucket.
#[derive(Debug, Default)]
struct Shut(AtomicBool);

#[async_trait]
impl TableHooks for Shut {
    async fn get(&self, table: &dyn Table, keys: &[Key]) -> Result<Vec<Item>, StoreError> {
        if self.0.load(Ordering::SeqCst) && reads(keys, ItemKind::Task) {
            return Err(StoreError::Refused("an item names an object".to_owned()));
        }
        table.get(keys).await
    }

    async fn write(&self, table: &dyn Table, write: Write) -> Result<WriteResult, StoreError> {
        let leases = writes(&write, ItemKind::Delivery) && !notes_delivery(&write);
        self.0.store(leases, Ordering::SeqCst);
        table.write(write).await
    }
}

#[tokio::test(start_paused = true)]
async fn task_with_content_in_the_bucket_is_pushed_without_it() {
    for generation in [Generation::V10, Generation::V03] {
        let mut fixture = PushFixture::new();
        fixture.dispatcher.to.deliveries = fixture.behind(Shut::default());
        let offer = PushOffer {
            generation,
            ..hook("a")
        };
        let task = fixture.say(None, "done", Some(offer)).await;
        assert_eq!(fixture.deliver(&task.id, "a").await, Ack::Delete);
        assert_eq!(fixture.got(), fixture.logged(&task.id).await);
        let last = fixture.hooks.got.lock().unwrap().pop().unwrap();
        if let Frame::Task(reported) = last.frame {
            assert_eq!(reported.status.state, TaskState::Completed);
            assert_eq!(reported.metadata[TRUNCATED], true);
        }
        assert!(!fixture.is_open(&task.id).await);
    }
}

#[tokio::test(start_paused = true)]
async fn a_braked_delivery_waits_for_the_lift_and_is_no_attempt() {
    let skill = SkillId::parse("teller").unwrap();
    let tenant = owner().tenant;
    let targets = [
        BrakeTarget::Everything,
        BrakeTarget::Tenant(tenant),
        BrakeTarget::Skill(skill),
    ];
    for target in targets {
        let fixture = PushFixture::new();
        let brakes = Brakes::new(fixture.store.table.clone());
        let brake = async |is_set| {
            let now = fixture.clock.now();
            brakes.change(&target, is_set, now).await.unwrap();
        };
        let engine = &fixture.engine;
        let sweep = async || {
            tokio::time::advance(Duration::from_secs(300)).await;
            let turns = FakeQueue::default();
            let swept = engine
                .sweeper
                .sweep(&turns, crate::engine::Leases::Respect)
                .await;
            swept.unwrap().pushed
        };
        let task = fixture.say(None, "talk", Some(hook("a"))).await;
        *fixture.hooks.takes.lock().unwrap() = Duration::from_secs(2);
        let operator = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            brake(true).await;
        };
        // It reads the brake again behind the third event.
        let (ack, ()) = tokio::join!(fixture.deliver(&task.id, "a"), operator);
        assert_eq!((ack, fixture.calls()), (Ack::Delete, 3), "{target}");
        assert_eq!((sweep().await, fixture.calls()), (0, 3), "{target}");
        let progress = fixture.push(&task.id).await.delivery;
        assert_eq!((progress.attempts, progress.lease), (0, None), "{target}");
        assert_eq!(fixture.deliver(&task.id, "a").await, Ack::Delete);
        assert_eq!(fixture.calls(), 3, "{target}");
        brake(false).await;
        assert_eq!(sweep().await, 1, "{target}");
        fixture.deliver(&task.id, "a").await;
        assert_eq!(fixture.got(), fixture.logged(&task.id).await, "{target}");
    }
}
