//! Rounds of sweeps over an index without an end, on tokio's paused clock.

use super::{Leases, Redispatch, ShardWalk, SweepPlaces, SweepReport};
use crate::engine::doubles::{FakeQueue, owner, services};
use crate::engine::{Engine, Policy, Services};
use crate::prelude::*;
use crate::store::memory::MemoryStore;
use crate::store::records::Records;
use crate::store::table::{Position, Query, QueryPage, QuerySource, Table, Value};
use crate::store::{
    Blobs as _, CommitResult, Expiring, StoreError, ThreadRecord, ThreadWrite, contract, keys,
};
use crate::task::{ContextId, TaskId, TaskKey, Timestamp, WriteId};
use crate::testing::{TableHooks, TableLayer};
use a2a_lambda_rows::each_row;
use async_trait::async_trait;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

/// Does nothing: these tests run no skill.
#[skill(id = "idle", tags = ["test"], input_modes = ["text/plain"])]
async fn idle(_: &mut TaskContext<'_>, said: String) -> AgentResult<OnRequestResult<String>> {
    OnRequestResult::done(said)
}

/// An index of open tasks without an end; each page takes a second. Threads and objects
/// are in memory.
#[derive(Debug, Default)]
struct Endless {
    /// The positions after which pages were requested, by shard.
    asked: Mutex<BTreeMap<u32, Vec<i64>>>,
    /// A shard that does not answer.
    away: Mutex<Option<u32>>,
}

/// The shard of open tasks that a query reads.
fn open_shard(query: &Query) -> Option<u32> {
    let of_sweep = query.partition.source() == QuerySource::Sweep;
    let shard = query.partition.key().strip_prefix("open#");
    shard.filter(|_| of_sweep)?.parse().ok()
}

/// The position `at` in a shard.
fn position(query: &Query, at: i64) -> Position {
    let mut item = keys::task(&TaskKey::new(&owner(), &TaskId::made_of(1))).item();
    item.insert(keys::SWEEP_PK.to_owned(), query.partition.key().into());
    item.insert(keys::SWEEP_SK.to_owned(), at.into());
    Position(item)
}

#[async_trait]
impl TableHooks for Endless {
    async fn query(&self, table: &dyn Table, query: &Query) -> Result<QueryPage, StoreError> {
        let Some(shard) = open_shard(query) else {
            return table.query(query).await;
        };
        tokio::time::sleep(SECOND).await;
        if *self.away.lock().unwrap() == Some(shard) {
            return Err(StoreError::Unavailable("away".to_owned()));
        }
        let after = match query.start.as_ref().map(|it| &it.0[keys::SWEEP_SK]) {
            Some(Value::Number(after)) => *after,
            _ => 0,
        };
        let mut asked = self.asked.lock().unwrap();
        asked.entry(shard).or_default().push(after);
        Ok(QueryPage {
            next: Some(position(query, after + 1)),
            ..QueryPage::default()
        })
    }
}

/// An engine, and an index without an end.
struct SweepFixture {
    engine: Engine,
    store: MemoryStore,
    index: Arc<TableLayer<Endless>>,
}

impl SweepFixture {
    fn new() -> Self {
        let agent = Agent::builder("test").skill(idle).build().unwrap();
        let store = MemoryStore::new();
        let index = TableLayer::new(store.table.clone(), Endless::default());
        let services = Services {
            records: Records::new(index.clone()),
            ..services(&store)
        };
        Self {
            engine: Engine::new(Arc::new(agent), services, Policy::default()),
            store,
            index,
        }
    }

    fn now(&self) -> Timestamp {
        self.engine.reader.clock.now()
    }

    /// The positions requested since the last call, by shard.
    fn asked(&self) -> BTreeMap<u32, Vec<i64>> {
        std::mem::take(&mut self.index.hooks.asked.lock().unwrap())
    }

    async fn sweep_for(
        &self,
        seconds: u32,
        walk: &mut ShardWalk,
    ) -> Result<(), super::EngineError> {
        let (until, mut report) = (self.now().plus(SECOND * seconds), SweepReport::default());
        let (line, leases) = (FakeQueue::default(), Leases::Respect);
        let again = Redispatch::new(&line);
        let sweep = self.engine.turns.commits.records.sweep();
        self.engine
            .sweeper
            .sweep_tasks(&sweep, again, leases, walk, Some(until), &mut report)
            .await
    }

    /// A deleted context that a sweep has to finish.
    async fn over(&self) {
        let now = self.now();
        let owner = owner();
        let id = ContextId::parse("mine").unwrap();
        let before = Timestamp::from_millis(now.as_millis() - 3_600_000);
        let record = ThreadRecord::new(owner, id, before, before).clear(before);
        let write = ThreadWrite {
            record,
            expect: 0,
            write: WriteId::made_of(1),
        };
        assert!(self.store.records.put_thread(&write).await.unwrap());
    }
}

