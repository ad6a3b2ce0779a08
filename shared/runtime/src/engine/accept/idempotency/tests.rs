//! Keyed sends over the memory store with a pause at each of its calls, and over
//! tokio's paused clock. A crash is a dropped future.

use super::request_hash;
use crate::auth::Caller;
use crate::engine::CallBudget;
use crate::engine::doubles::{FakeQueue, ann, open_tasks, owner, send_command, services_over};
use crate::engine::repeat::parts_hash;
use crate::engine::{Engine, Leases, Policy};
use crate::prelude::*;
use crate::store::keys::Key;
use crate::store::memory::MemoryStore;
use crate::store::queue::{Ack, Receipt, WorkItem};
use crate::store::table::{Item, Query, QueryPage, Table, Write, WriteResult};
use crate::store::{RecordQuery, StoreError};
use crate::task::{
    A2aError, Blob, ContextId, Frame, Generation, GetQuery, IdempotencyKey, Message, Owner, Part,
    PartContent, SendCommand, SendMode, SendResponse, Subject, Task, TaskId, TaskState, Timestamp,
};
use crate::testing::{ItemKind, TableHooks, TableLayer, committed_task, reads};
use async_trait::async_trait;
use futures::future::join_all;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

const MINUTE: Duration = Duration::from_secs(60);

/// Lets other futures run before and after every call, and can lose responses.
#[derive(Debug, Default)]
struct Halting {
    unheard: AtomicU32,
    /// Seconds by which the response of the next key lookup is late.
    late: AtomicU32,
}

impl Halting {
    async fn call<T>(&self, call: impl Future<Output = T>) -> T {
        tokio::task::yield_now().await;
        let done = call.await;
        tokio::task::yield_now().await;
        done
    }
}

#[async_trait]
impl TableHooks for Halting {
    async fn get(&self, table: &dyn Table, keys: &[Key]) -> Result<Vec<Item>, StoreError> {
        let found = self.call(table.get(keys)).await;
        if reads(keys, ItemKind::IdempotencyKey) {
            let late = self.late.swap(0, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_secs(late.into())).await;
        }
        found
    }

    async fn query(&self, table: &dyn Table, query: &Query) -> Result<QueryPage, StoreError> {
        self.call(table.query(query)).await
    }

    async fn write(&self, table: &dyn Table, write: Write) -> Result<WriteResult, StoreError> {
        if committed_task(&write).is_none() {
            return self.call(table.write(write)).await;
        }
        loop {
            let done = self.call(table.write(write.clone())).await?;
            let lost = |left: u32| left.checked_sub(1);
            let (set, fetched) = (Ordering::SeqCst, Ordering::SeqCst);
            // The SDK sends the request again.
            if self.unheard.fetch_update(set, fetched, lost).is_err() {
                return Ok(done);
            }
        }
    }
}

/// The receipt of a queue message that no other worker gets.
struct Only;

#[async_trait]
impl Receipt for Only {
    async fn hide(&self, _: Duration) -> Result<(), StoreError> {
        Ok(())
    }
}

type Starts = Arc<AtomicU32>;

async fn begin(starts: &Starts, text: &str) -> AgentResult<()> {
    starts.fetch_add(1, Ordering::SeqCst);
    if text.contains("slowly") {
        tokio::time::sleep(Duration::from_secs(3)).await;
    }
    if text.contains("badly") {
        return Err(AgentError::domain("BADLY", "it went badly"));
    }
    Ok(())
}

/// Makes a task, and asks a question if the input says so.
#[skill(id = "work", tags = ["test"], input_modes = ["text/plain"])]
struct Works(Starts);

#[derive(serde::Serialize, serde::Deserialize)]
struct Open;

impl SkillSlot for Open {}

impl SkillHandler<Open> for Works {
    type Input = String;
    type Output = String;

