//! What a page asks its store for, and what it makes of the answers.

use super::*;
use crate::engine::Policy;
use crate::engine::doubles::Paused;
use crate::store::contract::World;
use crate::store::memory::MemoryStore;
use crate::store::over::OverTasks;
use crate::store::{Excerpt, ReadTasks as _, RecordPage, StoreError, WriteTasks};
use crate::task::names::TRUNCATED;
use crate::task::{Owner, TaskId, TaskState};
use async_trait::async_trait;
use std::sync::{Arc, Mutex};

/// A list of tasks of which much lies apart.
#[derive(Default)]
struct Apart {
    memory: MemoryStore,
    /// So many bytes are read of each task, if they may be.
    size: usize,
    /// What the pages asked for.
    queries: Mutex<Vec<RecordQuery>>,
    /// How much of each task was asked for.
    wanted: Mutex<Vec<usize>>,
    /// This one has changed since the list was read.
    changed: Mutex<Option<TaskRecord>>,
    /// How many tasks are being read now, and how many there were at most.
    reading: Mutex<(usize, usize)>,
}

#[async_trait]
impl OverTasks for Apart {
    fn tasks(&self) -> &dyn WriteTasks {
        &self.memory
    }

    async fn list(&self, owner: &Owner, query: &RecordQuery) -> Result<RecordPage, StoreError> {
        self.queries.lock().unwrap().push(query.clone());
        self.memory.list(owner, query).await
    }

    async fn excerpt(
        &self,
        head: TaskRecord,
        wanted: Wanted,
        _: Timestamp,
    ) -> Result<Option<Excerpt>, StoreError> {
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
        Ok(Some(Excerpt {
            record,
            complete,
            read: if complete { self.size } else { 0 },
        }))
    }
}

/// Tasks of one caller, each with `size` bytes beside it, and answers of 100,000.
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
            task.layout.moves(1, size as u64);
            store.memory.commit(&world.create(&task)).await.unwrap();
            tasks.push(task);
        }
        let policy = Policy {
            response_max: 100_000,
            list_count_max: 7,
            ..Policy::default()
        };
        let memory = Arc::new(MemoryStore::new());
        let clock = Arc::new(Paused::new());
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
async fn a_list_is_counted_once_and_as_far_as_the_setting_says() {
    let lists = Lists::of(0).await;
    let mut query = lists.query();
    // What was counted, or what was shown by then and one more.
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
async fn a_page_reads_no_more_than_its_answer_can_hold() {
    // Of what was read nothing comes to be shown here.
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
async fn the_tasks_of_a_page_are_read_together_sixteen_at_most() {
    let lists = Lists::many(20, 100).await;
    let mut query = lists.query();
    query.page_size = 20;
    assert_eq!(lists.page(&query).await.tasks.len(), 20);
    assert_eq!(*lists.store.reading.lock().unwrap(), (0, 16));
}

#[tokio::test(start_paused = true)]
async fn a_task_that_has_changed_while_its_page_was_made_is_shown_only_if_it_still_matches() {
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
