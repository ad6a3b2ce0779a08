//! What a page requests from its store, and how it uses the responses.

use super::*;
use crate::engine::Policy;
use crate::engine::doubles::clock;
use crate::store::contract::World;
use crate::store::memory::MemoryStore;
use crate::store::wrap::WrapTasks;
use crate::store::{ProjectedTask, ReadTasks as _, RecordPage, StoreError, WriteTasks};
use crate::task::metadata_keys::TRUNCATED;
use crate::task::{MovedContent, Owner, TaskId, TaskState};
use async_trait::async_trait;
use std::sync::{Arc, Mutex};

/// A store of tasks with much of their content outside the head.
#[derive(Default)]
struct Apart {
    memory: MemoryStore,
    /// The bytes that each task has outside its head.
    size: usize,
    /// The queries of the pages.
    queries: Mutex<Vec<RecordQuery>>,
    /// How many bytes of each task were requested.
    wanted: Mutex<Vec<usize>>,
    /// A task that has changed since the list was read.
    changed: Mutex<Option<TaskRecord>>,
    /// How many tasks are read now, and the most at the same time.
    reading: Mutex<(usize, usize)>,
}

#[async_trait]
impl WrapTasks for Apart {
    fn tasks(&self) -> &dyn WriteTasks {
        &self.memory
    }

    async fn list(&self, owner: &Owner, query: &RecordQuery) -> Result<RecordPage, StoreError> {
        self.queries.lock().unwrap().push(query.clone());
        self.memory.records.list(owner, query).await
    }

    async fn project(
        &self,
        head: TaskRecord,
        wanted: Projection,
        _: Timestamp,
    ) -> Result<Option<ProjectedTask>, StoreError> {
        self.wanted.lock().unwrap().push(wanted.bytes);
        {
            let mut reading = self.reading.lock().unwrap();
            reading.0 += 1;
            reading.1 = reading.1.max(reading.0);
        }
        tokio::task::yield_now().await;
        self.reading.lock().unwrap().0 -= 1;
        let changed = self.changed.lock().unwrap().clone();
        let record = changed.filter(|it| it.id() == head.id()).unwrap_or(head);
        let complete = self.size <= wanted.bytes;
        Ok(Some(ProjectedTask {
            record,
            complete,
            read: if complete { self.size } else { 0 },
        }))
    }
}

/// Tasks of one caller, each with `size` bytes outside its head, and a response budget
/// of 100,000 bytes.
struct Lists {
    world: World,
    store: Arc<Apart>,
    reader: Reader,
    tasks: Vec<TaskRecord>,
}

impl Lists {
    async fn of(size: usize) -> Self {
        Self::many(10, size).await
    }

    async fn many(count: usize, size: usize) -> Self {
        let world = World::new(1, "list").unwrap();
        let store = Arc::new(Apart {
            size,
            ..Apart::default()
        });
        let mut tasks = Vec::new();
        for _ in 0..count {
            let task = world.new_task(&world.owner, TaskId::made_of(world.number()));
            let mut task = task.unwrap();
            task.fields().layout.children.push(MovedContent {
                bytes: size,
                ..MovedContent::default()
            });
            store
                .memory
                .records
                .commit(&world.create(&task))
                .await
                .unwrap();
            tasks.push(task);
        }
        let policy = Policy {
            response_max: 100_000,
            list_count_max: 7,
            ..Policy::default()
        };
        let memory = Arc::new(MemoryStore::new());
        let clock = Arc::new(clock());
        let reader = Reader::new(store.clone(), memory.clone(), memory, clock, policy);
        Self {
            world,
            store,
            reader,
            tasks,
        }
    }

    fn query(&self) -> ListQuery {
        ListQuery {
            context_id: None,
            status: None,
            status_after: None,
            page_size: 4,
            page_token: None,
            history_length: 0,
            include_artifacts: true,
        }
    }

    async fn page(&self, query: &ListQuery) -> Page {
        let caller = Caller::behind(&self.world.owner, None);
        self.reader.list(&caller, query).await.unwrap()
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_is_counted_once_and_up_to_the_configured_maximum() {
    let lists = Lists::of(0).await;
    let mut query = lists.query();
    // What was counted, or what was shown so far and one more.
    for (shown, total) in [(4, 7), (4, 9), (2, 10)] {
        let page = lists.page(&query).await;
        assert_eq!((page.tasks.len(), page.total_size), (shown, total));
        query.page_token = Some(page.next_page_token);
    }
    let asked = lists.store.queries.lock().unwrap();
    let counted: Vec<usize> = asked.iter().map(|query| query.count_limit).collect();
    assert_eq!(counted, [7, 0, 0]);
}

#[tokio::test(start_paused = true)]
async fn a_page_reads_no_more_than_its_response_can_hold() {
    // Nothing of what is read is shown here.
    let lists = Lists::of(60_000).await;
    let page = lists.page(&lists.query()).await;
    let room = lists.reader.room(4).left();
    let rest = room - 60_000;
    let wanted = lists.store.wanted.lock().unwrap().clone();
    assert_eq!(wanted, [room, rest, rest, rest]);
    let marked: Vec<bool> = (page.tasks.iter())
        .map(|task| task.metadata.contains_key(TRUNCATED))
        .collect();
    assert_eq!(marked, [false, true, true, true]);
}

#[tokio::test(start_paused = true)]
async fn a_page_reads_at_most_sixteen_tasks_at_the_same_time() {
    let lists = Lists::many(20, 100).await;
    let mut query = lists.query();
    query.page_size = 20;
    assert_eq!(lists.page(&query).await.tasks.len(), 20);
    assert_eq!(*lists.store.reading.lock().unwrap(), (0, 16));
}

#[tokio::test(start_paused = true)]
async fn a_task_that_changes_during_a_list_must_still_match() {
    let lists = Lists::of(0).await;
    let mut query = lists.query();
    query.page_size = 100;
    query.status = Some(TaskState::Submitted);
    assert_eq!(lists.page(&query).await.tasks.len(), 10);
    let now = lists.reader.clock.now();
    let changed = lists.tasks[0].next(
        [lists.world.start()],
        crate::task::WriteId::made_of(1),
        now,
        now,
    );
    *lists.store.changed.lock().unwrap() = Some(changed.unwrap());
    let page = lists.page(&query).await;
    assert_eq!(page.tasks.len(), 9);
    assert!(page.tasks.iter().all(|it| it.id != *lists.tasks[0].id()));
}
