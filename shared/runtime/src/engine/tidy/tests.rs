use super::*;
use crate::engine::blob::object::Attempt;
use crate::store::contract::World;
use crate::store::memory::MemoryStore;
use crate::store::{Committed, Expect, TaskWrite, WriteTasks as _};
use crate::task::{
    Artifact, ArtifactUpdate, Blob, Change, ContextId, Metadata, Part, PartContent, TaskId, WriteId,
};
use async_trait::async_trait;
use bytes::Bytes;
use futures::future::BoxFuture;
use std::sync::atomic::{AtomicI64, Ordering};

const HOUR: Duration = Duration::from_secs(3600);

/// A store, a task in it that names one object, and objects nobody names.
struct Desk {
    store: MemoryStore,
    world: World,
    record: TaskRecord,
    named: String,
    /// Whether the task is in the store.
    stored: bool,
}

impl Desk {
    async fn new(id: TaskId) -> Self {
        let world = World::new(1, "tidy").unwrap();
        let mut record = world.new_task(&world.owner, id).unwrap();
        let attempt = Attempt::of(&record, world.now);
        let named = attempt.key(&WriteId::made_of(2), 1);
        let store = MemoryStore::new();
        let at = Change::Start {
            lease_until: world.now,
        };
        record = world.next(&record, [at, delivered(&named)]).unwrap();
        let desk = Self {
            store,
            world,
            record,
            named,
            stored: false,
        };
        desk.put(&desk.named).await;
        desk
    }

    async fn put(&self, key: &str) {
        let task = self.record.key();
        let put = self.store.put_for(&task, key, Bytes::from_static(b"x"));
        put.await.unwrap();
    }

    /// Stores the task as it is after `changes`.
    async fn store(&mut self, changes: Vec<Change>) {
        let version = self.record.version;
        let expect = match self.stored {
            true => Expect::of(&self.record),
            false => Expect::Absent,
        };
        let (now, write) = (self.world.now, WriteId::made_of(u128::from(version)));
        let expires_at = now.plus(30 * 24 * HOUR);
        self.record = self.record.next(changes, write, now, expires_at).unwrap();
        self.stored = true;
        let write = TaskWrite {
            record: self.record.clone(),
            expect,
            thread: None,
            key: None,
            pushes: Vec::new(),
            now: self.world.now,
        };
        assert_eq!(self.store.commit(&write).await.unwrap(), Committed::Done);
    }

    async fn forget(&self, now: Timestamp) -> usize {
        let key = self.record.key();
        forget_objects(&self.store, &self.store, &key, now)
            .await
            .unwrap()
    }

    /// A look at all objects, however long ago the last one was.
    async fn sweep(&self, now: Timestamp) -> TidyReport {
        let from_the_start = ObjectsPlace::default();
        let noted = self.store.note_objects_place(&from_the_start);
        noted.await.unwrap();
        self.sweep_on(&Ticks::still(now), 1000).await
    }

    async fn sweep_on(&self, clock: &Ticks, page: usize) -> TidyReport {
        let swept = sweep_objects(&self.store, &self.store, clock, page);
        swept.await.unwrap()
    }

    async fn keys(&self) -> Vec<String> {
        self.store.keys("", None, 1000).await.unwrap()
    }
}

