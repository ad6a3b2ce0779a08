//! List pages with large tasks: a page reads only what it shows, and at most about one or
//! two responses' worth of bytes, however many tasks there are.

use a2a_lambda::auth::Caller;
use a2a_lambda::engine::{Policy, Reader, SystemClock};
use a2a_lambda::store::contract::noise;
use a2a_lambda::store::contract::{SampleData, Stores};
use a2a_lambda::store::dynamodb;
use a2a_lambda::store::records::Records;
use a2a_lambda::store::{
    Blobs, Download, Projection, ReadBlobs, StoreError, UploadTerms, UploadUrl,
};
use a2a_lambda::task::{
    Artifact, ArtifactUpdate, Change, ListQuery, Message, Metadata, Page, Part, TaskRecord,
    Timestamp,
};
use a2a_lambda_rows::each_row_async;
use a2a_lambda_tests::emulator::{Emulator, run};
use a2a_local::embedded::TABLE;
use async_trait::async_trait;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_dynamodb::types::AttributeValue;
use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::interceptors::context::{
    BeforeDeserializationInterceptorContextRef, BeforeTransmitInterceptorContextRef,
};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::watch;

const KB: usize = 1024;
const MB: usize = 1024 * KB;

/// The operations, and the bytes of their replies.
#[derive(Debug, Default)]
struct Traffic {
    operations: Vec<String>,
    bytes: usize,
}

#[derive(Debug, Clone, Default)]
struct Watch(Arc<Mutex<Traffic>>);

impl Watch {
    fn taken(&self) -> Traffic {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl Intercept for Watch {
    fn name(&self) -> &'static str {
        "watch"
    }

    fn read_before_transmit(
        &self,
        context: &BeforeTransmitInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let target = context.request().headers().get("x-amz-target");
        let operation = target.unwrap_or_default().rsplit('.').next();
        let operation = operation.unwrap_or_default().to_owned();
        self.0.lock().unwrap().operations.push(operation);
        Ok(())
    }

    fn read_before_deserialization(
        &self,
        context: &BeforeDeserializationInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let length = context.response().headers().get("content-length");
        self.0.lock().unwrap().bytes += length.unwrap_or_default().parse::<usize>()?;
        Ok(())
    }
}

/// The reads of objects.
#[derive(Debug, Default)]
struct Reads {
    bytes: usize,
    /// Reads by key.
    times: BTreeMap<String, usize>,
    /// Reads that have begun and not ended.
    open: usize,
}

/// An object store that keeps equal bytes once.
#[derive(Debug, Default)]
struct Shelf {
    objects: Mutex<BTreeMap<String, Bytes>>,
    reads: Mutex<Reads>,
    /// The highest number of concurrent reads so far.
    most: watch::Sender<usize>,
    /// No read ends before this many reads run concurrently.
    wanted: AtomicUsize,
}

impl Shelf {
    /// Resets the counts, and holds reads until this many run concurrently.
    fn hold(&self, wanted: usize) {
        *self.reads.lock().unwrap() = Reads::default();
        self.most.send_replace(0);
        self.wanted.store(wanted, Ordering::SeqCst);
    }

    fn most(&self) -> usize {
        *self.most.borrow()
    }

    /// The keys that were read. Asserts that each was read once.
    fn once(&self) -> Vec<String> {
        let times = std::mem::take(&mut self.reads.lock().unwrap().times);
        assert!(times.values().all(|times| *times == 1), "{times:?}");
        times.into_keys().collect()
    }
}

#[async_trait]
impl ReadBlobs for Shelf {
    async fn get(&self, key: &str) -> Result<Option<Bytes>, StoreError> {
        let found = self.objects.lock().unwrap().get(key).cloned();
        let open = {
            let mut reads = self.reads.lock().unwrap();
            reads.bytes += found.as_ref().map_or(0, Bytes::len);
            *reads.times.entry(key.to_owned()).or_default() += 1;
            reads.open += 1;
            reads.open
        };
        self.most
            .send_if_modified(|most| std::mem::replace(most, open.max(*most)) < open);
        let wanted = self.wanted.load(Ordering::SeqCst);
        let mut most = self.most.subscribe();
        let together = most.wait_for(|most| *most >= wanted);
        // The timeout only passes if the reads never run concurrently; then the test fails.
        let _ = tokio::time::timeout(Duration::from_secs(5), together).await;
        // Lets reads that begin at the same moment count as concurrent.
        tokio::task::yield_now().await;
        self.reads.lock().unwrap().open -= 1;
        Ok(found)
    }

