//! The ends of turns with a store that is unavailable, or with lost races for the
//! thread.

use crate::engine::CallBudget;
use crate::engine::doubles::{START, ann, clock, owner, send_command, services_over};
use crate::engine::{Clock, Engine, Policy, Services};
use crate::prelude::*;
use crate::store::contract::noise;
use crate::store::keys::Key;
use crate::store::memory::MemoryStore;
use crate::store::queue::{Ack, Receipt, WorkItem};
use crate::store::records::Records;
use crate::store::table::{
    ConditionCheck, Item, Query, QueryPage, Range, Table, Value, Write, WriteResult,
};
use crate::store::{BlobOwner, Blobs, StoreError, ThreadRecord, ThreadWrite, keys};
use crate::task::{
    A2aError, ContextId, SendMode, SendResponse, TaskId, TaskRecord, TaskState, Timestamp, WriteId,
};
use crate::testing::{
    BlobHooks, BlobLayer, ItemKind, TableHooks, TableLayer, TestClock, reads, writes,
};
use async_trait::async_trait;
use bytes::Bytes;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Threads that can be unavailable, or in which others are faster.
#[derive(Debug, Default)]
struct Threads {
    store: MemoryStore,
    away: AtomicBool,
    /// Whether the table's TTL removes the thread before its next write.
    cleans: AtomicBool,
    /// How often a whole thread was read.
    reads: AtomicU64,
    /// How many times another write comes before the next one.
    others: AtomicU64,
    /// How many writes fail: without effect, or with a lost response.
    spoilt: AtomicU64,
    /// Whether a write that fails is stored.
    stores: AtomicBool,
    /// The next write of a thread is stored, but reports a lost race.
    unheard: AtomicBool,
    /// Whether tasks cannot be read.
    tasks_away: AtomicBool,
    /// The tasks whose content was read.
    contents: Mutex<Vec<String>>,
}

fn away() -> StoreError {
    StoreError::Unavailable("away".to_owned())
}

impl Threads {
    /// Makes a write, unless it has to fail.
    async fn written(&self, table: &dyn Table, write: Write) -> Result<WriteResult, StoreError> {
        let left = self.spoilt.load(Ordering::SeqCst);
        if left == 0 {
            return table.write(write).await;
        }
        self.spoilt.store(left - 1, Ordering::SeqCst);
        if self.stores.load(Ordering::SeqCst) {
            table.write(write).await?;
            return Err(StoreError::Unavailable("no answer".to_owned()));
        }
        Err(StoreError::Contended("TransactionConflict".to_owned()))
    }

    /// The write of another task of the context.
    async fn another(&self) {
        let left = self.others.load(Ordering::SeqCst);
        if left == 0 {
            return;
        }
        self.others.store(left - 1, Ordering::SeqCst);
        let records = &self.store.records;
        let found = records.load_thread(&owner(), &context()).await.unwrap();
        let at = Timestamp::from_millis(1_700_000_000_000);
        let mut record = found.unwrap_or_else(|| ThreadRecord::new(owner(), context(), at, at));
        let expect = record.version;
        record.version += 1;
        record.state_version = record.version;
        record.expires_at = at.plus(Duration::from_secs(86_400));
        record.state_expires_at = at.plus(Duration::from_secs(3600));
        let write = WriteId::made_of(u128::from(left));
        let other = ThreadWrite {
            record,
            expect,
            write,
        };
        assert!(records.put_thread(&other).await.unwrap());
    }

    /// Removes the thread, as the table's TTL does.
    async fn clean(&self) -> Result<(), StoreError> {
        let records = &self.store.records;
        if let Some(left) = records.load_thread(&owner(), &context()).await? {
            records.remove_thread(&left).await?;
        }
        Ok(())
    }
}

#[async_trait]
impl TableHooks for Threads {
    async fn get(&self, table: &dyn Table, keys: &[Key]) -> Result<Vec<Item>, StoreError> {
        let threads_away = self.away.load(Ordering::SeqCst) && reads(keys, ItemKind::Thread);
        let tasks_away = self.tasks_away.load(Ordering::SeqCst) && reads(keys, ItemKind::Task);
        if threads_away || tasks_away {
            return Err(away());
        }
        table.get(keys).await
    }

