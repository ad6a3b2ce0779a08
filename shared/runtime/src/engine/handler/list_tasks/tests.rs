//! What a page requests from its store, and how it uses the responses.

use super::*;
use crate::engine::Policy;
use crate::engine::doubles::clock;
use crate::store::contract::{SampleData, noise};
use crate::store::memory::MemoryStore;
use crate::store::records::Records;
use crate::store::table::{Query, QueryPage, Table};
use crate::store::{CommitResult, StoreError, TaskWrite, keys};
use crate::task::metadata_keys::TRUNCATED;
use crate::task::{Message, Part, TaskId, TaskState};
use crate::testing::{TableHooks, TableLayer};
use async_trait::async_trait;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Notes what a page reads of tasks with much of their content outside the head.
#[derive(Debug, Default)]
struct Apart {
    store: MemoryStore,
    /// Requests that count tasks.
    counts: AtomicUsize,
    /// Tasks whose content was read.
    contents: AtomicUsize,
    /// A commit that replaces the content of its task after the list was read.
    change: Mutex<Option<TaskWrite>>,
    /// How many tasks are read now, and the most at the same time.
    reading: Mutex<(usize, usize)>,
}

#[async_trait]
impl TableHooks for Apart {
    async fn query(&self, table: &dyn Table, query: &Query) -> Result<QueryPage, StoreError> {
        self.counts.fetch_add(query.count.into(), Ordering::SeqCst);
        let Some(task) = keys::task_key_of(query.partition.key()) else {
            return table.query(query).await;
        };
        self.contents.fetch_add(1, Ordering::SeqCst);
        {
            let mut reading = self.reading.lock().unwrap();
            reading.0 += 1;
            reading.1 = reading.1.max(reading.0);
        }
        tokio::task::yield_now().await;
        self.reading.lock().unwrap().0 -= 1;
        let change = self
            .change
            .lock()
            .unwrap()
            .take_if(|it| it.record.key() == task);
        if let Some(change) = change {
            let committed = self.store.records.commit(&change).await?;
            assert_eq!(committed, CommitResult::Done);
            return Ok(QueryPage::default());
        }
        table.query(query).await
    }
}

/// Tasks of one caller, each with `size` bytes in its message, and a response budget.
struct Lists {
    sample: SampleData,
    layer: Arc<TableLayer<Apart>>,
    reader: Reader,
    tasks: Vec<TaskRecord>,
}

impl Lists {
    async fn of(size: usize) -> Self {
        Self::many(10, size, 100_000).await
    }

    async fn many(count: usize, size: usize, response_max: usize) -> Self {
        let sample = SampleData::new(1, "list").unwrap();
        let apart = Apart::default();
        let store = apart.store.clone();
        let mut tasks = Vec::new();
        for seed in 0..count {
            let text = noise(seed as u64, size);
            let message = Message::from_user("m-1", vec![Part::text(text)]);
            let id = TaskId::made_of(sample.number());
            let task = sample.task_saying(&sample.owner, id, message).unwrap();
            store.records.commit(&sample.create(&task)).await.unwrap();
            tasks.push(task);
        }
        let policy = Policy {
            response_max,
            list_count_max: 7,
            ..Policy::default()
        };
        let layer = TableLayer::new(store.table.clone(), apart);
        let records = Records::new(layer.clone()).with_blobs(store.blobs.clone());
        let records = records.reader().clone();
        let reader = Reader::new(records, store.blobs, Arc::new(clock()), policy);
        Self {
            sample,
            layer,
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
            history_length: 10,
            include_artifacts: true,
        }
    }

    async fn page(&self, query: &ListQuery) -> Page {
        let caller = Caller::behind(&self.sample.owner, None);
        self.reader.list(&caller, query).await.unwrap()
    }

    fn apart(&self) -> &Apart {
        &self.layer.hooks
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
        assert_eq!(lists.apart().counts.load(Ordering::SeqCst), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_page_reads_no_more_than_its_response_can_hold() {
    let lists = Lists::of(60_000).await;
    let page = lists.page(&lists.query()).await;
    assert_eq!(lists.apart().contents.load(Ordering::SeqCst), 1);
    let marked: Vec<bool> = (page.tasks.iter())
        .map(|task| task.metadata.contains_key(TRUNCATED))
        .collect();
    assert_eq!(marked, [false, true, true, true]);
}

#[tokio::test(start_paused = true)]
async fn a_page_reads_at_most_sixteen_tasks_at_the_same_time() {
    let lists = Lists::many(20, 5_000, 1_000_000).await;
    let mut query = lists.query();
    query.page_size = 20;
    assert_eq!(lists.page(&query).await.tasks.len(), 20);
    assert_eq!(*lists.apart().reading.lock().unwrap(), (0, 16));
}

#[tokio::test(start_paused = true)]
async fn a_task_that_changes_during_a_list_must_still_match() {
    let lists = Lists::of(5_000).await;
    let mut query = lists.query();
    query.page_size = 100;
    query.status = Some(TaskState::Submitted);
    assert_eq!(lists.page(&query).await.tasks.len(), 10);
    let (sample, before) = (&lists.sample, &lists.tasks[0]);
    let changed = sample.next(before, [sample.start()]).unwrap();
    let change = sample.update(&changed, before);
    *lists.apart().change.lock().unwrap() = Some(change);
    let page = lists.page(&query).await;
    assert_eq!(page.tasks.len(), 9);
    assert!(page.tasks.iter().all(|it| it.id != lists.tasks[0].id));
}