    async fn read_url(
        &self,
        _: &Download<'_>,
        _: Timestamp,
        _: Duration,
    ) -> Result<Option<String>, StoreError> {
        Ok(None)
    }
}

#[async_trait]
impl Blobs for Shelf {
    async fn put(&self, key: &str, bytes: Bytes) -> Result<(), StoreError> {
        let mut objects = self.objects.lock().unwrap();
        let same = objects.values().find(|kept| **kept == bytes).cloned();
        objects.insert(key.to_owned(), same.unwrap_or(bytes));
        Ok(())
    }

    async fn keys(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<String>, StoreError> {
        let objects = self.objects.lock().unwrap();
        let keys = objects.keys().filter(|key| key.starts_with(prefix));
        let keys = keys.filter(|key| after.is_none_or(|after| key.as_str() > after));
        Ok(keys.take(limit).cloned().collect())
    }

    async fn remove(&self, keys: &[String]) -> Result<(), StoreError> {
        let mut objects = self.objects.lock().unwrap();
        objects.retain(|key, _| !keys.contains(key));
        Ok(())
    }

    async fn upload_url(
        &self,
        _: &UploadTerms<'_>,
        _: Timestamp,
        _: Duration,
    ) -> Result<Option<UploadUrl>, StoreError> {
        Ok(None)
    }
}

/// A reader on a table and bucket with recorded reads.
struct Desk {
    sample: SampleData,
    emulator: Emulator,
    store: Records,
    shelf: Arc<Shelf>,
    watch: Watch,
    reader: Reader,
}

impl Desk {
    async fn new(case: &str, policy: Policy) -> Self {
        let emulator = Emulator::start().await.unwrap();
        let (watch, shelf) = (Watch::default(), Arc::new(Shelf::default()));
        let config = emulator.clients.dynamodb.config().to_builder();
        let client = Client::from_conf(config.interceptor(watch.clone()).build());
        let store = dynamodb::records(client, TABLE).with_blobs(shelf.clone());
        let reader = Reader::new(
            store.reader().clone(),
            shelf.clone(),
            Arc::new(SystemClock),
            policy,
        );
        Self {
            sample: SampleData::new(run(), case).unwrap(),
            emulator,
            store,
            shelf,
            watch,
            reader,
        }
    }

    /// A working task with these commits.
    async fn task(&self, commits: Vec<Vec<Change>>) -> TaskRecord {
        let stores = Stores {
            records: self.store.clone(),
            ..self.emulator.stores()
        };
        let mut task = self.sample.task().unwrap();
        self.sample.stored(&stores, &task).await.unwrap();
        for changes in [vec![self.sample.start()]].into_iter().chain(commits) {
            let next = self.sample.next(&task, changes).unwrap();
            let write = self.sample.update(&next, &task);
            stores.records.commit(&write).await.unwrap();
            task = next;
        }
        task
    }

