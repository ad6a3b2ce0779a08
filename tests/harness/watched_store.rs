//! A table and bytes in memory that count writes, and can be set to fail or to wait.

use a2a_lambda::store::keys::Key;
use a2a_lambda::store::memory::MemoryStore;
use a2a_lambda::store::table::{
    Action, Item, Query, QueryPage, QuerySource, Range, Table, Value, Write, WriteResult,
};
use a2a_lambda::store::{
    BlobOwner, BlobReader, Blobs, Measured, StoreError, UploadTerms, UploadUrl,
};
use a2a_lambda::task::{Blob, TaskId, TaskKey, TaskState, Timestamp};
use a2a_lambda::testing::{
    BlobHooks, BlobLayer, ItemKind, TableHooks, TableLayer, committed_task, reads, writes,
};
use async_trait::async_trait;
use bytes::Bytes;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// A private text. No response may contain it.
pub const STORE_CANARY: &str = "canary-table-arn:aws:dynamodb:0001";

/// One commit that the engine requested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commit {
    /// The task.
    pub task: TaskId,
    /// The version it writes.
    pub version: u64,
    /// The state it writes.
    pub state: TaskState,
}

/// A store in memory behind counters and switches.
pub struct WatchedStore {
    memory: MemoryStore,
    watch: Arc<Watch>,
    /// The table behind the switches.
    pub table: Arc<TableLayer<Watched>>,
    /// The bytes behind the switches.
    pub blobs: Arc<BlobLayer<Watched>>,
}

/// The hooks of a [`WatchedStore`].
#[derive(Debug, Clone)]
pub struct Watched(Arc<Watch>);

impl Deref for Watched {
    type Target = Watch;

    fn deref(&self) -> &Watch {
        &self.0
    }
}

impl Deref for WatchedStore {
    type Target = Watch;

    fn deref(&self) -> &Watch {
        &self.watch
    }
}

impl std::fmt::Debug for WatchedStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WatchedStore").finish_non_exhaustive()
    }
}

impl Default for WatchedStore {
    fn default() -> Self {
        let (memory, watch) = (MemoryStore::new(), Arc::<Watch>::default());
        Self {
            table: TableLayer::new(memory.table.clone(), Watched(watch.clone())),
            blobs: BlobLayer::new(memory.blobs.clone(), Watched(watch.clone())),
            memory,
            watch,
        }
    }
}

impl WatchedStore {
    /// The memory store inside.
    #[must_use]
    pub const fn memory(&self) -> &MemoryStore {
        &self.memory
    }

    /// Removes expired records, as DynamoDB does some time after their expiry.
    pub fn clean_up(&self, now: Timestamp) {
        self.memory.table.clean_up(now);
    }
}

/// The counters and switches.
#[derive(Debug)]
pub struct Watch {
    commits: Mutex<Vec<Commit>>,
    blobs: AtomicUsize,
    threads: AtomicUsize,
    pointers: AtomicUsize,
    pushes: AtomicUsize,
    loads: AtomicUsize,
    away: AtomicBool,
    threads_away: AtomicBool,
    objects_away: AtomicBool,
    lists_lost: AtomicBool,
    sources_lost: AtomicBool,
    list_reads: AtomicUsize,
    read_max: AtomicUsize,
    latency_ms: AtomicU64,
    urls: AtomicBool,
    open: watch::Sender<bool>,
    objects_open: watch::Sender<bool>,
}

impl Default for Watch {
    fn default() -> Self {
        Self {
            commits: Mutex::default(),
            blobs: AtomicUsize::new(0),
            threads: AtomicUsize::new(0),
            pointers: AtomicUsize::new(0),
            pushes: AtomicUsize::new(0),
            loads: AtomicUsize::new(0),
            away: AtomicBool::new(false),
            threads_away: AtomicBool::new(false),
            objects_away: AtomicBool::new(false),
            lists_lost: AtomicBool::new(false),
            sources_lost: AtomicBool::new(false),
            list_reads: AtomicUsize::new(0),
            read_max: AtomicUsize::new(usize::MAX),
            latency_ms: AtomicU64::new(0),
            urls: AtomicBool::new(false),
            open: watch::Sender::new(true),
            objects_open: watch::Sender::new(true),
        }
    }
}

impl Watch {
    /// Every commit that the engine requested, stored or not.
    #[must_use]
    pub fn commits(&self) -> Vec<Commit> {
        self.list().clone()
    }

    /// The number of all writes, including failed ones: commits, threads and push configs
    /// outside of commits, and objects.
    #[must_use]
    pub fn writes(&self) -> usize {
        let apart = [&self.blobs, &self.pushes];
        let apart: usize = apart.iter().map(|count| count.load(Ordering::SeqCst)).sum();
        self.list().len() + self.thread_writes() + apart
    }

