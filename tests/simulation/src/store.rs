//! The memory store behind points and faults.

use crate::hub::{Fate, Hub};
use crate::mutant::Mutant;
use a2a_lambda::store::memory::MemoryStore;
use a2a_lambda::store::queue::{OpenTask, SweepTasks};
use a2a_lambda::store::{
    Blobs, Committed, Download, Expect, Keyed, ReadTasks, ReadThreads, RecordPage, RecordQuery,
    StoreError, TaskWrite, ThreadPage, ThreadQuery, ThreadRecord, ThreadWrite, UploadTerms,
    UploadUrl, WriteTasks, WriteThreads, stored,
};
use a2a_lambda::task::{ContextId, KeyHash, Owner, TaskId, TaskRecord, Timestamp};
use async_trait::async_trait;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The store of one history.
#[derive(Debug)]
pub(crate) struct SimStore {
    pub(crate) memory: MemoryStore,
    hub: Arc<Hub>,
    /// Keys as a planted fault keeps them: apart from their tasks.
    loose: Mutex<BTreeMap<KeyHash, (String, TaskId)>>,
}

/// Attempts of the SDK.
const ATTEMPTS: u32 = 3;

fn away() -> StoreError {
    StoreError::Unavailable("simulated".to_owned())
}

impl SimStore {
    pub(crate) fn new(hub: Arc<Hub>) -> Self {
        let memory = MemoryStore::new();
        let loose = Mutex::default();
        Self { memory, hub, loose }
    }

    /// One call as the SDK makes it: it is attempted again, unless the process has
    /// used up what it may repeat.
    async fn call<T, F>(&self, mut call: impl FnMut() -> F + Send) -> Result<T, StoreError>
    where
        T: Send,
        F: Future<Output = Result<T, StoreError>> + Send,
    {
        for _ in 1..ATTEMPTS {
            match self.attempt(&mut call).await {
                Err(StoreError::Unavailable(_)) if self.hub.world().repeats() => {}
                decided => return decided,
            }
        }
        self.attempt(&mut call).await
    }

    /// One attempt: it can be stopped before and after, fail before, and lose its
    /// answer.
    async fn attempt<T, F>(&self, call: &mut (impl FnMut() -> F + Send)) -> Result<T, StoreError>
    where
        T: Send,
        F: Future<Output = Result<T, StoreError>> + Send,
    {
        self.hub.pause().await;
        let fate = self.hub.world().fate();
        let done = match fate {
            Fate::Refused => Err(away()),
            Fate::Fine => call().await,
            Fate::Unheard => {
                call().await?;
                Err(away())
            }
            Fate::Twice => {
                call().await?;
                call().await
            }
        };
        self.hub.pause().await;
        done
    }

    /// Stores a commit, and tells the oracle and the stream if it is new.
    async fn store(&self, write: &TaskWrite) -> Result<Committed, StoreError> {
        let mutant = self.hub.world().mutant;
        if mutant == Some(Mutant::LostCommit) && self.hub.world().chance.in_thousand(20) {
            return Ok(Committed::Done);
        }
        if self.keeps_keys_loose() && write.key.is_some() {
            return self.store_loosely(write).await;
        }
        let planted = match mutant {
            Some(Mutant::BlindCommit) => Some(self.blind(write).await?),
            Some(Mutant::BlindThread) => Some(self.blind_thread(write).await?),
            _ => None,
        };
        let write = planted.as_ref().unwrap_or(write);
        let committed = self.memory.commit(write).await?;
        match committed {
            Committed::Done => {
                if self.is_new(write) || mutant != Some(Mutant::WriteIdIgnored) {
                    return Ok(Committed::Done);
                }
                let record = &write.record;
                let found = self.memory.load(record.owner(), record.id(), write.now);
                Ok(Committed::Conflict(found.await?.map(Box::new)))
            }
            Committed::Conflict(Some(current)) if mutant == Some(Mutant::EpochIgnored) => Ok(
                Committed::Conflict(Some(Box::new(epoch_of(&current, &write.record)?))),
            ),
            other => Ok(other),
        }
    }