    async fn query(&self, table: &dyn Table, query: &Query) -> Result<QueryPage, StoreError> {
        let partition = query.partition.key();
        let reads_thread = matches!(
            &query.range,
            Range::Between(Value::Text(first), _) if first == keys::META
        );
        if reads_thread && self.away.load(Ordering::SeqCst) {
            return Err(away());
        }
        self.reads.fetch_add(reads_thread.into(), Ordering::SeqCst);
        if keys::task_key_of(partition).is_some() {
            self.contents.lock().unwrap().push(partition.to_owned());
        }
        table.query(query).await
    }

    async fn write(&self, table: &dyn Table, write: Write) -> Result<WriteResult, StoreError> {
        if !writes(&write, ItemKind::Thread) {
            return table.write(write).await;
        }
        let (count, is_alone) = (write.statements.len(), !writes(&write, ItemKind::Task));
        self.another().await;
        if is_alone && self.cleans.swap(false, Ordering::SeqCst) {
            self.clean().await?;
        }
        let outcome = self.written(table, write).await?;
        if is_alone && self.unheard.swap(false, Ordering::SeqCst) {
            return Ok(WriteResult::Refused(vec![
                ConditionCheck::Failed(None);
                count
            ]));
        }
        Ok(outcome)
    }
}

/// Counts the files that are stored.
#[derive(Default)]
struct Counted {
    puts: AtomicU64,
}

#[async_trait]
impl BlobHooks for Counted {
    async fn put_for(
        &self,
        blobs: &dyn Blobs,
        owner: &BlobOwner,
        key: &str,
        bytes: Bytes,
    ) -> Result<(), StoreError> {
        self.puts.fetch_add(1, Ordering::SeqCst);
        blobs.put_for(owner, key, bytes).await
    }
}

/// Keeps something in its thread and makes a file.
#[skill(id = "keeper", tags = ["test"], input_modes = ["text/plain"])]
struct Keeper(Arc<AtomicU64>);

impl SkillHandler for Keeper {
    type Input = String;
    type Output = String;

    async fn on_request(
        &self,
        cx: &mut TaskContext<'_>,
        input: String,
    ) -> AgentResult<OnRequestResult<String>> {
        self.0.fetch_add(1, Ordering::SeqCst);
        if input.starts_with("plain") {
            return OnRequestResult::done("plain".to_owned());
        }
        if input == "session" {
            let mut known = 0;
            for key in ["colour", "size", "colour"] {
                known += cx.load_session::<u32>(key).await?.unwrap_or_default();
            }
            cx.save_session("size", &(known + 1))?;
            return OnRequestResult::done(known.to_string());
        }
        cx.add_event(input.as_str())?;
        if input == "message" {
            let message = Content::from_text("kept");
            return Ok(OnRequestResult::Message { message });
        }
        if input == "refers" {
            cx.references().await?;
        }
        if input == "count" {
            let said = cx.thread().await?.iter().count();
            return OnRequestResult::done(said.to_string());
        }
        let file = Content::from_file("seven", "application/octet-stream", vec![7; 40_000]);
        Ok(OnRequestResult::Completed {
            message: Some(file),
            output: "done".to_owned(),
            artifacts: Vec::new(),
        })
    }
}

/// An agent with a thread that others change.
struct Contest {
    engine: Engine,
    layer: Arc<TableLayer<Threads>>,
    blobs: Arc<BlobLayer<Counted>>,
    runs: Arc<AtomicU64>,
}

impl Contest {
    fn new(others: u64) -> Self {
        let threads = Threads::default();
        threads.others.store(others, Ordering::SeqCst);
        let layer = TableLayer::new(threads.store.table.clone(), threads);
        Self::over(layer, Arc::new(clock()))
    }

    /// Another process over the same store.
    fn over(layer: Arc<TableLayer<Threads>>, clock: Arc<dyn Clock>) -> Self {
        let memory = layer.hooks.store.blobs.clone();
        let blobs = BlobLayer::new(memory.clone(), Counted::default());
        let runs = Arc::new(AtomicU64::default());
        let services = Services {
            clock,
            ..Services::new(
                Records::new(layer.clone()).with_blobs(memory),
                blobs.clone(),
            )
        };
        let keeper = Keeper(runs.clone());
        let agent = Agent::builder("test").skill(keeper).build().unwrap();
        Self {
            engine: Engine::new(Arc::new(agent), services, Policy::default()),
            layer,
            blobs,
            runs,
        }
    }

