use super::*;
use crate::engine::files::object_key::ObjectKeys;
use crate::engine::files::remove_objects_of;
use crate::store::contract::SampleData;
use crate::store::keys::Key;
use crate::store::memory::MemoryStore;
use crate::store::records::Records;
use crate::store::table::{Item, Table};
use crate::store::{CommitResult, Expect, TaskWrite};
use crate::task::{
    Artifact, ArtifactUpdate, Blob, Change, ContextId, Message, Metadata, Part, PartContent,
    SavedSlot, TaskId, ThreadKey, WriteId,
};
use crate::testing::TestClock;
use crate::testing::{BlobHooks, BlobLayer, ItemKind, TableHooks, TableLayer, reads};
use a2a_lambda_rows::each_row;
use async_trait::async_trait;
use bytes::Bytes;
use std::sync::Mutex;
use std::sync::atomic::Ordering;

const HOUR: Duration = Duration::from_secs(3600);
/// How long a task is kept after its last rest.
const LIFE: Duration = Duration::from_secs(30 * 24 * 3600);

/// A store, a task in it that names one object, and unreferenced objects.
struct Desk {
    store: MemoryStore,
    sample: SampleData,
    record: TaskRecord,
    named: String,
    /// Whether the task is in the store.
    stored: bool,
}

impl Desk {
    async fn new(id: TaskId) -> Self {
        let sample = SampleData::new(1, "tidy").unwrap();
        let mut record = sample.new_task(&sample.owner, id).unwrap();
        let attempt = ObjectKeys::of(&record, sample.now);
        let named = attempt.key(&WriteId::made_of(2), 1);
        let store = MemoryStore::new();
        let at = Change::Start {
            lease_until: sample.now,
        };
        record = sample.next(&record, [at, delivered(&named)]).unwrap();
        let desk = Self {
            store,
            sample,
            record,
            named,
            stored: false,
        };
        desk.put(&desk.named).await;
        desk
    }

    async fn put(&self, key: &str) {
        let owner = BlobOwner::Task(self.record.key());
        let put = self
            .store
            .blobs
            .put_for(&owner, key, Bytes::from_static(b"x"));
        put.await.unwrap();
    }

    /// The write of the task as it is after `changes`.
    fn write(&self, changes: Vec<Change>) -> TaskWrite {
        let version = self.record.version;
        let expect = match self.stored {
            true => Expect::of(&self.record),
            false => Expect::Absent,
        };
        let (now, write) = (self.sample.now, WriteId::made_of(u128::from(version)));
        let expires_at = now.plus(30 * 24 * HOUR);
        let record = self.record.next(changes, write, now, expires_at);
        TaskWrite {
            record: record.unwrap(),
            expect,
            thread: None,
            key: None,
            has_pointer: false,
            pushes: Vec::new(),
            now: self.sample.now,
        }
    }

    /// Stores the task as it is after `changes`.
    async fn store(&mut self, changes: Vec<Change>) {
        let write = self.write(changes);
        assert_eq!(
            self.store.records.commit(&write).await.unwrap(),
            CommitResult::Done
        );
        (self.record, self.stored) = (write.record, true);
    }

    /// A sweep of all objects, however long ago the last one was.
    async fn sweep(&self, now: Timestamp) -> CollectReport {
        let from_the_start = ObjectsPlace::default();
        let sweep = self.store.records.sweep();
        sweep.note_objects_place(&from_the_start).await.unwrap();
        self.sweep_on(&*self.store.blobs, &TestClock::following(now, 1), 1000)
            .await
    }

    async fn sweep_on(&self, blobs: &dyn Blobs, clock: &TestClock, page: usize) -> CollectReport {
        let sweep = self.store.records.sweep();
        let swept = sweep_objects(&sweep, blobs, clock, LIFE, page);
        swept.await.unwrap()
    }

    async fn keys(&self) -> Vec<String> {
        self.store.blobs.keys("", None, 1000).await.unwrap()
    }
}