    /// Tells the oracle and the stream of a commit, once.
    fn is_new(&self, write: &TaskWrite) -> bool {
        let mut world = self.hub.world();
        let new = !world.oracle.knows(write);
        if new {
            world.oracle.committed(write);
            world.messages.streamed(&write.record);
        }
        new
    }

    fn keeps_keys_loose(&self) -> bool {
        let world = self.hub.world();
        world.is(Mutant::KeyAfterTask) || world.is(Mutant::KeyUnchecked)
    }

    fn loose(&self) -> MutexGuard<'_, BTreeMap<KeyHash, (String, TaskId)>> {
        self.loose.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn load_loose(
        &self,
        owner: &Owner,
        key: &KeyHash,
        now: Timestamp,
    ) -> Result<Option<Keyed>, StoreError> {
        let Some((content, task)) = self.loose().get(key).cloned() else {
            return Ok(None);
        };
        let found = self.memory.load(owner, &task, now).await?;
        Ok(found.map(|record| Keyed { content, record }))
    }

    /// A keyed commit in two writes, with others between.
    async fn store_loosely(&self, write: &TaskWrite) -> Result<Committed, StoreError> {
        let Some(key) = &write.key else {
            return self.memory.commit(write).await;
        };
        let owner = write.record.owner();
        let found = self.load_loose(owner, &key.key, write.now).await?;
        let own = |keyed: &Keyed| write.id().is_some_and(|id| keyed.record.was_written_by(id));
        if let Some(keyed) = found.filter(|keyed| !own(keyed)) {
            return Ok(Committed::KeyTaken(Box::new(keyed)));
        }
        if self.hub.world().is(Mutant::KeyUnchecked) {
            self.hub.pause().await;
        }
        let bare = TaskWrite {
            key: None,
            ..write.clone()
        };
        let committed = self.memory.commit(&bare).await?;
        if committed == Committed::Done {
            self.is_new(&bare);
            if self.hub.world().is(Mutant::KeyAfterTask) {
                self.hub.pause().await;
            }
            let named = (key.content.clone(), write.record.id().clone());
            self.loose().insert(key.key.clone(), named);
        }
        Ok(committed)
    }

    async fn blind(&self, write: &TaskWrite) -> Result<TaskWrite, StoreError> {
        let record = &write.record;
        let found = self.memory.load(record.owner(), record.id(), write.now);
        let expect = found
            .await?
            .map_or(Expect::Absent, |stored| Expect::of(&stored));
        Ok(TaskWrite {
            expect,
            ..write.clone()
        })
    }

    async fn blind_thread(&self, write: &TaskWrite) -> Result<TaskWrite, StoreError> {
        let mut write = write.clone();
        if let Some(thread) = &mut write.thread {
            let (owner, id) = (&thread.record.owner, &thread.record.context_id);
            let found = self.memory.load_thread(owner, id).await?;
            thread.expect = found.map_or(0, |stored| stored.version);
        }
        Ok(write)
    }

    fn blob_key(&self, key: &str) -> String {
        if self.hub.world().is(Mutant::OneBlobKey) {
            let cut = key.rfind('/').unwrap_or(key.len());
            return key.chars().take(cut).collect();
        }
        key.to_owned()
    }
}

/// `current`, as if its epoch were that of `mine`.
fn epoch_of(current: &TaskRecord, mine: &TaskRecord) -> Result<TaskRecord, StoreError> {
    let mut form = stored::encode(current);
    if let Some(epoch) = form.get_mut("e") {
        *epoch = mine.epoch().into();
    }
    stored::decode(form)
}

#[async_trait]
impl ReadTasks for SimStore {
    async fn load(
        &self,
        owner: &Owner,
        id: &TaskId,
        now: Timestamp,
    ) -> Result<Option<TaskRecord>, StoreError> {
        self.call(|| self.memory.load(owner, id, now)).await
    }

    async fn list(&self, owner: &Owner, query: &RecordQuery) -> Result<RecordPage, StoreError> {
        self.call(|| self.memory.list(owner, query)).await
    }

