//! A memory store that counts writes, and can be set to fail or to wait.

use a2a_lambda::store::memory::MemoryStore;
use a2a_lambda::store::queue::OpenTask;
use a2a_lambda::store::{
    BlobReader, Blobs, Committed, Measured, ReadBlobs, RecordPage, RecordQuery, StoreError, Tail,
    TaskWrite, ThreadRecord, ThreadWrite, UploadTerms, UploadUrl,
};
use a2a_lambda::task::{
    Blob, ContextId, Owner, PushRecord, TaskId, TaskKey, TaskRecord, TaskState, ThreadKey,
    Timestamp,
};
use async_trait::async_trait;
use bytes::Bytes;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
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

/// The memory store with counters and switches.
#[derive(Debug)]
pub struct WatchedStore {
    inner: MemoryStore,
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

impl Default for WatchedStore {
    fn default() -> Self {
        Self {
            inner: MemoryStore::new(),
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

impl WatchedStore {
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

    /// Pages of tasks that were read.
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

    /// Blocks commits until [`WatchedStore::release`].
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

    /// The memory store inside.
    #[must_use]
    pub const fn memory(&self) -> &MemoryStore {
        &self.inner
    }

    /// Removes expired records, as DynamoDB does some time after their expiry.
    pub fn clean_up(&self, now: Timestamp) {
        self.inner.clean_up(now);
    }

    fn list(&self) -> MutexGuard<'_, Vec<Commit>> {
        self.commits.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl WrapTasks for WatchedStore {
    fn tasks(&self) -> &dyn WriteTasks {
        &self.inner
    }

    async fn load(
        &self,
        owner: &Owner,
        id: &TaskId,
        now: Timestamp,
    ) -> Result<Option<TaskRecord>, StoreError> {
        self.loads.fetch_add(1, Ordering::SeqCst);
        self.inner.records.load(owner, id, now).await
    }

    async fn head(
        &self,
        owner: &Owner,
        id: &TaskId,
        now: Timestamp,
    ) -> Result<Option<TaskRecord>, StoreError> {
        self.loads.fetch_add(1, Ordering::SeqCst);
        self.inner.records.head(owner, id, now).await
    }

    async fn heads(
        &self,
        tasks: &[OpenTask],
        now: Timestamp,
    ) -> Result<Vec<TaskRecord>, StoreError> {
        self.loads.fetch_add(tasks.len(), Ordering::SeqCst);
        self.inner.records.heads(tasks, now).await
    }

    async fn tail(
        &self,
        owner: &Owner,
        id: &TaskId,
        after: u64,
        now: Timestamp,
    ) -> Result<Option<Tail>, StoreError> {
        self.loads.fetch_add(1, Ordering::SeqCst);
        self.inner.records.tail(owner, id, after, now).await
    }

    async fn list(&self, owner: &Owner, query: &RecordQuery) -> Result<RecordPage, StoreError> {
        if self.lists_lost.load(Ordering::SeqCst) {
            return Ok(RecordPage::default());
        }
        self.list_reads.fetch_add(1, Ordering::SeqCst);
        let most = self.read_max.load(Ordering::SeqCst);
        if most == usize::MAX {
            return self.inner.records.list(owner, query).await;
        }
        let any = RecordQuery {
            context_id: None,
            limit: most,
            ..query.clone()
        };
        let mut page = self.inner.records.list(owner, &any).await?;
        page.records.retain(|record| query.matches(owner, record));
        Ok(page)
    }

    async fn put_pointer(&self, record: &TaskRecord, until: Timestamp) -> Result<(), StoreError> {
        self.pointers.fetch_add(1, Ordering::SeqCst);
        self.reach(&self.threads_away)?;
        self.inner.records.put_pointer(record, until).await
    }

    async fn commit(&self, write: &TaskWrite) -> Result<Committed, StoreError> {
        self.list().push(Commit {
            task: write.record.id().clone(),
            version: write.record.version(),
            state: write.record.state(),
        });
        let mut open = self.open.subscribe();
        // The store owns the sender, so waiting cannot fail.
        open.wait_for(|open| *open).await.ok();
        self.reach(&self.away)?;
        self.slowly().await;
        self.inner.records.commit(write).await
    }

    async fn tasks_in(
        &self,
        owner: &Owner,
        context: &ContextId,
        after: Option<String>,
        limit: usize,
    ) -> Result<(Vec<TaskRecord>, Option<String>), StoreError> {
        self.list_reads.fetch_add(1, Ordering::SeqCst);
        self.inner
            .records
            .tasks_in(owner, context, after, limit)
            .await
    }

    async fn remove_task(&self, record: &TaskRecord) -> Result<bool, StoreError> {
        self.reach(&self.away)?;
        self.inner.records.remove_task(record).await
    }
}

#[async_trait]
impl WrapThreads for WatchedStore {
    fn threads(&self) -> &dyn WriteThreads {
        &self.inner
    }

    async fn load_thread(
        &self,
        owner: &Owner,
        id: &ContextId,
    ) -> Result<Option<ThreadRecord>, StoreError> {
        let found = self.inner.records.load_thread(owner, id).await;
        self.slowly().await;
        found
    }

    async fn load_thread_head(
        &self,
        owner: &Owner,
        id: &ContextId,
    ) -> Result<Option<ThreadRecord>, StoreError> {
        let found = self.inner.records.load_thread_head(owner, id).await;
        self.slowly().await;
        found
    }

    async fn put_thread(&self, write: &ThreadWrite) -> Result<bool, StoreError> {
        self.threads.fetch_add(1, Ordering::SeqCst);
        self.reach(&self.away)?;
        self.reach(&self.threads_away)?;
        self.inner.records.put_thread(write).await
    }
}

#[async_trait]
impl WrapBlobs for WatchedStore {
    fn blobs(&self) -> &dyn Blobs {
        &self.inner
    }

    async fn get(&self, key: &str) -> Result<Option<Bytes>, StoreError> {
        let mut open = self.objects_open.subscribe();
        // The store owns the sender, so waiting cannot fail.
        open.wait_for(|open| *open).await.ok();
        self.reach(&self.objects_away)?;
        self.inner.blobs.get(key).await
    }

    async fn open(&self, key: &str) -> Result<Option<BlobReader>, StoreError> {
        self.reach(&self.objects_away)?;
        self.inner.blobs.open(key).await
    }

    async fn put(&self, key: &str, bytes: Bytes) -> Result<(), StoreError> {
        self.blobs.fetch_add(1, Ordering::SeqCst);
        self.inner.blobs.put(key, bytes).await
    }

    async fn put_for(&self, task: &TaskKey, key: &str, bytes: Bytes) -> Result<(), StoreError> {
        self.blobs.fetch_add(1, Ordering::SeqCst);
        self.reach(&self.objects_away)?;
        self.inner.blobs.put_for(task, key, bytes).await
    }

    async fn put_for_thread(
        &self,
        thread: &ThreadKey,
        key: &str,
        bytes: Bytes,
    ) -> Result<(), StoreError> {
        self.blobs.fetch_add(1, Ordering::SeqCst);
        self.inner.blobs.put_for_thread(thread, key, bytes).await
    }

    async fn put_from(
        &self,
        task: &TaskKey,
        key: &str,
        source: &mut BlobReader,
    ) -> Result<Measured, StoreError> {
        self.blobs.fetch_add(1, Ordering::SeqCst);
        self.reach(&self.objects_away)?;
        self.inner.blobs.put_from(task, key, source).await
    }

    /// Replaces an existing object, like an S3 copy without a condition.
    async fn copy(&self, task: &TaskKey, from: &Blob, to: &str) -> Result<bool, StoreError> {
        self.blobs.fetch_add(1, Ordering::SeqCst);
        self.inner.blobs.remove(&[to.to_owned()]).await?;
        if self.sources_lost.load(Ordering::SeqCst) {
            let gone = std::slice::from_ref(&from.key);
            self.inner.blobs.remove(gone).await?;
        }
        self.inner.blobs.copy(task, from, to).await
    }

    async fn upload_url(
        &self,
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

#[async_trait]
impl WrapPushes for WatchedStore {
    fn webhooks(&self) -> &dyn Pushes {
        &self.inner
    }

    async fn put_push(&self, push: &PushRecord) -> Result<(), StoreError> {
        self.pushes.fetch_add(1, Ordering::SeqCst);
        self.inner.records.put_push(push).await
    }
}