    async fn on_request(
        &self,
        _: &mut TaskContext<'_>,
        input: String,
    ) -> AgentResult<OnRequestResult<String, Open>> {
        begin(&self.0, &input).await?;
        if input == "ask" {
            return OnRequestResult::ask("which one?", Open);
        }
        OnRequestResult::done(format!("done: {input}"))
    }

    async fn on_input_received(
        &self,
        _: &mut TaskContext<'_>,
        _: Open,
        input: Content,
    ) -> AgentResult<OnInputResult<String, Open>> {
        begin(&self.0, input.text()?).await?;
        OnInputResult::ask("and then?", Open)
    }
}

/// Makes no task.
#[skill(id = "greet", tags = ["test"], input_modes = ["text/plain"])]
struct Greets(Starts);

impl SkillHandler for Greets {
    type Input = String;
    type Output = NoOutput;

    async fn on_request(
        &self,
        cx: &mut TaskContext<'_>,
        input: String,
    ) -> AgentResult<OnRequestResult<NoOutput>> {
        if input == "aloud" {
            cx.send_intermediate_update("hm").await?;
        }
        begin(&self.0, &input).await?;
        Ok(OnRequestResult::Message {
            message: Content::from_text("hello"),
        })
    }
}

/// An engine over a store that lets other futures run, and the number of its turns.
struct KeyedFixture {
    engine: Engine,
    store: MemoryStore,
    layer: Arc<TableLayer<Halting>>,
    starts: Starts,
}

impl KeyedFixture {
    fn new() -> Self {
        Self::with(Policy::default())
    }

    fn with(policy: Policy) -> Self {
        let starts = Starts::default();
        let agent = Agent::builder("test")
            .skill(Works(starts.clone()))
            .skill(Greets(starts.clone()))
            .build()
            .unwrap();
        let store = MemoryStore::new();
        let layer = TableLayer::new(store.table.clone(), Halting::default());
        Self {
            engine: Engine::new(Arc::new(agent), services_over(layer.clone()), policy),
            store,
            layer,
            starts,
        }
    }

    fn starts(&self) -> u32 {
        self.starts.load(Ordering::SeqCst)
    }

    async fn sent(&self, command: SendCommand) -> Result<SendResponse, A2aError> {
        let sent = self
            .engine
            .send(&ann(), command, CallBudget::default())
            .await;
        sent.map_err(|error| error.a2a_error)
    }

    async fn task(&self, command: SendCommand) -> Task {
        match self.sent(command).await.unwrap() {
            SendResponse::Task(task) => *task,
            SendResponse::Message(message) => panic!("{message:?}"),
        }
    }

    async fn frames(&self, command: SendCommand) -> Vec<Frame> {
        let (frames, mut shown) = tokio::sync::mpsc::unbounded_channel();
        let done = self
            .engine
            .stream(&ann(), command, CallBudget::default(), frames)
            .await;
        done.unwrap();
        let mut all = Vec::new();
        while let Some(frame) = shown.recv().await {
            all.push(frame);
        }
        all
    }

    /// The tasks that a sweep finds open.
    async fn open(&self) -> Vec<TaskId> {
        let open = open_tasks(&self.store).await;
        open.into_iter().map(|open| open.task).collect()
    }

    /// Lets a worker take over the only open task.
    async fn take_over(&self) -> Ack {
        let report = self
            .engine
            .sweeper
            .sweep(&FakeQueue::default(), Leases::Respect)
            .await
            .unwrap();
        assert_eq!(report.redispatched, 1);
        let task = self.open().await.remove(0);
        let now = Timestamp::default();
        let found = self.store.records.load(&owner(), &task, now).await;
        let item = WorkItem {
            owner: owner(),
            task,
            incarnation: found.unwrap().unwrap().incarnation.clone(),
            turn: 1,
            dispatch: 2,
        };
        self.engine.turns.work(&item, &Only, None).await
    }
}