    async fn load_key(
        &self,
        owner: &Owner,
        key: &KeyHash,
        now: Timestamp,
    ) -> Result<Option<Keyed>, StoreError> {
        if self.keeps_keys_loose() {
            return self.call(|| self.load_loose(owner, key, now)).await;
        }
        self.call(|| self.memory.load_key(owner, key, now)).await
    }
}

#[async_trait]
impl WriteTasks for SimStore {
    async fn commit(&self, write: &TaskWrite) -> Result<Committed, StoreError> {
        self.call(|| self.store(write)).await
    }

    async fn tasks_in(
        &self,
        owner: &Owner,
        context: &ContextId,
        after: Option<String>,
        limit: usize,
    ) -> Result<(Vec<TaskRecord>, Option<String>), StoreError> {
        self.call(|| self.memory.tasks_in(owner, context, after.clone(), limit))
            .await
    }

    async fn ended_task(
        &self,
        owner: &Owner,
        id: &TaskId,
        now: Timestamp,
    ) -> Result<Option<TaskRecord>, StoreError> {
        self.call(|| self.memory.ended_task(owner, id, now)).await
    }

    async fn remove_task(&self, record: &TaskRecord) -> Result<bool, StoreError> {
        self.call(|| self.memory.remove_task(record)).await
    }

    async fn heartbeat(
        &self,
        record: &TaskRecord,
        lease_until: Timestamp,
    ) -> Result<bool, StoreError> {
        self.call(|| self.memory.heartbeat(record, lease_until))
            .await
    }
}

#[async_trait]
impl SweepTasks for SimStore {
    async fn open_tasks(
        &self,
        shard: u32,
        after: Option<String>,
        limit: usize,
    ) -> Result<(Vec<OpenTask>, Option<String>), StoreError> {
        self.call(|| self.memory.open_tasks(shard, after.clone(), limit))
            .await
    }
}

#[async_trait]
impl ReadThreads for SimStore {
    async fn load_thread(
        &self,
        owner: &Owner,
        id: &ContextId,
    ) -> Result<Option<ThreadRecord>, StoreError> {
        self.call(|| self.memory.load_thread(owner, id)).await
    }

    async fn list_threads(
        &self,
        owner: &Owner,
        query: &ThreadQuery,
    ) -> Result<ThreadPage, StoreError> {
        self.call(|| self.memory.list_threads(owner, query)).await
    }
}

#[async_trait]
impl WriteThreads for SimStore {
    async fn put_thread(&self, write: &ThreadWrite) -> Result<bool, StoreError> {
        self.call(|| async {
            let stored = self.memory.put_thread(write).await?;
            if stored {
                self.hub.world().oracle.thread_kept(write);
            }
            Ok(stored)
        })
        .await
    }

    async fn forget_state(&self, record: &ThreadRecord) -> Result<(), StoreError> {
        self.call(|| self.memory.forget_state(record)).await
    }

    async fn remove_thread(&self, record: &ThreadRecord) -> Result<bool, StoreError> {
        self.call(|| self.memory.remove_thread(record)).await
    }
}

#[async_trait]
impl Blobs for SimStore {
    async fn put(&self, key: &str, bytes: Bytes) -> Result<(), StoreError> {
        let key = self.blob_key(key);
        self.call(|| async {
            let mutant = self.hub.world().mutant;
            if mutant == Some(Mutant::LostBlob) {
                return Ok(());
            }
            let put = self.memory.put(&key, bytes.clone()).await;
            if mutant == Some(Mutant::OneBlobKey) {
                return Ok(());
            }
            put
        })
        .await
    }

    async fn get(&self, key: &str) -> Result<Option<Bytes>, StoreError> {
        let key = self.blob_key(key);
        self.call(|| self.memory.get(&key)).await
    }

    async fn keys(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<String>, StoreError> {
        self.call(|| self.memory.keys(prefix, after, limit)).await
    }

    async fn remove(&self, keys: &[String]) -> Result<(), StoreError> {
        self.call(|| self.memory.remove(keys)).await
    }

    async fn read_url(
        &self,
        _: &Download<'_>,
        _: Timestamp,
        _: Duration,
    ) -> Result<Option<String>, StoreError> {
        Ok(None)
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