fn delivered(key: &str) -> Change {
    let part = Part::new(PartContent::Stored(Blob {
        key: key.to_owned(),
        size: 1,
        sha256: "x".to_owned(),
    }));
    Change::Artifact(ArtifactUpdate {
        artifact: Artifact {
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

#[tokio::test]
async fn the_objects_of_a_task_go_with_its_item_and_no_others() {
    for id in ids() {
        let desk = Desk::new(id).await;
        let beside = desk
            .world
            .new_task(&desk.world.stranger, TaskId::made_of(5))
            .unwrap();
        let beside = Attempt::of(&beside, desk.world.now).key(&WriteId::made_of(1), 1);
        desk.put(&beside).await;
        assert_eq!(
            desk.forget(desk.world.now.plus(23 * HOUR)).await,
            0,
            "too young"
        );
        assert_eq!(desk.forget(desk.world.now.plus(25 * HOUR)).await, 1);
        assert_eq!(desk.forget(desk.world.now.plus(25 * HOUR)).await, 0);
        assert_eq!(desk.keys().await, [beside]);
    }
}

#[tokio::test]
async fn a_task_that_lives_under_the_key_keeps_its_own_objects_only() {
    for id in ids() {
        let mut desk = Desk::new(id).await;
        let mut earlier = desk.record.clone();
        earlier.incarnation = WriteId::made_of(9);
        let stale = Attempt::of(&earlier, desk.world.now).key(&WriteId::made_of(2), 1);
        desk.put(&stale).await;
        let later = desk.world.now.plus(25 * HOUR);
        desk.store(Vec::new()).await;
        assert_eq!(desk.forget(later).await, 0, "it still works");
        desk.store(vec![Change::Complete { message: None }]).await;
        assert_eq!(desk.forget(later).await, 1);
        assert_eq!(desk.keys().await, [desk.named.clone()]);
    }
}

#[tokio::test]
async fn a_sweep_removes_what_no_task_names_and_spares_the_young_and_the_open() {
    for id in ids() {
        let mut desk = Desk::new(id).await;
        let attempt = Attempt::of(&desk.record, desk.world.now);
        let dropped = attempt.early_key(7 << 96);
        desk.put(&dropped).await;
        let later = desk.world.now.plus(25 * HOUR);
        desk.store(Vec::new()).await;
        assert_eq!(desk.sweep(later).await.removed, 0, "the task is open");
        desk.store(vec![Change::Complete { message: None }]).await;
        assert_eq!(
            desk.sweep(desk.world.now.plus(23 * HOUR)).await.removed,
            0,
            "too young"
        );
        let report = desk.sweep(later).await;
        assert_eq!(
            (report.looked_at, report.removed, report.whole),
            (2, 1, true)
        );
        assert_eq!(desk.keys().await, [desk.named.clone()]);
    }
}

#[tokio::test]
async fn what_a_process_left_that_died_before_its_first_commit_is_swept() {
    let desk = Desk::new(TaskId::made_of(5)).await;
    assert_eq!(desk.sweep(desk.world.now.plus(25 * HOUR)).await.removed, 1);
    assert!(desk.keys().await.is_empty());
}

#[tokio::test]
async fn an_object_of_another_form_or_without_a_note_is_left_alone() {
    let desk = Desk::new(TaskId::made_of(5)).await;
    let below = object::below(&desk.record.key());
    desk.put(&format!("{below}state-7")).await;
    let unnoted = format!("v1/{}/x/{}-0-1-1.1", "0".repeat(32), "0".repeat(32));
    desk.store
        .put(&unnoted, Bytes::from_static(b"x"))
        .await
        .unwrap();
    assert_eq!(desk.sweep(desk.world.now.plus(25 * HOUR)).await.removed, 1);
    assert_eq!(desk.keys().await.len(), 2);
}

#[tokio::test]
async fn sweeps_of_a_few_objects_each_come_to_all_of_them_and_rest_until_the_next_day() {
    let desk = Desk::new(TaskId::made_of(5)).await;
    let attempt = Attempt::of(&desk.record, desk.world.now);
    for n in 1..=9_u128 {
        desk.put(&attempt.early_key(n << 96)).await;
    }
    // Each look at the clock is a minute later, so that a sweep has time for one
    // page, and none knows of the last but what is stored.
    let clock = Ticks {
        now: AtomicI64::new(desk.world.now.plus(25 * HOUR).as_millis()),
        step: SPENT,
    };
    for left in [7, 4, 1] {
        assert!(!desk.sweep_on(&clock, 3).await.whole);
        assert_eq!(desk.keys().await.len(), left);
    }
    let last = desk.sweep_on(&clock, 3).await;
    assert_eq!((last.removed, last.whole), (1, true));
    assert!(desk.keys().await.is_empty());

    desk.put(&attempt.early_key(99 << 96)).await;
    let began = desk.store.objects_place().await.unwrap().unwrap().began;
    for (hours, looked_at) in [(23, 0), (24, 1), (25, 0)] {
        let clock = Ticks::still(began.plus(hours * HOUR));
        let swept = desk.sweep_on(&clock, 1000).await;
        assert_eq!((swept.looked_at, swept.whole), (looked_at, true), "{hours}");
    }
}

#[tokio::test]
async fn the_state_of_a_conversation_that_is_gone_is_forgotten_and_the_next_ones_is_kept() {
    let desk = Desk::new(TaskId::made_of(5)).await;
    let thread = ThreadKey::new(&desk.world.owner, &ContextId::parse("c:1").unwrap());
    let below = object::below_thread(&thread);
    let at = desk.world.now.as_millis();
    let old = format!("{below}{}-1-{at:x}-state", "0".repeat(16));
    let named = format!("{below}{}-2-{at:x}-state", "1".repeat(16));
    let store = Naming {
        store: &desk.store,
        named: named.clone(),
    };
    for key in [&old, &named] {
        let bytes = Bytes::from_static(b"x");
        desk.store
            .put_for_thread(&thread, key, bytes)
            .await
            .unwrap();
    }
    let late = desk.world.now.plus(25 * HOUR);
    for (now, removed) in [(desk.world.now.plus(23 * HOUR), 0), (late, 1), (late, 0)] {
        let gone = forget_state(&store, &desk.store, &thread, now).await;
        assert_eq!(gone.unwrap(), removed);
    }
    assert!(desk.keys().await.contains(&named));
    // A sweep knows by the note whose it is.
    desk.store
        .put_for_thread(&thread, &old, "x".into())
        .await
        .unwrap();
    let clock = Ticks::still(late);
    let swept = sweep_objects(&store, &desk.store, &clock, 1000);
    // With it goes what is left of the task that never was.
    assert_eq!(swept.await.unwrap().removed, 2);
    assert_eq!(desk.keys().await, [named]);
}

/// A store which keeps one state as this object.
struct Naming<'s> {
    store: &'s MemoryStore,
    named: String,
}

#[async_trait]
impl TasksByKey for Naming<'_> {
    async fn stored_at(&self, key: &TaskKey) -> Result<Option<TaskRecord>, StoreError> {
        self.store.stored_at(key).await
    }

    async fn standing_at(&self, key: &TaskKey) -> Result<Option<TaskRecord>, StoreError> {
        self.store.standing_at(key).await
    }

    async fn state_object(&self, _: &ThreadKey) -> Result<Option<String>, StoreError> {
        Ok(Some(self.named.clone()))
    }
}

#[async_trait]
impl SweepObjects for Naming<'_> {
    async fn content_objects(&self, key: &TaskKey) -> Result<Vec<String>, StoreError> {
        self.store.content_objects(key).await
    }

    async fn objects_place(&self) -> Result<Option<ObjectsPlace>, StoreError> {
        self.store.objects_place().await
    }

    async fn note_objects_place(&self, place: &ObjectsPlace) -> Result<(), StoreError> {
        self.store.note_objects_place(place).await
    }
}

/// A clock that goes on by a step each time it is looked at.
struct Ticks {
    now: AtomicI64,
    step: Duration,
}

impl Ticks {
    const fn still(now: Timestamp) -> Self {
        Self {
            now: AtomicI64::new(now.as_millis()),
            step: Duration::ZERO,
        }
    }
}

impl Clock for Ticks {
    fn now(&self) -> Timestamp {
        let step = i64::try_from(self.step.as_millis()).unwrap();
        Timestamp::from_millis(self.now.fetch_add(step, Ordering::SeqCst))
    }

    fn sleep_until(&self, _: Timestamp) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}
