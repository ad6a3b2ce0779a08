//! Tests that the sweep sends old intents again: after a relay outage and with full
//! queues, on tokio's paused clock.

use super::Redispatch;
use crate::engine::background::shard_walk::ShardWalk;
use crate::engine::doubles::{START, owner, services_over};
use crate::engine::{Engine, Leases, Policy, SweepReport};
use crate::prelude::*;
use crate::store::StoreError;
use crate::store::keys::Key;
use crate::store::memory::MemoryStore;
use crate::store::queue::{WorkMessage, WorkQueue};
use crate::store::table::{Item, Position, Query, QueryPage, ReadTable as _, Table, Value};
use crate::store::{Expect, TaskWrite, keys};
use crate::task::{
    Change, ContextId, Generation, Metadata, TaskId, TaskKey, TaskRecord, Timestamp, WriteId,
};
use crate::testing::{TableHooks, TableLayer};
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

/// Tasks that wait for a worker, an index of them, and a queue. On AWS a page of the index
/// takes 50 ms to read and send. Here it takes ten times as long, for a tenth of the tasks.
#[derive(Debug)]
struct Backlog {
    /// The item that all waiting tasks share.
    waiting: Item,
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
    async fn of(count: u32, over: Duration, now: Timestamp) -> Self {
        let task = TaskRecord::create(
            TaskId::made_of(0),
            owner(),
            ContextId::made_of(1),
            WriteId::made_of(1),
            Generation::V10,
            Metadata::new(),
            now,
        );
        let record = task.next([Change::Dispatch], WriteId::made_of(1), now, now);
        let write = TaskWrite {
            record: record.unwrap(),
            expect: Expect::Absent,
            thread: None,
            pushes: Vec::new(),
            key: None,
            has_pointer: true,
            now,
        };
        let memory = MemoryStore::new();
        memory.records.commit(&write).await.unwrap();
        let mut item = memory.table.get(&[keys::task(&task.key())]).await.unwrap();
        let standing = (0..count).map(|n| {
            let since = now.minus(over * (count - n) / count);
            (TaskId::made_of(n.into()), since)
        });
        Self {
            waiting: item.remove(0),
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

impl Backlog {
    /// The item of a waiting task.
    fn item(&self, task: &TaskId, since: Timestamp) -> Item {
        let mut item = self.waiting.clone();
        item.extend(keys::task(&TaskKey::new(&owner(), task)).item());
        item.insert("not_before".to_owned(), since.as_millis().into());
        item
    }
}

/// The task in a partition.
fn task_in(partition: &str) -> TaskId {
    TaskId::parse(partition.rsplit('#').next().unwrap()).unwrap()
}

#[async_trait]
impl TableHooks for Backlog {
    async fn get(&self, _: &dyn Table, keys: &[Key]) -> Result<Vec<Item>, StoreError> {
        let standing = self.standing.lock().unwrap();
        let tasks = keys.iter().map(|key| task_in(key.partition()));
        let items = tasks.filter_map(|task| Some(self.item(&task, *standing.get(&task)?)));
        Ok(items.collect())
    }

    async fn query(&self, _: &dyn Table, query: &Query) -> Result<QueryPage, StoreError> {
        tokio::time::sleep(Duration::from_millis(500)).await;
        let after = query.start.as_ref().map(|it| &it.0[keys::PK]);
        let after = match after {
            Some(Value::Text(partition)) => task_in(partition),
            _ => TaskId::made_of(0),
        };
        let standing = self.standing.lock().unwrap();
        let limit = query.limit.unwrap();
        let mut page = standing.range(after..).take(limit + 1);
        let items: Vec<Item> = page
            .by_ref()
            .take(limit)
            .map(|(task, since)| self.item(task, *since))
            .collect();
        let next = page.next().map(|(task, since)| self.item(task, *since));
        Ok(QueryPage {
            items,
            next: next.map(Position),
            ..QueryPage::default()
        })
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
    backlog: Arc<TableLayer<Backlog>>,
    walk: ShardWalk,
}

impl BacklogFixture {
    fn new(backlog: Backlog) -> Self {
        let agent = Agent::builder("test").skill(idle).build().unwrap();
        let memory = MemoryStore::new();
        let backlog = TableLayer::new(memory.table, backlog);
        let services = services_over(backlog.clone());
        Self {
            engine: Engine::new(Arc::new(agent), services, Policy::default()),
            backlog,
            walk: ShardWalk::default(),
        }
    }

    fn backlog(&self) -> &Backlog {
        &self.backlog.hooks
    }

    /// Runs one round, then waits until five minutes after its start.
    async fn round(&mut self) -> SweepReport {
        let begun = tokio::time::Instant::now();
        let until = self.engine.reader.clock.now().plus(SHARE);
        let (engine, walk) = (&self.engine, &mut self.walk);
        engine.sweeper.restart(walk, 1);
        let again = Redispatch::new(&self.backlog.hooks);
        let (leases, mut report) = (Leases::Respect, SweepReport::default());
        let sweep = engine.turns.commits.records.sweep();
        let swept =
            engine
                .sweeper
                .sweep_tasks(&sweep, again, leases, walk, Some(until), &mut report);
        swept.await.unwrap();
        tokio::time::sleep_until(begun + 5 * MINUTE).await;
        report
    }
}

#[tokio::test(start_paused = true)]
async fn sweep_resends_all_turns_within_five_rounds_after_a_relay_outage() {
    const LOST: u32 = 36_000;
    let mut fixture = BacklogFixture::new(Backlog::of(LOST, 120 * MINUTE, START).await);
    let mut rounds = 0;
    while fixture.backlog().left() > 0 {
        fixture.round().await;
        fixture.backlog().work(20_000);
        rounds += 1;
        assert!(rounds < 6, "{} are left", fixture.backlog().left());
    }
    let sent = fixture.backlog().sent();
    assert_eq!(sent.len(), LOST as usize);
    let extra = sent.iter().sum::<usize>() - sent.len();
    assert_eq!(extra, 0, "no turn was sent twice");
}

#[tokio::test(start_paused = true)]
async fn sweep_reads_the_queue_length_once_a_round_if_a_turn_waits() {
    let backlog = Backlog::of(300, Duration::from_secs(1), START).await;
    let mut fixture = BacklogFixture::new(backlog);
    fixture.round().await;
    assert_eq!(fixture.backlog().asked.load(Ordering::SeqCst), 0);
    fixture.round().await;
    assert_eq!(fixture.backlog().asked.load(Ordering::SeqCst), 1);
    assert_eq!(fixture.backlog().sent(), [1; 300], "the queue was empty");
}

#[tokio::test(start_paused = true)]
async fn queue_counts_as_full_from_100_messages_or_if_unreadable() {
    for (waits, is_mute, sent) in [(99, false, 300), (100, false, 0), (0, true, 0)] {
        let mut backlog = Backlog::of(300, Duration::from_secs(1), START).await;
        let other = vec![TaskId::made_of(1_000_000); waits];
        *backlog.messages.lock().unwrap() = other;
        backlog.is_mute = is_mute;
        let mut fixture = BacklogFixture::new(backlog);
        tokio::time::sleep(11 * MINUTE).await;
        let report = fixture.round().await;
        assert_eq!(report.redispatched, sent, "{waits}");
        assert_eq!(report.resent, sent, "the relay has sent none of them");
    }
}