    /// Whether commits fail.
    #[must_use]
    pub fn refuses_commits(&self) -> bool {
        self.away.load(Ordering::SeqCst)
    }

    /// Thread writes outside of commits, including failed ones.
    #[must_use]
    pub fn thread_writes(&self) -> usize {
        self.threads.load(Ordering::SeqCst)
    }

    /// Pointers to tasks outside of commits, including failed ones.
    #[must_use]
    pub fn pointers(&self) -> usize {
        self.pointers.load(Ordering::SeqCst)
    }

    /// Task loads, including those that found nothing.
    #[must_use]
    pub fn loads(&self) -> usize {
        self.loads.load(Ordering::SeqCst)
    }

    /// Sets whether commits fail from now on.
    pub fn refuse_commits(&self, away: bool) {
        self.away.store(away, Ordering::SeqCst);
    }

    /// Sets whether writes of threads and pointers outside of commits fail from now on.
    pub fn refuse_threads(&self, away: bool) {
        self.threads_away.store(away, Ordering::SeqCst);
    }

    /// Sets whether objects can neither be read nor written from now on.
    pub fn refuse_objects(&self, away: bool) {
        self.objects_away.store(away, Ordering::SeqCst);
    }

    /// Sets whether lists are empty from now on, as from an index that lags far behind.
    pub fn lose_lists(&self, lost: bool) {
        self.lists_lost.store(lost, Ordering::SeqCst);
    }

    /// Sets whether an object that is to be copied is gone from now on, as after its
    /// removal since it was checked.
    pub fn lose_sources(&self, lost: bool) {
        self.sources_lost.store(lost, Ordering::SeqCst);
    }

    /// Pages of tasks that were read: of the index, or of the pointers of a context.
    #[must_use]
    pub fn list_reads(&self) -> usize {
        self.list_reads.load(Ordering::SeqCst)
    }

    /// Sets how many tasks of the caller a page reads before the filter applies, as in a
    /// page of a DynamoDB index.
    pub fn read_at_most(&self, tasks: usize) {
        self.read_max.store(tasks, Ordering::SeqCst);
    }

    /// Sets the duration of each thread read and each commit.
    pub fn take(&self, time: Duration) {
        let millis = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        self.latency_ms.store(millis, Ordering::SeqCst);
    }

    /// Fails when `away` is set.
    fn reach(&self, away: &AtomicBool) -> Result<(), StoreError> {
        if away.load(Ordering::SeqCst) {
            return Err(StoreError::Unavailable(STORE_CANARY.to_owned()));
        }
        Ok(())
    }

    async fn slowly(&self) {
        match self.latency_ms.load(Ordering::SeqCst) {
            0 => {}
            millis => tokio::time::sleep(Duration::from_millis(millis)).await,
        }
    }

    /// Provides URLs for objects from now on; a URL contains the key and the lifetime in
    /// seconds.
    pub fn give_urls(&self) {
        self.urls.store(true, Ordering::SeqCst);
    }

    fn url(&self, key: &str, lifetime: Duration) -> Option<String> {
        let given = self.urls.load(Ordering::SeqCst);
        let seconds = lifetime.as_secs();
        given.then(|| format!("https://bucket.example/{key}?seconds={seconds}"))
    }

    /// Blocks commits until [`Watch::release`].
    pub fn hold(&self) {
        self.open.send_replace(false);
    }

    /// Lets commits continue.
    pub fn release(&self) {
        self.open.send_replace(true);
    }

    /// Sets whether reads of objects block.
    pub fn hold_objects(&self, held: bool) {
        self.objects_open.send_replace(!held);
    }

    fn list(&self) -> MutexGuard<'_, Vec<Commit>> {
        self.commits.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a query reads a whole thread.
fn reads_thread(query: &Query) -> bool {
    matches!(&query.range, Range::Between(Value::Text(first), _) if first == "META")
}

/// Whether a query reads the log of a task up to its own item.
fn reads_log(query: &Query) -> bool {
    matches!(&query.range, Range::Between(_, Value::Text(last)) if last == "META")
}

/// Whether a query reads the tasks of a context.
fn reads_pointers(query: &Query) -> bool {
    matches!(&query.range, Range::Between(Value::Text(first), _) if first.starts_with("TASK#"))
}

/// Whether a write puts or removes an item of this kind. A later TTL does neither.
fn stores(write: &Write, kind: ItemKind) -> bool {
    let mut statements = write.statements.iter();
    statements.any(|statement| {
        let updates = matches!(statement.action, Action::Update(_));
        ItemKind::of(&statement.key) == kind && !updates
    })
}

#[async_trait]
impl TableHooks for Watched {
    async fn get(&self, table: &dyn Table, keys: &[Key]) -> Result<Vec<Item>, StoreError> {
        let tasks = keys
            .iter()
            .filter(|key| ItemKind::of(key) == ItemKind::Task);
        self.loads.fetch_add(tasks.count(), Ordering::SeqCst);
        let found = table.get(keys).await;
        if reads(keys, ItemKind::Thread) {
            self.slowly().await;
        }
        found
    }

