//! Tests that the sweep sends old intents again: after a relay outage and with full
//! queues, on tokio's paused clock.

use super::Redispatch;
use crate::engine::background::shard_walk::ShardWalk;
use crate::engine::doubles::{START, owner, services};
use crate::engine::{Engine, Leases, Policy, SweepReport};
use crate::prelude::*;
use crate::store::memory::MemoryStore;
use crate::store::queue::{OpenTask, SweepTasks, WorkMessage, WorkQueue};
use crate::store::wrap::WrapTasks;
use crate::store::{StoreError, WriteTasks};
use crate::task::{
    Change, ContextId, Generation, Metadata, NewTask, TaskId, TaskRecord, Timestamp, WriteId,
};
use async_trait::async_trait;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const MINUTE: Duration = Duration::from_secs(60);
/// The part of the five minutes between two sweeps that a sweep spends on tasks.
const SHARE: Duration = Duration::from_secs(97);

/// Returns its input; no test here runs a turn.
#[skill(id = "idle", tags = ["test"], input_modes = ["text/plain"])]
async fn idle(_: &mut TaskContext<'_>, said: String) -> AgentResult<OnRequestResult<String>> {
    OnRequestResult::done(said)
}

/// Tasks that wait for a worker, an index of them, and a queue. Reading a page of the
/// index takes 50 ms, as its reads and sends do on AWS.
struct Backlog {
    memory: MemoryStore,
    /// The record that all waiting tasks share.
    waiting: TaskRecord,
    /// The waiting tasks and the times of their intents.
    standing: Mutex<BTreeMap<TaskId, Timestamp>>,
    /// The messages that no worker has received.
    messages: Mutex<Vec<TaskId>>,
    /// How often the sweep sent each task.
    sent: Mutex<BTreeMap<TaskId, usize>>,
    /// How often the sweep read the length of the queue.
    asked: AtomicUsize,
    /// Whether reading the length of the queue fails.
    is_mute: bool,
}

impl Backlog {
    /// Makes `count` tasks with intents spread evenly over the time `over` before `now`.
    fn of(count: u32, over: Duration, now: Timestamp) -> Self {
        let task = TaskRecord::create(NewTask {
            id: TaskId::made_of(0),
            owner: owner(),
            context_id: ContextId::made_of(1),
            generation: Generation::V10,
            incarnation: WriteId::made_of(1),
            metadata: Metadata::new(),
            created_at: now,
        });
        let waiting = task.next([Change::Dispatch], WriteId::made_of(1), now, now);
        let standing = (0..count).map(|n| {
            let since = now.minus(over * (count - n) / count);
            (TaskId::made_of(n.into()), since)
        });
        Self {
            memory: MemoryStore::new(),
            waiting: waiting.unwrap(),
            standing: Mutex::new(standing.collect()),
            messages: Mutex::default(),
            sent: Mutex::default(),
            asked: AtomicUsize::new(0),
            is_mute: false,
        }
    }

    /// Lets workers take `count` messages.
    fn work(&self, count: usize) {
        let mut messages = self.messages.lock().unwrap();
        let count = count.min(messages.len());
        let mut standing = self.standing.lock().unwrap();
        for task in messages.drain(..count) {
            standing.remove(&task);
        }
    }

    fn left(&self) -> usize {
        self.standing.lock().unwrap().len()
    }

    fn sent(&self) -> Vec<usize> {
        self.sent.lock().unwrap().values().copied().collect()
    }
}

#[async_trait]
impl WrapTasks for Backlog {
    fn tasks(&self) -> &dyn WriteTasks {
        &self.memory
    }

    async fn heads(&self, tasks: &[OpenTask], _: Timestamp) -> Result<Vec<TaskRecord>, StoreError> {
        let standing = self.standing.lock().unwrap();
        let heads = tasks.iter().filter_map(|open| {
            let since = standing.get(&open.task)?;
            let mut head = self.waiting.clone();
            *head.fields().id = open.task.clone();
            *head.fields().dispatched_at = Some(*since);
            Some(head)
        });
        Ok(heads.collect())
    }
}

#[async_trait]
impl SweepTasks for Backlog {
    async fn open_tasks(
        &self,
        _: u32,
        after: Option<String>,
        limit: usize,
    ) -> Result<(Vec<OpenTask>, Option<String>), StoreError> {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let after = after.map_or(TaskId::made_of(0), |after| TaskId::parse(after).unwrap());
        let standing = self.standing.lock().unwrap();
        let page = standing.range(after..).take(limit + 1);
        let mut page: Vec<TaskId> = page.map(|(task, _)| task.clone()).collect();
        let next = if page.len() > limit { page.pop() } else { None };
        let open = page.into_iter().map(|task| OpenTask {
            owner: self.waiting.owner().clone(),
            task,
        });
        Ok((open.collect(), next.map(|task| task.to_string())))
    }
}

