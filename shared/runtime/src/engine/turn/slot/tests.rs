//! Tests the running turns of a tenant, over the memory store and tokio's paused clock. A
//! crash is a dropped future.

use crate::auth::Caller;
use crate::engine::doubles::{
    FakeLimits, FakeQueue, ann, owner, send_command, sent_task, services, work_item,
};
use crate::engine::{CallBudget, Engine, EngineError, LimitPolicy, Policy};
use crate::prelude::*;
use crate::store::memory::MemoryStore;
use crate::store::queue::{Ack, WorkItem};
use crate::store::{ReadTasks as _, RecordQuery};
use crate::task::{
    A2aError, Frame, IdempotencyKey, Owner, SendCommand, SendMode, Subject, Task, TaskId,
    TaskRecord, TaskState, TenantId,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::sync::mpsc::unbounded_channel;

const SECOND: Duration = Duration::from_secs(1);

/// Sleeps for as many milliseconds as its input says, and counts its runs.
#[skill(id = "sleep", tags = ["test"], input_modes = ["text/plain"])]
struct Sleeper(Arc<AtomicU32>);

impl SkillHandler for Sleeper {
    type Input = String;
    type Output = String;

    async fn on_request(
        &self,
        _: &mut TaskContext<'_>,
        input: String,
    ) -> AgentResult<OnRequestResult<String>> {
        self.0.fetch_add(1, Ordering::SeqCst);
        let millis = input.parse().unwrap_or_default();
        tokio::time::sleep(Duration::from_millis(millis)).await;
        OnRequestResult::done("done".to_owned())
    }
}

struct SlotFixture {
    engine: Engine,
    limits: Arc<FakeLimits>,
    store: Arc<MemoryStore>,
    line: FakeQueue<WorkItem>,
    runs: Arc<AtomicU32>,
}

impl SlotFixture {
    /// An engine with this many turns for each tenant.
    fn with_slots(cap: u32) -> Self {
        let (runs, store) = (Arc::new(AtomicU32::new(0)), Arc::new(MemoryStore::new()));
        let limits = Arc::new(FakeLimits::default());
        let agent = Agent::builder("test").skill(Sleeper(runs.clone()));
        let policy = Policy {
            limits: LimitPolicy {
                turns_per_tenant: Some(cap),
                ..LimitPolicy::default()
            },
            ..Policy::default()
        };
        let services = services(store.clone(), &store);
        let engine = Engine::new(Arc::new(agent.build().unwrap()), services, policy);
        Self {
            engine: engine.with_limits(limits.clone()),
            limits,
            store,
            line: FakeQueue::default(),
            runs,
        }
    }

    async fn send(&self, millis: u64) -> Task {
        let command = send_command(&millis.to_string(), SendMode::Blocking);
        sent_task(&self.engine, &ann(), command).await
    }

    /// Queues a turn.
    async fn queued(&self, millis: u64) -> TaskId {
        let command = send_command(&millis.to_string(), SendMode::Immediate);
        sent_task(&self.engine, &ann(), command).await.id
    }

    async fn record(&self, id: &TaskId) -> TaskRecord {
        let now = self.engine.reader.clock.now();
        self.store.load(&owner(), id, now).await.unwrap().unwrap()
    }

    async fn work(&self, id: &TaskId) -> Ack {
        let item = work_item(&self.record(id).await);
        self.engine.work(&item, &self.line, None).await
    }

    /// All tasks of the caller.
    async fn tasks(&self) -> Vec<TaskRecord> {
        let query = RecordQuery {
            context_id: None,
            state: None,
            status_after: None,
            after: None,
            limit: 1000,
            count_limit: 1000,
            now: self.engine.reader.clock.now(),
        };
        let found = self.store.list(&owner(), &query).await;
        found.unwrap().records
    }

    fn calls(&self) -> u32 {
        self.limits.calls.load(Ordering::SeqCst)
    }

    fn runs(&self) -> u32 {
        self.runs.load(Ordering::SeqCst)
    }
}

#[tokio::test(start_paused = true)]
async fn a_short_send_asks_for_no_slot() {
    let fixture = SlotFixture::with_slots(1);
    assert_eq!(fixture.send(249).await.status.state, TaskState::Completed);
    assert_eq!(fixture.calls(), 0);
    assert_eq!(fixture.send(300).await.status.state, TaskState::Completed);
    assert_eq!(fixture.calls(), 2, "a longer one leases and frees its slot");
    assert_eq!(fixture.limits.leased(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_hundred_slow_sends_do_not_delay_another_tenant() {
    let fixture = SlotFixture::with_slots(10);
    let neighbour = Caller::behind(
        &Owner {
            tenant: TenantId::parse("other").unwrap(),
            subject: Subject::parse("bob").unwrap(),
        },
        None,
    );
    let clock = tokio::time::Instant::now();
    let quick = async {
        tokio::time::sleep(5 * SECOND).await;
        let command = send_command("500", SendMode::Blocking);
        let task = sent_task(&fixture.engine, &neighbour, command).await;
        (task.status.state, clock.elapsed())
    };
    let slow = futures::future::join_all((0..100).map(|_| fixture.send(24_000)));
    let (slow, (state, answered)) = tokio::join!(slow, quick);
    assert_eq!(state, TaskState::Completed);
    assert_eq!(answered, Duration::from_millis(5500));
    let ended = |state| slow.iter().filter(|it| it.status.state == state).count();
    assert_eq!(
        (ended(TaskState::Completed), ended(TaskState::Submitted)),
        (10, 90)
    );
    // The neighbour's turn ran beside the ten.
    assert_eq!(fixture.limits.most.load(Ordering::SeqCst), 10);
    assert_eq!(fixture.limits.leased(), 0, "every slot is free again");
}

#[tokio::test(start_paused = true)]
async fn a_turn_without_a_slot_is_completed_by_a_worker() {
    let fixture = SlotFixture::with_slots(1);
    let later = async {
        tokio::time::sleep(Duration::from_millis(1)).await;
        fixture.send(24_000).await
    };
    let (first, second) = tokio::join!(fixture.send(24_000), later);
    assert_eq!(first.status.state, TaskState::Completed);
    assert_eq!(second.status.state, TaskState::Submitted);
    let record = fixture.record(&second.id).await;
    assert_eq!(record.dispatch(), Some(1), "one write, with the intent");
    assert_eq!(fixture.runs(), 2);
    assert_eq!(fixture.work(&second.id).await, Ack::Delete);
    let done = fixture.record(&second.id).await;
    assert_eq!((done.state(), fixture.runs()), (TaskState::Completed, 3));
}

#[tokio::test(start_paused = true)]
async fn a_blocking_caller_waits_for_the_worker_of_its_queued_turn() {
    let fixture = SlotFixture::with_slots(1);
    let worker = async {
        tokio::time::sleep(12 * SECOND).await;
        let tasks = fixture.tasks().await;
        let queued = tasks.iter().find(|it| it.state() == TaskState::Submitted);
        assert_eq!(fixture.work(queued.unwrap().id()).await, Ack::Delete);
    };
    let ((first, second), ()) = tokio::join!(
        async { tokio::join!(fixture.send(10_000), fixture.send(5_000)) },
        worker
    );
    assert_eq!(first.status.state, TaskState::Completed);
    assert_eq!(second.status.state, TaskState::Completed);
}

#[tokio::test(start_paused = true)]
async fn a_freed_slot_is_used_again() {
    let fixture = SlotFixture::with_slots(1);
    for _ in 0..3 {
        assert_eq!(fixture.send(1000).await.status.state, TaskState::Completed);
    }
    let id = fixture.queued(1000).await;
    assert_eq!(fixture.work(&id).await, Ack::Delete);
    assert_eq!(fixture.send(1000).await.status.state, TaskState::Completed);
}

#[tokio::test(start_paused = true)]
async fn a_worker_without_a_slot_waits_longer_each_time() {
    let fixture = SlotFixture::with_slots(1);
    let (busy, waits) = (fixture.queued(3_600_000).await, fixture.queued(0).await);
    let holder = fixture.work(&busy);
    let waiter = async {
        tokio::time::sleep(SECOND).await;
        let mut pauses = Vec::new();
        for _ in 0..5 {
            fixture.line.hidden.lock().unwrap().clear();
            assert_eq!(fixture.work(&waits).await, Ack::Keep);
            let pause = *fixture.line.hidden.lock().unwrap().last().unwrap();
            pauses.push(pause.as_secs());
            tokio::time::sleep(pause).await;
        }
        assert_eq!(pauses, [5, 6, 12, 24, 48]);
    };
    tokio::select! {
        _ = holder => panic!("the turn of the holder has ended"),
        () = waiter => {}
    }
    let record = fixture.record(&waits).await;
    assert_eq!(
        (record.attempt(), record.state()),
        (0, TaskState::Submitted)
    );
}

#[tokio::test(start_paused = true)]
async fn messages_of_a_long_wait_do_not_add_up() {
    let fixture = SlotFixture::with_slots(1);
    let (busy, waits) = (fixture.queued(3_600_000).await, fixture.queued(0).await);
    let holder = fixture.work(&busy);
    let waiter = async {
        tokio::time::sleep(400 * SECOND).await;
        let mut kept = 0;
        for _ in 0..100 {
            kept += u32::from(fixture.work(&waits).await == Ack::Keep);
        }
        assert!((10..90).contains(&kept), "kept {kept} of 100");
    };
    tokio::select! {
        _ = holder => panic!("the turn of the holder has ended"),
        () = waiter => {}
    }
    assert!(fixture.record(&waits).await.dispatch().is_some());
}

#[tokio::test(start_paused = true)]
async fn the_slot_of_a_dead_worker_returns_after_its_lease() {
    let fixture = SlotFixture::with_slots(1);
    let (dies, waits) = (fixture.queued(600_000).await, fixture.queued(0).await);
    let dying = tokio::time::timeout(30 * SECOND, fixture.work(&dies));
    assert!(dying.await.is_err(), "the worker did not die");
    assert_eq!(fixture.work(&waits).await, Ack::Keep);
    tokio::time::sleep(91 * SECOND).await;
    assert_eq!(fixture.work(&waits).await, Ack::Delete);
    assert_eq!(fixture.record(&waits).await.state(), TaskState::Completed);
}

#[tokio::test(start_paused = true)]
async fn a_long_turn_keeps_its_slot() {
    let fixture = SlotFixture::with_slots(1);
    let (long, waits) = (fixture.queued(600_000).await, fixture.queued(0).await);
    let other = async {
        tokio::time::sleep(280 * SECOND).await;
        assert_eq!(fixture.work(&waits).await, Ack::Keep);
    };
    let (ack, ()) = tokio::join!(fixture.work(&long), other);
    assert_eq!(ack, Ack::Delete);
    assert_eq!(fixture.limits.leased(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_blocked_tenant_is_refused_before_anything_is_written() {
    let fixture = SlotFixture::with_slots(1);
    let id = fixture.queued(0).await;
    fixture.limits.blocked.store(true, Ordering::SeqCst);
    let command = send_command("1000", SendMode::Blocking);
    let caller = ann();
    let refused = fixture.engine.send(&caller, command, CallBudget::default());
    let EngineError { refusal, .. } = refused.await.unwrap_err();
    assert_eq!(refusal, A2aError::Forbidden);
    assert_eq!(fixture.runs(), 1);
    let stored = fixture.tasks().await.len();
    assert_eq!(stored, 1, "only the queued task is stored");
    let _kept_or_left_to_the_sweep = fixture.work(&id).await;
    let record = fixture.record(&id).await;
    assert_eq!(
        (record.attempt(), record.state()),
        (0, TaskState::Submitted)
    );
}

#[tokio::test(start_paused = true)]
async fn turns_run_while_the_limits_do_not_answer() {
    let fixture = SlotFixture::with_slots(1);
    fixture.limits.down.store(true, Ordering::SeqCst);
    let (first, second) = tokio::join!(fixture.send(1000), fixture.send(1000));
    assert_eq!(first.status.state, TaskState::Completed);
    assert_eq!(second.status.state, TaskState::Completed);
    let id = fixture.queued(1000).await;
    assert_eq!(fixture.work(&id).await, Ack::Delete);
}

#[tokio::test(start_paused = true)]
async fn a_stream_without_a_slot_shows_the_submitted_task() {
    let fixture = SlotFixture::with_slots(1);
    let (sender, mut frames) = unbounded_channel();
    let caller = ann();
    let stream = async {
        tokio::time::sleep(SECOND).await;
        let command = send_command("1000", SendMode::Blocking);
        let budget = CallBudget::default();
        fixture
            .engine
            .stream(&caller, command, budget, sender)
            .await
    };
    let (_, streamed) = tokio::join!(fixture.send(20_000), stream);
    streamed.unwrap();
    let Some(Frame::Task(task)) = frames.recv().await else {
        panic!("the first frame is not the task");
    };
    assert_eq!(task.status.state, TaskState::Submitted);
    assert_eq!(frames.recv().await, Some(Frame::ComeBack));
}

#[tokio::test(start_paused = true)]
async fn a_keyed_send_without_a_slot_is_queued_with_its_key() {
    let fixture = SlotFixture::with_slots(1);
    let keyed = || SendCommand {
        idempotency_key: Some(IdempotencyKey::parse("k-1").unwrap()),
        ..send_command("1000", SendMode::Blocking)
    };
    let second = async {
        tokio::time::sleep(SECOND).await;
        sent_task(&fixture.engine, &ann(), keyed()).await
    };
    // With the waits of the caller the first turn has to run longer than it may wait.
    let (_, task) = tokio::join!(fixture.send(24_000), second);
    assert_eq!(task.status.state, TaskState::Submitted);
    assert_eq!(fixture.runs(), 1, "its skill has not begun");
    assert_eq!(fixture.work(&task.id).await, Ack::Delete);
    let repeated = sent_task(&fixture.engine, &ann(), keyed()).await;
    assert_eq!(repeated.id, task.id);
    assert_eq!(repeated.status.state, TaskState::Completed);
}