fn delivered(key: &str) -> Change {
    let part = Part::new(PartContent::Stored(Blob {
        key: key.to_owned(),
        size: 1,
        sha256: "x".to_owned(),
        upload: None,
    }));
    Change::Artifact(ArtifactUpdate {
        artifact: Artifact {
            chunks_of: None,
            id: "a".to_owned(),
            name: None,
            description: None,
            parts: vec![part],
            extensions: Vec::new(),
            metadata: Metadata::new(),
        },
        append: false,
        last_chunk: true,
        metadata: Metadata::new(),
    })
}

fn ids() -> [TaskId; 2] {
    [TaskId::made_of(5), TaskId::parse("order:1").unwrap()]
}

#[tokio::test(start_paused = true)]
async fn a_sweep_removes_the_objects_of_an_expired_task_and_no_others() {
    for id in ids() {
        let mut desk = Desk::new(id).await;
        desk.store(vec![Change::Complete { message: None }]).await;
        let ends = desk.record.expires_at;
        let beside = desk
            .sample
            .new_task(&desk.sample.stranger, TaskId::made_of(5))
            .unwrap();
        let beside = ObjectKeys::of(&beside, ends).key(&WriteId::made_of(1), 1);
        desk.put(&beside).await;
        assert_eq!(
            desk.sweep(ends.minus(HOUR)).await.removals,
            0,
            "not expired"
        );
        assert_eq!(desk.sweep(ends).await.removals, 1);
        assert_eq!(desk.sweep(ends).await.removals, 0);
        assert_eq!(desk.keys().await, [beside]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_with_a_reused_id_keeps_only_its_own_objects() {
    for id in ids() {
        let mut desk = Desk::new(id).await;
        let mut earlier = desk.record.clone();
        earlier.fields().incarnation = WriteId::made_of(9);
        let stale = ObjectKeys::of(&earlier, desk.sample.now).key(&WriteId::made_of(2), 1);
        desk.put(&stale).await;
        let later = desk.sample.now.plus(25 * HOUR);
        desk.store(Vec::new()).await;
        assert_eq!(desk.sweep(later).await.removals, 0, "the task is working");
        desk.store(vec![Change::Complete { message: None }]).await;
        assert_eq!(desk.sweep(later).await.removals, 1);
        assert_eq!(desk.keys().await, [desk.named.clone()]);
    }
}

/// A deletion in the same millisecond in which the next task with the id begins.
#[tokio::test]
async fn a_deletion_keeps_the_objects_of_the_next_task_with_the_id() {
    for id in ids() {
        let desk = Desk::new(id).await;
        let mut ended = desk.record.clone();
        ended.fields().expires_at = desk.sample.now;
        let mut next = desk.record.clone();
        next.fields().incarnation = WriteId::made_of(9);
        let at = |late: i64| Timestamp::from_millis(desk.sample.now.as_millis() + late);
        let object =
            |of: &TaskRecord, late| ObjectKeys::of(of, at(late)).key(&WriteId::made_of(3), 1);
        for gone in [object(&ended, -1), object(&ended, 1), object(&next, -1)] {
            desk.put(&gone).await;
        }
        let kept = [object(&next, 0), object(&next, 1)];
        for key in &kept {
            desk.put(key).await;
        }
        let removed = remove_objects_of(&*desk.store.blobs, &ended).await.unwrap();
        assert_eq!(removed, 4, "including the one that the task names");
        assert_eq!(desk.keys().await, kept);
    }
}

#[tokio::test(start_paused = true)]
async fn a_sweep_spares_young_objects_and_those_of_open_tasks() {
    for id in ids() {
        let mut desk = Desk::new(id).await;
        let attempt = ObjectKeys::of(&desk.record, desk.sample.now);
        let dropped = attempt.early_key(7 << 96);
        desk.put(&dropped).await;
        let later = desk.sample.now.plus(25 * HOUR);
        desk.store(Vec::new()).await;
        assert_eq!(desk.sweep(later).await.removals, 0, "the task is open");
        desk.store(vec![Change::Complete { message: None }]).await;
        assert_eq!(
            desk.sweep(desk.sample.now.plus(23 * HOUR)).await.removals,
            0,
            "too young"
        );
        let report = desk.sweep(later).await;
        assert_eq!(
            (report.looked_at, report.removals, report.is_complete),
            (2, 1, true)
        );
        assert_eq!(desk.keys().await, [desk.named.clone()]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_sweep_removes_objects_of_a_task_that_was_never_stored() {
    let desk = Desk::new(TaskId::made_of(5)).await;
    assert_eq!(
        desk.sweep(desk.sample.now.plus(25 * HOUR)).await.removals,
        1
    );
    assert!(desk.keys().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_object_with_another_key_or_without_metadata_is_kept() {
    let desk = Desk::new(TaskId::made_of(5)).await;
    let below = object_key::below(&desk.record.key());
    desk.put(&format!("{below}state-7")).await;
    let unnoted = format!("v1/{}/x/{}-0-1-1.1", "0".repeat(32), "0".repeat(32));
    desk.store
        .blobs
        .put(&unnoted, Bytes::from_static(b"x"))
        .await
        .unwrap();
    assert_eq!(
        desk.sweep(desk.sample.now.plus(25 * HOUR)).await.removals,
        1
    );
    assert_eq!(desk.keys().await.len(), 2);
}

/// Reading a page of keys takes as long as a sweep may take.
struct SlowLists;

#[async_trait]
impl BlobHooks for SlowLists {
    async fn keys(
        &self,
        blobs: &dyn Blobs,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<String>, StoreError> {
        tokio::time::advance(SPENT).await;
        blobs.keys(prefix, after, limit).await
    }
}

#[tokio::test(start_paused = true)]
async fn short_sweeps_reach_all_objects_and_pause_until_the_next_day() {
    let desk = Desk::new(TaskId::made_of(5)).await;
    let attempt = ObjectKeys::of(&desk.record, desk.sample.now);
    for n in 1..=9_u128 {
        desk.put(&attempt.early_key(n << 96)).await;
    }
    // A sweep has time for one page. It knows of the last one only what is stored.
    let slow = BlobLayer::new(desk.store.blobs.clone(), SlowLists);
    let clock = TestClock::following(desk.sample.now.plus(25 * HOUR), 1);
    for left in [7, 4, 1] {
        assert!(!desk.sweep_on(&*slow, &clock, 3).await.is_complete);
        assert_eq!(desk.keys().await.len(), left);
    }
    let last = desk.sweep_on(&*slow, &clock, 3).await;
    assert_eq!((last.removals, last.is_complete), (1, true));
    assert!(desk.keys().await.is_empty());

    desk.put(&attempt.early_key(99 << 96)).await;
    let began = desk
        .store
        .records
        .sweep()
        .objects_place()
        .await
        .unwrap()
        .unwrap()
        .began;
    for (hours, looked_at) in [(23, 0), (24, 1), (25, 0)] {
        let clock = TestClock::following(began.plus(hours * HOUR), 1);
        let swept = desk.sweep_on(&*desk.store.blobs, &clock, 1000).await;
        assert_eq!(
            (swept.looked_at, swept.is_complete),
            (looked_at, true),
            "{hours}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_sweep_removes_state_objects_that_no_thread_names() {
    let desk = Desk::new(TaskId::made_of(5)).await;
    let thread = ThreadKey::new(&desk.sample.owner, &ContextId::parse("c:1").unwrap());
    let below = object_key::below_thread(&thread);
    let at = desk.sample.now.as_millis();
    let old = format!("{below}{}-1-{at:x}-state", "0".repeat(16));
    let named = format!("{below}{}-2-{at:x}-state", "1".repeat(16));
    let layer = TableLayer::new(desk.store.table.clone(), Naming(named.clone()));
    let naming = Records::new(layer).sweep();
    for key in [&old, &named] {
        let bytes = Bytes::from_static(b"x");
        desk.store
            .blobs
            .put_for(&BlobOwner::Thread(thread.clone()), key, bytes)
            .await
            .unwrap();
    }
    let sweep = async |hours: u32| {
        let from_the_start = ObjectsPlace::default();
        let noted = naming.note_objects_place(&from_the_start);
        noted.await.unwrap();
        let clock = TestClock::following(desk.sample.now.plus(hours * HOUR), 1);
        let swept = sweep_objects(&naming, &*desk.store.blobs, &clock, LIFE, 1000);
        swept.await.unwrap().removals
    };
    // The second one removed belongs to the task, which was never stored.
    for (hours, removed) in [(23, 0), (25, 2), (25, 0)] {
        assert_eq!(sweep(hours).await, removed, "{hours}");
    }
    assert_eq!(desk.keys().await, [named]);
}

/// Counts the keys that a sweep looks up.
#[derive(Default)]
struct Asking {
    at_once: std::sync::atomic::AtomicUsize,
    most: std::sync::atomic::AtomicUsize,
    heads: std::sync::Mutex<Vec<String>>,
}

#[async_trait]
impl BlobHooks for Asking {
    async fn head(
        &self,
        blobs: &dyn Blobs,
        key: &str,
    ) -> Result<Option<crate::store::BlobHead>, StoreError> {
        let now = self.at_once.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
        self.heads.lock().unwrap().push(key.to_owned());
        tokio::task::yield_now().await;
        self.at_once.fetch_sub(1, Ordering::SeqCst);
        blobs.head(key).await
    }
}

#[tokio::test(start_paused = true)]
async fn a_young_object_is_looked_up_when_its_age_has_doubled() {
    let mut desk = Desk::new(TaskId::made_of(5)).await;
    // The task is open all the time.
    desk.store(Vec::new()).await;
    let asking = BlobLayer::new(desk.store.blobs.clone(), Asking::default());
    let sweep = desk.store.records.sweep();
    let mut days = Vec::new();
    for day in 0..36 {
        let clock = TestClock::following(desk.sample.now.plus(day * 24 * HOUR), 1);
        let swept = sweep_objects(&sweep, &*asking, &clock, LIFE, 1000);
        assert!(swept.await.unwrap().is_complete);
        if !std::mem::take(&mut *asking.hooks.heads.lock().unwrap()).is_empty() {
            days.push(day);
        }
    }
    assert_eq!(days, [1, 2, 4, 8, 16, 30, 31, 32, 33, 34, 35]);
    assert_eq!(desk.keys().await.len(), 1, "the task is open");
}

#[tokio::test(start_paused = true)]
async fn a_sweep_looks_up_at_most_sixteen_tasks_at_the_same_time() {
    let desk = Desk::new(TaskId::made_of(5)).await;
    for n in 0..100 {
        let id = TaskId::made_of(n + 10);
        let task = desk.sample.new_task(&desk.sample.owner, id).unwrap();
        let key = ObjectKeys::of(&task, desk.sample.now).key(&WriteId::made_of(1), 1);
        let (owner, bytes) = (BlobOwner::Task(task.key()), Bytes::from_static(b"x"));
        desk.store.blobs.put_for(&owner, &key, bytes).await.unwrap();
    }
    let asking = BlobLayer::new(desk.store.blobs.clone(), Asking::default());
    let sweep = desk.store.records.sweep();
    let clock = TestClock::following(desk.sample.now.plus(25 * HOUR), 1);
    let swept = sweep_objects(&sweep, &*asking, &clock, LIFE, 1000);
    assert_eq!(swept.await.unwrap().removals, 101);
    assert_eq!(asking.hooks.most.load(Ordering::SeqCst), AT_ONCE);
}

/// This object is the state of every thread.
#[derive(Debug)]
struct Naming(String);

#[async_trait]
impl TableHooks for Naming {
    async fn get(&self, table: &dyn Table, keys: &[Key]) -> Result<Vec<Item>, StoreError> {
        if !reads(keys, ItemKind::ThreadState) {
            return table.get(keys).await;
        }
        let named = ("object".to_owned(), self.0.as_str().into());
        Ok(vec![Item::from([named])])
    }
}

/// This commit comes directly after the first read of a head.
#[derive(Debug)]
struct Overtaken {
    store: MemoryStore,
    write: Mutex<Option<TaskWrite>>,
}

#[async_trait]
impl TableHooks for Overtaken {
    async fn get(&self, table: &dyn Table, keys: &[Key]) -> Result<Vec<Item>, StoreError> {
        let found = table.get(keys).await?;
        let is_head = reads(keys, ItemKind::Task);
        let write = self.write.lock().unwrap().take_if(|_| is_head);
        if let Some(write) = write {
            let committed = self.store.records.commit(&write).await?;
            assert_eq!(committed, CommitResult::Done);
        }
        Ok(found)
    }
}

fn asks() -> Change {
    Change::AskInput {
        message: Message::from_agent("q", vec![Part::text("which?")]),
        slot: SavedSlot {
            version: 1,
            value: serde_json::Value::Null,
        },
    }
}

#[tokio::test(start_paused = true)]
async fn a_sweep_keeps_what_is_named_after_its_first_read() {
    for id in ids() {
        // After the commit the task is at rest again, or its next turn runs.
        for rests in [true, false] {
            let mut desk = Desk::new(id.clone()).await;
            desk.store(vec![asks()]).await;
            let attempt = ObjectKeys::of(&desk.record, desk.sample.now);
            let late = attempt.key(&WriteId::made_of(3), 1);
            let stray = attempt.early_key(7 << 96);
            for key in [&late, &stray] {
                desk.put(key).await;
            }
            let resumes = Change::Resume {
                began_at: Timestamp::default(),
                message: Message::from_user("a", vec![Part::text("this")]),
                secret: None,
                lease_until: desk.sample.now,
            };
            let mut changes = vec![resumes, delivered(&late)];
            changes.extend(rests.then(asks));
            let overtaken = Overtaken {
                store: desk.store.clone(),
                write: Mutex::new(Some(desk.write(changes))),
            };
            let layer = TableLayer::new(desk.store.table.clone(), overtaken);
            let sweep = Records::new(layer).sweep();
            let clock = TestClock::following(desk.sample.now.plus(25 * HOUR), 1);
            let swept = sweep_objects(&sweep, &*desk.store.blobs, &clock, LIFE, 1000);
            assert!(swept.await.unwrap().is_complete);
            let keys = desk.keys().await;
            assert!(keys.contains(&late), "{rests} {keys:?}");
            // No task names this one. The commit of a running turn may still do so.
            assert_eq!(keys.contains(&stray), !rests, "{keys:?}");
        }
    }
}

/// For every duration of the passes and of the time between them.
#[test]
fn each_doubling_of_an_age_is_seen_exactly_once() {
    let rows = [&[1, 7, 2, 30, 1][..], &[5], &[299, 1, 300], &[13, 600]];
    each_row(rows, |steps| {
        let (mut before, mut seen) = (None, Vec::new());
        let mut age = Duration::ZERO;
        for step in steps.iter().cycle() {
            age += Duration::from_secs(*step);
            if age > YOUNG * 70 {
                break;
            }
            if has_doubled(YOUNG, before, age) {
                seen.push(age);
            }
            before = Some(age);
        }
        let reached = [1, 2, 4, 8, 16, 32, 64].map(|n| YOUNG * n);
        let largest = Duration::from_secs(*steps.iter().max().unwrap());
        if largest <= YOUNG {
            assert_eq!(seen.len(), reached.len(), "{steps:?} {seen:?}");
        }
        for reached in reached {
            let first = seen.iter().find(|age| **age >= reached);
            assert!(
                first.is_some_and(|age| *age < reached + largest),
                "{steps:?}"
            );
        }
    });
    assert!(!has_doubled(YOUNG, None, YOUNG - Duration::from_millis(1)));
    assert!(has_doubled(YOUNG, None, YOUNG));
    assert!(!has_doubled(
        YOUNG,
        Some(YOUNG),
        YOUNG * 2 - Duration::from_millis(1)
    ));
}