fn say(skill: &str, text: &str, key: &str) -> SendCommand {
    let mut message = Message::from_user(text.len().to_string(), vec![Part::text(text)]);
    let skill_id = ("a2a-lambda/skillId".to_owned(), json!(skill));
    message.metadata = [skill_id].into_iter().collect();
    SendCommand {
        message,
        idempotency_key: IdempotencyKey::parse(key).ok(),
        ..send_command(text, SendMode::Blocking)
    }
}

fn answer(task: &Task, text: &str, key: &str) -> SendCommand {
    let mut command = say("work", text, key);
    command.message.metadata.clear();
    command.message.task_id = Some(task.id.clone());
    command
}

#[tokio::test(start_paused = true)]
async fn many_sends_under_one_key_start_one_turn_and_get_its_task() {
    let fixture = KeyedFixture::new();
    let keys = 1000;
    let sends = (0..keys).map(|key| {
        let fixture = &fixture;
        async move {
            let text = format!("n {key}");
            let name = format!("key {key}");
            let burst = || join_all((0..16).map(|_| fixture.task(say("work", &text, &name))));
            let mut tasks = burst().await;
            tasks.extend(burst().await);
            let first = tasks.remove(0);
            assert_eq!(first.status.state, TaskState::Completed);
            assert!(tasks.iter().all(|task| *task == first));
            first.id
        }
    });
    let ids: std::collections::BTreeSet<TaskId> = join_all(sends).await.into_iter().collect();
    assert_eq!(ids.len(), keys);
    assert_eq!(fixture.starts() as usize, keys);
}