#[tokio::test(start_paused = true)]
async fn a_backlog_of_tasks_leaves_time_for_threads_and_objects() {
    let fixture = SweepFixture::new();
    fixture.over().await;
    let bytes = bytes::Bytes::from_static(b"x");
    fixture.store.blobs.put("v1/x", bytes).await.unwrap();
    let deadline = fixture.now().plus(SECOND * 300);
    let (line, mut places) = (FakeQueue::default(), SweepPlaces::default());
    let round = fixture
        .engine
        .sweeper
        .sweep_round(&line, &mut places, Some(deadline));
    let swept = round.await;
    assert_eq!(swept.threads.threads_removed, 1);
    assert_eq!(swept.objects.looked_at, 1);
    let pages: usize = fixture.asked().values().map(Vec::len).sum();
    assert!((90..=100).contains(&pages), "a third of the time: {pages}");
    assert!(fixture.now().plus(SECOND * 10) <= deadline);
    assert!(!places.are_done());
    let (owner, id) = (owner(), ContextId::parse("mine").unwrap());
    let head = fixture.store.records.load_thread(&owner, &id);
    assert_eq!(head.await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn a_round_continues_the_last_one_and_shards_take_equal_turns() {
    let fixture = SweepFixture::new();
    let mut walk = ShardWalk::of(4, 2);
    let mut places: BTreeMap<u32, Vec<i64>> = BTreeMap::new();
    for _ in 0..5 {
        fixture.sweep_for(6, &mut walk).await.unwrap();
        for (shard, asked) in fixture.asked() {
            places.entry(shard).or_default().extend(asked);
        }
    }
    // 30 pages.
    assert_eq!(places.len(), 4);
    for asked in places.values() {
        assert!((7..=8).contains(&asked.len()), "{places:?}");
        let in_order: Vec<i64> = (0..).take(asked.len()).collect();
        assert_eq!(*asked, in_order, "nothing twice, and nothing left out");
    }
}

#[tokio::test(start_paused = true)]
async fn a_shard_that_does_not_answer_does_not_delay_the_others() {
    let fixture = SweepFixture::new();
    *fixture.index.hooks.away.lock().unwrap() = Some(0);
    let mut walk = ShardWalk::of(4, 0);
    assert!(fixture.sweep_for(10, &mut walk).await.is_err());
    let asked = fixture.asked();
    assert_eq!(asked.len(), 3);
    assert!(asked.values().all(|asked| asked.len() == 3), "{asked:?}");
}

#[test]
fn a_walk_begins_at_any_shard_and_reads_all() {
    each_row([0, 1, 3, 4, u32::MAX], |first| {
        let mut walk = ShardWalk::of(4, first);
        let mut seen = Vec::new();
        while let Some((shard, after)) = walk.next() {
            assert_eq!(after, None);
            seen.push(shard);
        }
        seen.sort_unstable();
        assert_eq!(seen, [0, 1, 2, 3], "from {first}");
    });
}

fn new_task(created_at: Timestamp) -> crate::task::TaskRecord {
    crate::task::TaskRecord::create(
        TaskId::made_of(1),
        owner(),
        ContextId::made_of(1),
        WriteId::made_of(1),
        crate::task::Generation::V10,
        crate::task::Metadata::new(),
        created_at,
    )
}

#[tokio::test(start_paused = true)]
async fn a_page_that_was_cut_short_is_read_again() {
    /// One page with a task, which takes longer than the round; counts how often it was
    /// requested.
    #[derive(Debug)]
    struct Slow(TaskKey, Mutex<u32>);

    #[async_trait]
    impl TableHooks for Slow {
        async fn query(&self, table: &dyn Table, query: &Query) -> Result<QueryPage, StoreError> {
            tokio::time::sleep(SECOND * 60).await;
            assert_eq!(query.start, None, "the unfinished page comes first");
            *self.1.lock().unwrap() += 1;
            Ok(QueryPage {
                items: table.get(&[keys::task(&self.0)]).await?,
                next: Some(position(query, 1)),
                ..QueryPage::default()
            })
        }
    }

    let fixture = SweepFixture::new();
    let at = fixture.now();
    let task = new_task(at);
    let record = task.next([], WriteId::made_of(1), at, at).unwrap();
    let write = crate::store::TaskWrite {
        record,
        expect: crate::store::Expect::Absent,
        thread: None,
        pushes: Vec::new(),
        key: None,
        has_pointer: false,
        now: at,
    };
    fixture.store.records.commit(&write).await.unwrap();
    let slow = Slow(task.key(), Mutex::new(0));
    let index = TableLayer::new(fixture.store.table.clone(), slow);
    let sweep = Records::new(index.clone()).sweep();
    let mut walk = ShardWalk::of(1, 0);
    for _ in 0..2 {
        let (until, mut report) = (fixture.now().plus(SECOND * 30), SweepReport::default());
        let line = FakeQueue::default();
        let again = Redispatch::new(&line);
        let swept = fixture.engine.sweeper.sweep_tasks(
            &sweep,
            again,
            Leases::Respect,
            &mut walk,
            Some(until),
            &mut report,
        );
        swept.await.unwrap();
        assert_eq!(report.looked_at, 0);
    }
    assert_eq!(*index.hooks.1.lock().unwrap(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_round_without_time_left_begins_nothing() {
    for (left, begins) in [(0, false), (10, false), (13, true)] {
        let fixture = SweepFixture::new();
        fixture.over().await;
        let bytes = bytes::Bytes::from_static(b"x");
        fixture.store.blobs.put("v1/x", bytes).await.unwrap();
        let deadline = fixture.now().plus(SECOND * left);
        let (line, mut places) = (FakeQueue::default(), SweepPlaces::default());
        let round = fixture
            .engine
            .sweeper
            .sweep_round(&line, &mut places, Some(deadline));
        let swept = round.await;
        let pages: usize = fixture.asked().values().map(Vec::len).sum();
        let done = (
            pages,
            swept.threads.threads_removed,
            swept.objects.looked_at,
        );
        let expected = if begins { (1, 1, 1) } else { (0, 0, 0) };
        assert_eq!(done, expected, "{left} seconds left");
        assert!(!places.are_done());
    }
}

#[tokio::test(start_paused = true)]
async fn rounds_of_new_processes_begin_at_different_shards() {
    let fixture = SweepFixture::new();
    let mut first = std::collections::BTreeSet::new();
    for _ in 0..40 {
        let deadline = fixture.now().plus(SECOND * 13);
        let (line, mut places) = (FakeQueue::default(), SweepPlaces::default());
        let round = fixture
            .engine
            .sweeper
            .sweep_round(&line, &mut places, Some(deadline));
        round.await;
        first.extend(fixture.asked().into_keys());
    }
    assert!(first.len() > 1, "{first:?}");
}

#[tokio::test(start_paused = true)]
async fn a_round_reports_an_error_and_sweeps_the_rest() {
    let fixture = SweepFixture::new();
    *fixture.index.hooks.away.lock().unwrap() = Some(0);
    fixture.over().await;
    let deadline = fixture.now().plus(SECOND * 300);
    let (line, mut places) = (FakeQueue::default(), SweepPlaces::default());
    let round = fixture
        .engine
        .sweeper
        .sweep_round(&line, &mut places, Some(deadline));
    let swept = round.await;
    assert!(swept.error.is_some());
    assert_eq!(swept.threads.threads_removed, 1);
    assert_eq!(fixture.asked().len(), 15);
}

#[tokio::test(start_paused = true)]
async fn a_deletion_finished_late_removes_nothing_of_the_next_context() {
    let (fixture, of) = (
        SweepFixture::new(),
        contract::SampleData::new(1, "late").unwrap(),
    );
    let context = ContextId::parse("mine").unwrap();
    let begun = ThreadRecord::new(of.owner.clone(), context.clone(), of.now, of.now);
    let deleted = begun.clear(of.now);
    let free_at = deleted.swept_at(Expiring::Deleted).unwrap();
    for (id, made) in [("old", of.now), ("new", free_at)] {
        let task = of.new_task(&of.owner, TaskId::parse(id).unwrap()).unwrap();
        let mut task = of.finished(&task).unwrap();
        let fields = task.fields();
        (fields.version, fields.created_at) = (1, made);
        fields.context_id = context.clone();
        let stored = fixture
            .store
            .records
            .commit(&of.create(&task))
            .await
            .unwrap();
        assert_eq!(stored, CommitResult::Done);
    }
    // This deletion has read the thread before another sweep finished it.
    let removal = fixture
        .engine
        .tasks
        .remove_cleared(&deleted, None)
        .await
        .unwrap();
    assert_eq!((removal.tasks, removal.is_whole()), (1, true));
    let records = &fixture.store.records;
    let left = records.tasks_in(&of.owner, &context, None, None, 9);
    let left: Vec<_> = left
        .await
        .unwrap()
        .0
        .into_iter()
        .map(|it| it.id.clone())
        .collect();
    assert_eq!(left, [TaskId::parse("new").unwrap()]);
}

#[test]
fn a_round_is_done_when_tasks_and_threads_are() {
    let places = |tasks: u32, threads: u32| SweepPlaces {
        tasks: if tasks > 0 {
            ShardWalk::of(tasks, 0)
        } else {
            ShardWalk::default()
        },
        threads: if threads > 0 {
            ShardWalk::of(threads, 0)
        } else {
            ShardWalk::default()
        },
    };
    assert!(places(0, 0).are_done());
    for (tasks, threads) in [(1, 0), (0, 1), (2, 2)] {
        assert!(!places(tasks, threads).are_done(), "{tasks} {threads}");
    }
}