    async fn send(&self, text: &str, left: Option<Duration>) -> Result<SendResponse, A2aError> {
        let mut command = send_command(text, SendMode::Blocking);
        command.message.context_id = Some(context());
        if text == "refers" {
            let named = TaskId::made_of(1).to_string();
            command.message.reference_task_ids = vec![named];
        }
        let now = self.engine.reader.clock.now();
        let deadline = left.map(|left| now.plus(left));
        let sent = self
            .engine
            .send(&ann(), command, CallBudget::until(deadline))
            .await;
        sent.map_err(|error| error.a2a_error)
    }

    /// How many messages the skill sees in its thread.
    async fn reported(&self) -> String {
        let Ok(SendResponse::Task(task)) = self.send("count", None).await else {
            panic!("no task");
        };
        let artifacts = task.artifacts.unwrap_or_default();
        Artifact::from(artifacts[0].clone()).text().unwrap()
    }

    fn threads(&self) -> &Threads {
        &self.layer.hooks
    }

    async fn events(&self) -> usize {
        let found = self
            .threads()
            .store
            .records
            .load_thread(&owner(), &context())
            .await;
        found.unwrap().map_or(0, |thread| thread.state.events.len())
    }
}

fn context() -> ContextId {
    ContextId::parse("mine").unwrap()
}

/// Reads its thread, and fails if it cannot, unless the input is `anyway`.
#[skill(id = "recall", tags = ["test"], input_modes = ["text/plain"])]
async fn recall(cx: &mut TaskContext<'_>, input: String) -> AgentResult<String> {
    let read = cx.thread().await;
    if input == "anyway" {
        return Ok("read or not".to_owned());
    }
    read?;
    Ok("read".to_owned())
}

/// The receipt of the only queue message.
struct Only;

#[async_trait]
impl Receipt for Only {
    async fn hide(&self, _: Duration) -> Result<(), StoreError> {
        Ok(())
    }
}

/// An engine whose threads cannot be read.
struct OutageFixture {
    engine: Engine,
    layer: Arc<TableLayer<Threads>>,
}

impl OutageFixture {
    fn new() -> Self {
        let threads = Threads::default();
        threads.away.store(true, Ordering::SeqCst);
        let layer = TableLayer::new(threads.store.table.clone(), threads);
        let services = services_over(layer.clone());
        let agent = Agent::builder("test").skill(recall).build().unwrap();
        Self {
            engine: Engine::new(Arc::new(agent), services, Policy::default()),
            layer,
        }
    }

    async fn send(&self, text: &str, mode: SendMode) -> Result<SendResponse, A2aError> {
        let command = send_command(text, mode);
        let sent = self
            .engine
            .send(&ann(), command, CallBudget::default())
            .await;
        sent.map_err(|error| error.a2a_error)
    }

    async fn work(&self, task: &TaskId) -> (Ack, TaskRecord) {
        let records = &self.layer.hooks.store.records;
        let found = records.load(&owner(), task, Timestamp::default()).await;
        let item = WorkItem {
            owner: owner(),
            task: task.clone(),
            incarnation: found.unwrap().unwrap().incarnation.clone(),
            turn: 1,
            dispatch: u64::MAX,
        };
        let ack = self.engine.turns.work(&item, &Only, None).await;
        let now = Timestamp::default();
        let found = records.load(&owner(), task, now).await.unwrap();
        (ack, found.unwrap())
    }
}