#[tokio::test(start_paused = true)]
async fn a_reused_key_with_other_content_is_refused() {
    let fixture = KeyedFixture::new();
    fixture.task(say("work", "one", "k")).await;
    for command in [
        say("work", "other", "k"),
        say("greet", "one", "k"),
        SendCommand {
            client_task_id: TaskId::parse("mine").ok(),
            ..say("work", "one", "k")
        },
    ] {
        let refused = fixture.sent(command).await;
        assert_eq!(refused, Err(A2aError::IdempotencyKeyReused));
    }
    assert_eq!(fixture.starts(), 1);
    // Also when both arrive at the same time.
    let (one, other) = tokio::join!(
        fixture.sent(say("work", "one", "x")),
        fixture.sent(say("work", "other", "x"))
    );
    let refused = [one, other].into_iter().filter_map(Result::err);
    let refused: Vec<A2aError> = refused.collect();
    assert_eq!(refused, [A2aError::IdempotencyKeyReused]);
    assert_eq!(fixture.starts(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_key_belongs_to_its_caller() {
    let fixture = KeyedFixture::new();
    let mine = fixture.task(say("work", "one", "k")).await;
    let bob = Owner {
        subject: Subject::parse("bob").unwrap(),
        ..owner()
    };
    let bob = Caller::behind(&bob, None);
    let sent = fixture
        .engine
        .send(&bob, say("work", "other", "k"), CallBudget::default());
    let Ok(SendResponse::Task(his)) = sent.await else {
        panic!("no task")
    };
    assert_ne!(mine.id, his.id);
}

#[tokio::test(start_paused = true)]
async fn a_lost_response_of_the_keyed_write_starts_no_second_turn() {
    let fixture = KeyedFixture::new();
    fixture.layer.hooks.unheard.store(2, Ordering::SeqCst);
    let first = fixture.task(say("work", "one", "k")).await;
    let again = fixture.task(say("work", "one", "k")).await;
    assert_eq!(first, again);
    assert_eq!(fixture.starts(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_repeat_waits_for_the_turn_that_runs() {
    let fixture = KeyedFixture::new();
    let late = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let mut at_once = say("work", "slowly", "k");
        at_once.mode = SendMode::Immediate;
        let seen = fixture.task(at_once).await.status.state;
        (seen, fixture.task(say("work", "slowly", "k")).await)
    };
    let (first, (seen, repeat)) = tokio::join!(fixture.task(say("work", "slowly", "k")), late);
    assert_eq!(seen, TaskState::Working);
    assert_eq!(repeat, first);
    assert_eq!(first.status.state, TaskState::Completed);
}

#[tokio::test(start_paused = true)]
async fn a_repeated_stream_shows_the_task_and_its_end() {
    let fixture = KeyedFixture::new();
    let ends = |frames: &[Frame]| match frames.last() {
        Some(Frame::Task(task)) => Some(task.status.state),
        Some(Frame::Event { event, .. }) => match &event.event {
            crate::task::Event::Status(update) => Some(update.status.state),
            crate::task::Event::Artifact(_) => None,
        },
        _ => None,
    };
    let (first, repeat) = tokio::join!(
        fixture.frames(say("work", "slowly", "k")),
        fixture.frames(say("work", "slowly", "k"))
    );
    let late = fixture.frames(say("work", "slowly", "k")).await;
    for frames in [&first, &repeat, &late] {
        assert!(matches!(frames.first(), Some(Frame::Task(_))));
        assert_eq!(ends(frames), Some(TaskState::Completed), "{frames:?}");
    }
    assert_eq!(late.len(), 1);
    assert_eq!(fixture.starts(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_keyed_send_to_a_worker_is_queued_once() {
    let fixture = KeyedFixture::new();
    let command = || SendCommand {
        mode: SendMode::Immediate,
        ..say("work", "one", "k")
    };
    let (first, second) = tokio::join!(fixture.task(command()), fixture.task(command()));
    assert_eq!(first.id, second.id);
    assert_eq!(first.status.state, TaskState::Submitted);
    assert_eq!(fixture.open().await, [first.id]);
}

#[tokio::test(start_paused = true)]
async fn a_repeated_answer_gets_the_task_as_it_is_now() {
    let fixture = KeyedFixture::new();
    let task = fixture.task(say("work", "ask", "open")).await;
    let answers = join_all((0..16).map(|_| fixture.task(answer(&task, "this", "a")))).await;
    for asked in &answers {
        let says = asked.status.message.as_ref().unwrap();
        assert_eq!(says.parts, [Part::text("and then?")]);
        assert_eq!(asked.id, task.id);
    }
    assert_eq!(fixture.starts(), 2);
    // The task has continued. Repeats of the first answer and of the opening send get
    // it as it is now.
    let now = fixture.task(answer(&task, "that", "b")).await;
    assert_eq!(fixture.task(answer(&task, "this", "a")).await, now);
    assert_eq!(fixture.task(say("work", "ask", "open")).await, now);
    assert_eq!(fixture.starts(), 3);
    let reused = fixture.sent(answer(&task, "other", "a")).await;
    assert_eq!(reused, Err(A2aError::IdempotencyKeyReused));
}

#[tokio::test(start_paused = true)]
async fn a_repeat_is_not_refused_for_what_the_first_send_changed() {
    let fixture = KeyedFixture::new();
    let task = fixture.task(say("work", "ask", "open")).await;
    fixture.layer.hooks.late.store(1, Ordering::SeqCst);
    let (late, first) = tokio::join!(
        fixture.task(answer(&task, "slowly", "a")),
        fixture.task(answer(&task, "slowly", "a")),
    );
    assert_eq!(late, first);
    assert_eq!(late.status.state, TaskState::InputRequired);
    assert_eq!(fixture.starts(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_repeat_that_finds_the_task_before_its_key_still_waits() {
    let fixture = KeyedFixture::new();
    fixture.layer.hooks.late.store(1, Ordering::SeqCst);
    let command = || SendCommand {
        client_task_id: TaskId::parse("mine").ok(),
        generation: Generation::V01,
        ..say("work", "slowly", "k")
    };
    let (late, first) = tokio::join!(fixture.task(command()), fixture.task(command()));
    assert_eq!(late, first);
    assert_eq!(late.status.state, TaskState::Completed);
    assert_eq!(fixture.starts(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_key_whose_task_has_expired_is_new() {
    let ttl = Duration::from_secs(3600);
    let fixture = KeyedFixture::with(Policy {
        task_ttl: ttl,
        ..Policy::default()
    });
    let first = fixture.task(say("work", "one", "k")).await;
    tokio::time::advance(ttl).await;
    let second = fixture.task(say("work", "other", "k")).await;
    assert_ne!(first.id, second.id);
    assert_eq!(fixture.starts(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_keyed_send_to_a_message_skill_returns_its_completed_task() {
    let fixture = KeyedFixture::new();
    let tasks = join_all((0..16).map(|_| fixture.task(say("greet", "hi", "k")))).await;
    let first = &tasks[0];
    assert!(tasks.iter().all(|task| task == first));
    assert_eq!(first.status.state, TaskState::Completed);
    let reply = first.status.message.as_ref().unwrap();
    assert_eq!(reply.parts, [Part::text("hello")]);
    let frames = fixture.frames(say("greet", "hi", "k")).await;
    assert_eq!(frames, [Frame::Task(Box::new(first.clone()))]);
    assert_eq!(fixture.starts(), 1);
    let list = fixture.store.records.list(&owner(), &everything()).await;
    let ids: Vec<TaskId> = list
        .unwrap()
        .records
        .iter()
        .map(|it| it.id.clone())
        .collect();
    assert_eq!(ids, std::slice::from_ref(&first.id));
}

fn everything() -> RecordQuery {
    RecordQuery {
        context_id: None,
        state: None,
        status_after: None,
        after: None,
        limit: 10,
        count_limit: 10,
        now: Timestamp::default(),
    }
}

#[tokio::test(start_paused = true)]
async fn a_worker_makes_the_reply_after_the_first_send_died() {
    let fixture = KeyedFixture::new();
    let send = fixture.task(say("greet", "slowly", "k"));
    let died = tokio::time::timeout(Duration::from_secs(1), send).await;
    assert!(died.is_err());
    // No process makes the reply now.
    let early = fixture.task(say("greet", "slowly", "k")).await;
    assert_eq!(early.status.state, TaskState::Working);
    tokio::time::advance(2 * MINUTE).await;
    assert_eq!(fixture.take_over().await, Ack::Delete);
    let task = fixture.task(say("greet", "slowly", "k")).await;
    let reply = task.status.message.unwrap();
    assert_eq!(reply.parts, [Part::text("hello")]);
    assert_eq!(fixture.starts(), 2);
    assert_eq!(fixture.open().await, []);
}

#[tokio::test(start_paused = true)]
async fn a_message_skill_that_fails_or_sends_an_update_makes_a_task() {
    for (text, state) in [
        ("badly", TaskState::Failed),
        ("aloud", TaskState::Completed),
    ] {
        let fixture = KeyedFixture::new();
        let task = fixture.task(say("greet", text, "k")).await;
        assert_eq!(task.status.state, state);
        assert_eq!(fixture.task(say("greet", text, "k")).await, task);
        let query = GetQuery {
            id: task.id.clone(),
            history_length: 100,
        };
        let got = fixture.engine.reader().get(&ann(), &query).await.unwrap();
        assert_eq!(got, task);
        let frames = fixture.frames(say("greet", text, "stream")).await;
        assert!(matches!(frames.first(), Some(Frame::Task(_))), "{frames:?}");
        assert_eq!(fixture.starts(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_made_context_has_a_thread_once_it_has_a_task() {
    for (text, key, kept) in [
        ("quietly", "", false),
        ("quietly", "k", true),
        ("badly", "", true),
    ] {
        let fixture = KeyedFixture::new();
        let id = ContextId::parse("mine").unwrap();
        let mut command = say("greet", text, key);
        command.message.context_id = Some(id.clone());
        fixture.sent(command).await.unwrap();
        let thread = fixture
            .store
            .records
            .load_thread(&owner(), &id)
            .await
            .unwrap();
        assert_eq!(thread.is_some(), kept, "{text} {key}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_message_id_is_the_key_if_the_policy_says_so() {
    for (on, starts) in [(true, 1), (false, 2)] {
        let fixture = KeyedFixture::with(Policy {
            idempotent_message_id: on,
            ..Policy::default()
        });
        let first = fixture.task(say("work", "one", "")).await;
        let second = fixture.task(say("work", "one", "")).await;
        assert_eq!(first == second, on);
        let other = fixture.sent(say("work", "two", "")).await;
        assert_eq!(other == Err(A2aError::IdempotencyKeyReused), on);
        assert_eq!(fixture.starts(), starts + u32::from(!on));
        // An explicit key takes precedence over the message id.
        fixture.task(say("work", "one", "3")).await;
        assert_eq!(fixture.starts(), starts + 1 + u32::from(!on));
    }
}

#[test]
fn equal_contents_have_equal_hashes_wherever_their_bytes_are() {
    let bytes = bytes::Bytes::from_static(b"\x00\x01");
    let stored = PartContent::Stored(Blob {
        key: "v1/x".to_owned(),
        size: 2,
        sha256: hex::encode(<sha2::Sha256 as sha2::Digest>::digest(&bytes)),
        upload: None,
    });
    let raw = [Part::new(PartContent::Raw(bytes))];
    assert_eq!(parts_hash(&raw), parts_hash(&[Part::new(stored)]));

    let base = say("work", "one", "k");
    let same = SendCommand {
        idempotency_key: None,
        mode: SendMode::Immediate,
        history_length: 0,
        generation: Generation::V03,
        metadata: [(IdempotencyKey::METADATA.to_owned(), json!("k"))]
            .into_iter()
            .collect(),
        ..say("work", "one", "k")
    };
    let mut same_too = base.clone();
    same_too.message.id = "another".to_owned();
    for same in [same, same_too] {
        assert_eq!(request_hash(&base), request_hash(&same));
    }
}

#[test]
fn sends_that_ask_for_different_things_have_different_hashes() {
    let mut commands = vec![say("work", "one", "k"), say("greet", "one", "k")];
    let mut change = |change: &dyn Fn(&mut SendCommand)| {
        let mut command = say("work", "one", "k");
        change(&mut command);
        commands.push(command);
    };
    let task = TaskId::made_of(1);
    change(&|it| it.message.task_id = Some(task.clone()));
    change(&|it| it.client_task_id = Some(task.clone()));
    change(&|it| it.message.context_id = ContextId::parse(task.as_str()).ok());
    change(&|it| it.message.reference_task_ids = vec![task.to_string()]);
    change(&|it| it.message.parts.push(Part::text("")));
    change(&|it| it.message.parts = vec![Part::text("on"), Part::text("e")]);
    change(&|it| it.message.parts = vec![Part::new(PartContent::Data(json!("one")))]);
    change(&|it| it.message.parts = vec![Part::new(PartContent::Data(json!({"a": [1]})))]);
    change(&|it| it.message.parts = vec![Part::new(PartContent::Data(json!({"a": [[1]]})))]);
    change(&|it| it.message.parts = vec![Part::new(PartContent::Url("one".to_owned()))]);
    change(&|it| it.message.parts = vec![Part::new(PartContent::Raw("one".into()))]);
    change(&|it| it.message.parts[0].filename = Some("x".to_owned()));
    change(&|it| it.message.parts[0].media_type = Some("x".to_owned()));
    change(&|it| {
        let metadata = &mut it.message.parts[0].metadata;
        metadata.insert("a".to_owned(), json!(1));
    });
    change(&|it| {
        it.metadata.insert("a".to_owned(), json!(1));
    });
    change(&|it| {
        it.message.metadata.insert("a".to_owned(), json!(1));
    });
    let hashes: std::collections::BTreeSet<_> = commands.iter().map(request_hash).collect();
    assert_eq!(hashes.len(), commands.len());
}