#[async_trait]
impl WorkQueue for Backlog {
    async fn send(&self, messages: &[WorkMessage]) -> Result<Vec<bool>, StoreError> {
        for WorkMessage { item, .. } in messages {
            assert_eq!((item.turn, item.dispatch), (1, 1), "the current intent");
            self.messages.lock().unwrap().push(item.task.clone());
            *self
                .sent
                .lock()
                .unwrap()
                .entry(item.task.clone())
                .or_default() += 1;
        }
        Ok(vec![true; messages.len()])
    }

    async fn waiting(&self) -> Result<usize, StoreError> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        if self.is_mute {
            return Err(StoreError::Unavailable("away".to_owned()));
        }
        Ok(self.messages.lock().unwrap().len())
    }
}

/// An engine over a backlog, and the walk of its sweep.
struct BacklogFixture {
    engine: Engine,
    backlog: Arc<Backlog>,
    walk: ShardWalk,
}

impl BacklogFixture {
    fn new(make: impl FnOnce(Timestamp) -> Backlog) -> Self {
        let agent = Agent::builder("test").skill(idle).build().unwrap();
        let memory = Arc::new(MemoryStore::new());
        let backlog = Arc::new(make(START));
        let services = services(backlog.clone(), &memory);
        Self {
            engine: Engine::new(Arc::new(agent), services, Policy::default()),
            backlog,
            walk: ShardWalk::default(),
        }
    }

    /// Runs one round, then waits until five minutes after its start.
    async fn round(&mut self) -> SweepReport {
        let begun = tokio::time::Instant::now();
        let until = self.engine.reader.clock.now().plus(SHARE);
        let (engine, backlog, walk) = (&self.engine, &*self.backlog, &mut self.walk);
        engine.restart(walk, 1);
        let again = Redispatch::new(backlog);
        let (leases, mut report) = (Leases::Respect, SweepReport::default());
        let swept = engine.sweep_tasks(backlog, again, leases, walk, Some(until), &mut report);
        swept.await.unwrap();
        tokio::time::sleep_until(begun + 5 * MINUTE).await;
        report
    }
}

#[tokio::test(start_paused = true)]
async fn sweep_resends_all_turns_within_five_rounds_after_a_relay_outage() {
    const LOST: u32 = 360_000;
    let mut fixture = BacklogFixture::new(|now| Backlog::of(LOST, 120 * MINUTE, now));
    let mut rounds = 0;
    while fixture.backlog.left() > 0 {
        fixture.round().await;
        fixture.backlog.work(200_000);
        rounds += 1;
        assert!(rounds < 6, "{} are left", fixture.backlog.left());
    }
    let sent = fixture.backlog.sent();
    assert_eq!(sent.len(), LOST as usize);
    let extra = sent.iter().sum::<usize>() - sent.len();
    assert_eq!(extra, 0, "no turn was sent twice");
}

#[tokio::test(start_paused = true)]
async fn sweep_reads_the_queue_length_once_a_round_if_a_turn_waits() {
    let mut fixture = BacklogFixture::new(|now| Backlog::of(300, Duration::from_secs(1), now));
    fixture.round().await;
    assert_eq!(fixture.backlog.asked.load(Ordering::SeqCst), 0);
    fixture.round().await;
    assert_eq!(fixture.backlog.asked.load(Ordering::SeqCst), 1);
    assert_eq!(fixture.backlog.sent(), [1; 300], "the queue was empty");
}

#[tokio::test(start_paused = true)]
async fn queue_counts_as_full_from_100_messages_or_if_unreadable() {
    for (waits, is_mute, sent) in [(99, false, 300), (100, false, 0), (0, true, 0)] {
        let mut fixture = BacklogFixture::new(|now| {
            let mut backlog = Backlog::of(300, Duration::from_secs(1), now);
            let other = vec![TaskId::made_of(1_000_000); waits];
            *backlog.messages.lock().unwrap() = other;
            backlog.is_mute = is_mute;
            backlog
        });
        tokio::time::sleep(11 * MINUTE).await;
        let report = fixture.round().await;
        assert_eq!(report.redispatched, sent, "{waits}");
        assert_eq!(report.resent, sent, "the relay has sent none of them");
    }
}