    async fn query(&self, table: &dyn Table, query: &Query) -> Result<QueryPage, StoreError> {
        let lists = query.partition.source() == QuerySource::Lists;
        if lists && self.lists_lost.load(Ordering::SeqCst) {
            return Ok(QueryPage::default());
        }
        if reads_log(query) {
            self.loads.fetch_add(1, Ordering::SeqCst);
        }
        if (lists && !query.count) || reads_pointers(query) {
            self.list_reads.fetch_add(1, Ordering::SeqCst);
        }
        let mut query = query.clone();
        if lists {
            let most = self.read_max.load(Ordering::SeqCst);
            query.limit = Some(query.limit.unwrap_or(most).min(most));
        }
        let found = table.query(&query).await;
        if reads_thread(&query) {
            self.slowly().await;
        }
        found
    }

    async fn write(&self, table: &dyn Table, write: Write) -> Result<WriteResult, StoreError> {
        if let Some(task) = committed_task(&write) {
            self.list().push(Commit {
                task: task.id.clone(),
                version: task.version,
                state: task.state(),
            });
            let mut open = self.open.subscribe();
            // The store owns the sender, so waiting cannot fail.
            open.wait_for(|open| *open).await.ok();
            self.reach(&self.away)?;
            self.slowly().await;
        } else if stores(&write, ItemKind::Task) {
            self.reach(&self.away)?;
        } else if writes(&write, ItemKind::Thread) {
            self.threads.fetch_add(1, Ordering::SeqCst);
            self.reach(&self.away)?;
            self.reach(&self.threads_away)?;
        } else if stores(&write, ItemKind::Pointer) {
            self.pointers.fetch_add(1, Ordering::SeqCst);
            self.reach(&self.threads_away)?;
        } else if stores(&write, ItemKind::Push) {
            self.pushes.fetch_add(1, Ordering::SeqCst);
        }
        table.write(write).await
    }
}

#[async_trait]
impl BlobHooks for Watched {
    async fn get(&self, blobs: &dyn Blobs, key: &str) -> Result<Option<Bytes>, StoreError> {
        let mut open = self.objects_open.subscribe();
        // The store owns the sender, so waiting cannot fail.
        open.wait_for(|open| *open).await.ok();
        self.reach(&self.objects_away)?;
        blobs.get(key).await
    }

    async fn open(&self, blobs: &dyn Blobs, key: &str) -> Result<Option<BlobReader>, StoreError> {
        self.reach(&self.objects_away)?;
        blobs.open(key).await
    }

    async fn put(&self, blobs: &dyn Blobs, key: &str, bytes: Bytes) -> Result<(), StoreError> {
        self.blobs.fetch_add(1, Ordering::SeqCst);
        blobs.put(key, bytes).await
    }

    async fn put_for(
        &self,
        blobs: &dyn Blobs,
        owner: &BlobOwner,
        key: &str,
        bytes: Bytes,
    ) -> Result<(), StoreError> {
        self.blobs.fetch_add(1, Ordering::SeqCst);
        // The bucket answers for a thread: only the files of tasks are away.
        if matches!(owner, BlobOwner::Task(_)) {
            self.reach(&self.objects_away)?;
        }
        blobs.put_for(owner, key, bytes).await
    }

    async fn put_from(
        &self,
        blobs: &dyn Blobs,
        task: &TaskKey,
        key: &str,
        source: &mut BlobReader,
    ) -> Result<Measured, StoreError> {
        self.blobs.fetch_add(1, Ordering::SeqCst);
        self.reach(&self.objects_away)?;
        blobs.put_from(task, key, source).await
    }

    /// Replaces an existing object, like an S3 copy without a condition.
    async fn copy(
        &self,
        blobs: &dyn Blobs,
        task: &TaskKey,
        from: &Blob,
        to: &str,
    ) -> Result<bool, StoreError> {
        self.blobs.fetch_add(1, Ordering::SeqCst);
        blobs.remove(&[to.to_owned()]).await?;
        if self.sources_lost.load(Ordering::SeqCst) {
            blobs.remove(std::slice::from_ref(&from.key)).await?;
        }
        blobs.copy(task, from, to).await
    }

    async fn upload_url(
        &self,
        _: &dyn Blobs,
        terms: &UploadTerms<'_>,
        _: Timestamp,
        lifetime: Duration,
    ) -> Result<Option<UploadUrl>, StoreError> {
        let url = self.url(terms.key, lifetime);
        Ok(url.map(|url| UploadUrl {
            url,
            headers: Vec::new(),
        }))
    }
}