    /// A page, the traffic of the table, and the bytes read from the bucket.
    async fn page(&self, history_length: usize, artifacts: bool) -> (Page, Traffic, usize) {
        self.watch.taken();
        self.shelf.reads.lock().unwrap().bytes = 0;
        let caller = Caller {
            owner: self.sample.owner.clone(),
            tier: "standard".to_owned(),
            scopes: Default::default(),
        };
        let query = ListQuery {
            context_id: None,
            status: None,
            status_after: None,
            page_size: 100,
            page_token: None,
            history_length,
            include_artifacts: artifacts,
        };
        let page = self.reader.list(&caller, &query).await.unwrap();
        let objects = self.shelf.reads.lock().unwrap().bytes;
        (page, self.watch.taken(), objects)
    }
}

fn chunk(append: bool, length: usize) -> Change {
    Change::Artifact(ArtifactUpdate {
        artifact: Artifact {
            chunks_of: None,
            id: "a".to_owned(),
            name: Some("a".to_owned()),
            description: None,
            parts: vec![Part::text(noise(1, length))],
            extensions: Vec::new(),
            metadata: Metadata::new(),
        },
        append,
        last_chunk: false,
        metadata: Metadata::new(),
    })
}

fn says(length: usize) -> Change {
    Change::Update {
        message: Some(Message::from_agent("m", vec![Part::text(noise(2, length))])),
        metadata: Metadata::new(),
    }
}

#[tokio::test]
async fn a_page_without_content_reads_only_the_meta_items() {
    let desk = Desk::new("bare", Policy::default()).await;
    for _ in 0..8 {
        let commits = (0..8).map(|n| vec![says(2_000), chunk(n > 0, 9_000)]);
        desk.task(commits.collect()).await;
    }
    let (page, traffic, objects) = desk.page(0, false).await;
    assert_eq!(page.tasks.len(), 8);
    // The list positions and the tasks: all fit on one page.
    assert_eq!(traffic.operations, ["Query", "BatchGetItem"]);
    assert_eq!(objects, 0);
    let (_, bare, _) = desk.page(0, false).await;
    let (page, whole, _) = desk.page(100, true).await;
    assert!(page.tasks.iter().all(|task| task.metadata.is_empty()));
    assert!(whole.bytes > 8 * 40_000, "{}", whole.bytes);
    assert!(bare.bytes < whole.bytes / 4, "{}", bare.bytes);
    // The newest message is in one child of its task, with what was said and made before it.
    let (_, newest, _) = desk.page(1, false).await;
    assert!(newest.bytes < whole.bytes / 2, "{}", newest.bytes);
}

#[tokio::test]
async fn a_list_of_forty_4_mb_tasks_reads_one_response_worth() {
    let desk = Desk::new("forty", Policy::default()).await;
    for _ in 0..40 {
        desk.task(vec![vec![chunk(false, 4_000_000)]]).await;
    }
    let (page, traffic, objects) = desk.page(0, false).await;
    assert_eq!((page.tasks.len(), objects), (40, 0));
    assert!(traffic.bytes < MB, "{}", traffic.bytes);
    let (page, traffic, objects) = desk.page(100, true).await;
    assert_eq!(page.tasks.len(), 40);
    assert!(objects < 5_000_000, "one of them fits: {objects}");
    assert!(traffic.bytes < MB, "{}", traffic.bytes);
    let cut = |task: &&a2a_lambda::task::Task| task.metadata.contains_key("a2a-lambda/truncated");
    assert_eq!(page.tasks.iter().filter(cut).count(), 39);
}

#[tokio::test]
async fn a_page_does_not_read_each_task_that_exceeds_the_budget() {
    let policy = Policy {
        response_max: MB,
        ..Policy::default()
    };
    let desk = Desk::new("pieces", policy).await;
    // Each task is too large for a response, in items that would each fit.
    for _ in 0..6 {
        let commits = (0..20).map(|n| vec![chunk(n > 0, 100_000)]);
        desk.task(commits.collect()).await;
    }
    let (page, traffic, _) = desk.page(0, true).await;
    assert_eq!(page.tasks.len(), 6);
    assert!(traffic.bytes < 4 * MB, "{}", traffic.bytes);
}

/// Messages or chunks, one per commit.
fn commits(count: usize, change: impl Fn(usize) -> Change) -> Vec<Vec<Change>> {
    (0..count).map(|n| vec![change(n)]).collect()
}

/// A projection with everything that fits into `bytes`.
const fn within(bytes: usize) -> Projection {
    Projection {
        history_length: usize::MAX,
        artifacts: true,
        bytes,
    }
}

#[tokio::test]
async fn the_objects_of_a_task_are_read_sixteen_at_a_time_and_each_once() {
    let desk = Desk::new("wave", Policy::default()).await;
    let task = desk.task(commits(40, |n| chunk(n > 0, 33 * KB))).await;
    let (owner, id) = (&desk.sample.owner, &task.id);
    desk.shelf.hold(16);
    let whole = desk.store.load(owner, id, desk.sample.now).await.unwrap();
    assert!(whole.as_ref() == Some(&task));
    assert_eq!((desk.shelf.most(), desk.shelf.once().len()), (16, 40));
    desk.shelf.hold(16);
    let (page, _, _) = desk.page(0, true).await;
    assert!(
        page.tasks[0].metadata.is_empty(),
        "the task is shown completely"
    );
    assert_eq!((desk.shelf.most(), desk.shelf.once().len()), (16, 40));
}

#[tokio::test]
async fn the_tasks_of_a_page_are_read_together_with_sixteen_objects_at_a_time() {
    let desk = Desk::new("waves", Policy::default()).await;
    for _ in 0..3 {
        desk.task(commits(12, |n| chunk(n > 0, 33 * KB))).await;
    }
    desk.shelf.hold(16);
    let (page, _, _) = desk.page(0, true).await;
    assert!(page.tasks.iter().all(|task| task.metadata.is_empty()));
    assert_eq!((desk.shelf.most(), desk.shelf.once().len()), (16, 36));
}

#[tokio::test]
async fn the_large_batches_of_a_log_are_read_in_one_wave() {
    let desk = Desk::new("batches", Policy::default()).await;
    let task = desk.task(commits(3, |n| chunk(n > 0, 210 * KB))).await;
    desk.shelf.hold(3);
    let (owner, id) = (&desk.sample.owner, &task.id);
    let tail = desk.store.tail(owner, id, 0, desk.sample.now).await;
    let events: Vec<_> = task.events_after(0).cloned().collect();
    assert!(tail.unwrap().unwrap().events == events);
    assert_eq!((desk.shelf.most(), desk.shelf.once().len()), (3, 3));
}

#[tokio::test]
async fn objects_beyond_the_response_budget_are_not_read() {
    let desk = Desk::new("fits", Policy::default()).await;
    let task = desk.task(commits(40, |_| says(33 * KB))).await;
    let head = || async {
        let head = desk.store.head(&task.owner, &task.id, desk.sample.now);
        head.await.unwrap().unwrap()
    };
    // A child has its message twice: in the history and in an event.
    let rows = [(0, 0), (60 * KB, 0), (70 * KB, 1), (340 * KB, 5)];
    each_row_async(rows, async |(bytes, objects)| {
        desk.shelf.hold(objects);
        let found = desk
            .store
            .project(head().await, within(bytes), desk.sample.now);
        let found = found.await.unwrap().unwrap();
        assert!(!found.complete, "{bytes}");
        let read = desk.shelf.once();
        assert_eq!(read.len(), objects, "{bytes} {read:?}");
        // The first object is the message of the status.
        let history = found.record.view(usize::MAX, false).history;
        assert_eq!(
            history.map_or(0, |all| all.len()),
            objects.saturating_sub(1)
        );
        assert!(found.read <= bytes, "{} of {bytes}", found.read);
    })
    .await;
}

#[tokio::test]
async fn a_small_read_budget_reads_only_the_children_that_fit() {
    let desk = Desk::new("little", Policy::default()).await;
    let task = desk.task(commits(40, |_| says(20 * KB))).await;
    for (bytes, children) in [(50 * KB, 1), (130 * KB, 3)] {
        let (owner, now) = (&task.owner, desk.sample.now);
        let head = desk.store.head(owner, &task.id, now).await;
        let head = head.unwrap().unwrap();
        desk.watch.taken();
        let found = desk.store.project(head, within(bytes), now).await;
        let found = found.unwrap().unwrap();
        assert!(!found.complete && found.read <= bytes, "{}", found.read);
        let traffic = desk.watch.taken();
        assert_eq!(traffic.operations, ["Query"]);
        assert!(traffic.bytes < children * 20 * KB, "{}", traffic.bytes);
    }
}

#[tokio::test]
async fn a_damaged_task_does_not_break_a_list() {
    let desk = Desk::new("damaged", Policy::default()).await;
    let mut tasks = Vec::new();
    for _ in 0..3 {
        let commits = (0..8).map(|n| vec![says(2_000), chunk(n > 0, 9_000)]);
        tasks.push(desk.task(commits.collect()).await);
    }
    let table = &desk.emulator.clients.dynamodb;
    let partition =
        |task: &TaskRecord| AttributeValue::S(format!("T#{}#K#{}", task.owner.tenant, &task.id));
    // One task misses a child item, another has no epoch that can be read.
    let children = table.query().table_name(TABLE);
    let children = children
        .key_condition_expression("PK = :pk AND begins_with(SK, :part)")
        .expression_attribute_values(":pk", partition(&tasks[0]))
        .expression_attribute_values(":part", AttributeValue::S("EVT#".to_owned()));
    let children = children.send().await.unwrap().items.unwrap();
    let removed = table.delete_item().table_name(TABLE);
    let removed = removed.key("PK", children[0]["PK"].clone());
    let removed = removed.key("SK", children[0]["SK"].clone());
    removed.send().await.unwrap();
    let spoilt = table.update_item().table_name(TABLE);
    let spoilt = spoilt.key("PK", partition(&tasks[1]));
    let spoilt = spoilt.key("SK", AttributeValue::S("META".to_owned()));
    let spoilt = spoilt
        .update_expression("SET epoch = :damaged")
        .expression_attribute_values(":damaged", AttributeValue::S("none".to_owned()));
    spoilt.send().await.unwrap();

    let (page, _, _) = desk.page(100, true).await;
    let shown = |task: &TaskRecord| page.tasks.iter().find(|shown| shown.id == task.id);
    let damaged = shown(&tasks[0]).unwrap();
    assert_eq!(
        damaged.metadata.get("a2a-lambda/truncated"),
        Some(&true.into())
    );
    assert!(damaged.artifacts.iter().flatten().next().is_none());
    assert!(shown(&tasks[1]).is_none());
    let whole = shown(&tasks[2]).unwrap();
    assert!(
        whole.metadata.is_empty() && whole.artifacts.is_some(),
        "{whole:?}"
    );
    // A list without content does not need the missing child.
    let (page, _, _) = desk.page(0, false).await;
    assert!(page.tasks.iter().all(|task| task.metadata.is_empty()));
    assert_eq!(page.tasks.len(), 2);
}