#[tokio::test(start_paused = true)]
async fn an_unavailable_store_fails_no_task_that_reads_its_thread() {
    let fixture = OutageFixture::new();
    let Ok(SendResponse::Task(task)) = fixture.send("hi", SendMode::Immediate).await else {
        panic!("no task");
    };
    let (ack, record) = fixture.work(&task.id).await;
    // The turn is released, so its message is done.
    assert_eq!((ack, record.state()), (Ack::Delete, TaskState::Working));
    assert!(record.dispatch().is_some() && record.not_before.is_some());
    tokio::time::advance(Duration::from_secs(120)).await;
    fixture.layer.hooks.away.store(false, Ordering::SeqCst);
    let (ack, record) = fixture.work(&task.id).await;
    assert_eq!((ack, record.state()), (Ack::Delete, TaskState::Completed));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_cannot_read_its_thread_may_be_repeated() {
    let fixture = OutageFixture::new();
    // The second skill would catch the error and complete without the thread.
    for text in ["hi", "anyway"] {
        let sent = fixture.send(text, SendMode::Blocking).await;
        let is_away = matches!(sent, Err(A2aError::Unavailable { .. }));
        assert!(is_away, "{text}: {sent:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_skill_runs_once_however_often_others_write_its_thread() {
    for others in [1, 9, 25] {
        let contest = Contest::new(others);
        let sent = contest.send("task", None).await;
        let Ok(SendResponse::Task(task)) = sent else {
            panic!("{sent:?}");
        };
        assert_eq!(task.status.state, TaskState::Completed, "{others}");
        assert_eq!(contest.runs.load(Ordering::SeqCst), 1);
        assert_eq!(contest.events().await, 1);
        let puts = contest.blobs.hooks.puts.load(Ordering::SeqCst);
        assert_eq!(puts, 1, "a file is stored once");

        let contest = Contest::new(others);
        let sent = contest.send("message", None).await;
        assert!(matches!(sent, Ok(SendResponse::Message(_))), "{sent:?}");
        assert_eq!(contest.runs.load(Ordering::SeqCst), 1);
        assert_eq!(contest.events().await, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_loses_every_race_fails_and_is_not_repeated() {
    for left in [None, Some(Duration::from_secs(10))] {
        let contest = Contest::new(u64::MAX);
        let began = contest.engine.reader.clock.now();
        let sent = contest.send("task", left).await;
        let Ok(SendResponse::Task(task)) = sent else {
            panic!("{sent:?}");
        };
        assert_eq!(task.status.state, TaskState::Failed);
        let said = task.status.message.as_ref().unwrap();
        assert_eq!(said.metadata["a2a-lambda/errorCode"], "DEADLINE");
        assert_eq!(task.artifacts.unwrap().len(), 1, "it keeps its artifact");
        let puts = contest.blobs.hooks.puts.load(Ordering::SeqCst);
        assert_eq!(puts, 1, "a file is stored once");
        let took = contest.engine.reader.clock.now().since(began);
        assert!(took < left.unwrap_or(Duration::from_secs(21)), "{took:?}");
        assert_eq!(contest.runs.load(Ordering::SeqCst), 1);
        assert_eq!(contest.events().await, 0);
        // A reply that cannot be kept is not sent.
        let sent = contest.send("message", left).await;
        assert!(
            matches!(sent, Err(A2aError::Unavailable { .. })),
            "{sent:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn transaction_conflicts_in_a_thread_do_not_repeat_the_skill() {
    for text in ["task", "message"] {
        let contest = Contest::new(0);
        contest.threads().spoilt.store(17, Ordering::SeqCst);
        let sent = contest.send(text, None).await;
        match (text, sent) {
            ("task", Ok(SendResponse::Task(task))) => {
                assert_eq!(task.status.state, TaskState::Completed)
            }
            ("message", Ok(SendResponse::Message(_))) => {}
            (_, sent) => panic!("{sent:?}"),
        }
        assert_eq!(contest.runs.load(Ordering::SeqCst), 1);
        assert_eq!(contest.events().await, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_turn_with_only_transaction_conflicts_fails_and_is_not_repeated() {
    let contest = Contest::new(0);
    assert!(contest.send("task", None).await.is_ok());
    contest.threads().spoilt.store(u64::MAX, Ordering::SeqCst);
    let sent = contest.send("task", None).await;
    let Ok(SendResponse::Task(task)) = sent else {
        panic!("{sent:?}");
    };
    let said = task.status.message.as_ref().unwrap();
    assert_eq!(said.metadata["a2a-lambda/errorCode"], "DEADLINE");
    assert_eq!(contest.runs.load(Ordering::SeqCst), 2);
    assert_eq!(contest.events().await, 1);
}

#[tokio::test(start_paused = true)]
async fn a_final_commit_with_a_lost_response_is_not_repeated() {
    let contest = Contest::new(0);
    let store = contest.threads();
    // The context has its thread before.
    assert!(contest.send("task", None).await.is_ok());
    store.stores.store(true, Ordering::SeqCst);
    store.spoilt.store(1, Ordering::SeqCst);
    let sent = contest.send("task", None).await;
    // The engine does not repeat a request that the store has given up.
    assert!(
        matches!(sent, Err(A2aError::Unavailable { .. })),
        "{sent:?}"
    );
    assert_eq!(contest.runs.load(Ordering::SeqCst), 2);
    assert_eq!(contest.events().await, 2);
}

#[tokio::test(start_paused = true)]
async fn a_turn_reads_its_thread_state_once_for_all_session_values() {
    let contest = Contest::new(0);
    for reads in [2, 4] {
        let sent = contest.send("session", None).await;
        assert!(matches!(sent, Ok(SendResponse::Task(_))), "{sent:?}");
        // One read for what the turn loads, and one for what it changes.
        assert_eq!(contest.threads().reads.load(Ordering::SeqCst), reads);
    }
    let found = contest
        .threads()
        .store
        .records
        .load_thread(&owner(), &context())
        .await;
    let thread = found.unwrap().unwrap();
    assert_eq!(thread.state.session["size"], 2);
}

#[tokio::test(start_paused = true)]
async fn a_context_begins_anew_while_ttl_removes_its_old_thread() {
    let contest = Contest::new(0);
    assert!(contest.send("plain", None).await.is_ok());
    // The context has expired, and so has its tombstone.
    tokio::time::advance(Duration::from_secs(9 * 24 * 3600)).await;
    contest.threads().cleans.store(true, Ordering::SeqCst);
    assert!(contest.send("plain", None).await.is_ok());
    let found = contest
        .threads()
        .store
        .records
        .load_thread(&owner(), &context())
        .await;
    let thread = found.unwrap().unwrap();
    assert_eq!(thread.version, 1);
    assert!(thread.lives(contest.engine.reader.clock.now()));
}

#[tokio::test(start_paused = true)]
async fn an_event_stored_with_a_lost_response_is_in_the_thread_once() {
    let contest = Contest::new(0);
    contest.threads().unheard.store(true, Ordering::SeqCst);
    let sent = contest.send("message", None).await;
    assert!(matches!(sent, Ok(SendResponse::Message(_))), "{sent:?}");
    assert!(!contest.threads().unheard.load(Ordering::SeqCst));
    assert_eq!(contest.events().await, 1);
}

#[tokio::test(start_paused = true)]
async fn an_unavailable_store_fails_no_task_that_reads_references() {
    let contest = Contest::new(0);
    contest.threads().tasks_away.store(true, Ordering::SeqCst);
    let refused = contest.send("refers", None).await;
    assert!(
        matches!(refused, Err(A2aError::Unavailable { .. })),
        "{refused:?}"
    );
    contest.threads().tasks_away.store(false, Ordering::SeqCst);
    let sent = contest.send("refers", None).await;
    assert!(
        matches!(&sent, Ok(SendResponse::Task(task)) if task.status.state == TaskState::Completed),
        "{sent:?}"
    );
}

const MEGABYTE: usize = 1024 * 1024;

#[tokio::test(start_paused = true)]
async fn a_thread_includes_tasks_of_a_process_with_a_late_clock() {
    let contest = Contest::new(0);
    let late = Arc::new(TestClock::following(
        START.minus(Duration::from_secs(30)),
        1,
    ));
    let late = Contest::over(contest.layer.clone(), late);
    contest.send("first", None).await.unwrap();
    late.send("second", None).await.unwrap();
    // Three messages of each, and this message with its event.
    assert_eq!(contest.reported().await, "8");
}

#[tokio::test(start_paused = true)]
async fn a_thread_reads_no_more_than_it_shows() {
    let contest = Contest::new(0);
    let mut tasks = Vec::new();
    for seed in 0..4 {
        tokio::time::advance(Duration::from_secs(1)).await;
        let text = format!("plain {}", noise(seed, 3 * MEGABYTE));
        let Ok(SendResponse::Task(task)) = contest.send(&text, None).await else {
            panic!("no task");
        };
        tasks.push(task.id);
    }
    contest.threads().contents.lock().unwrap().clear();
    contest.reported().await;
    // The third of them is larger than what is left of 8 MB.
    let contents = contest.threads().contents.lock().unwrap();
    assert_eq!(contents.len(), 2);
    for (content, task) in contents.iter().zip(tasks.iter().rev()) {
        assert!(content.ends_with(task.as_str()), "{content}");
    }
}
