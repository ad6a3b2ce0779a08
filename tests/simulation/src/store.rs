//! The memory store with points and faults in front of it.

use crate::hub::{Fate, Hub, Late, Service};
use crate::mutant::Mutant;
use crate::oracle::{Life, Oracle};
use a2a_lambda::store::memory::MemoryStore;
use a2a_lambda::store::queue::{ObjectsPlace, OpenTask, TaskImage};
use a2a_lambda::store::{
    BlobHead, Blobs, Committed, Download, Expect, ExpiringThread, Keyed, ProjectedTask, Projection,
    ReadBlobs, RecordPage, RecordQuery, StateRemoved, StoreError, Tail, TaskWrite, ThreadPage,
    ThreadQuery, ThreadRecord, ThreadWrite, UploadTerms, UploadUrl, stored,
};
use a2a_lambda::task::{
    ContextId, Delivery, KeyHash, Owner, PushId, PushLease, PushRecord, TaskId, TaskKey,
    TaskRecord, ThreadKey, Timestamp, WriteId,
};
use async_trait::async_trait;
use bytes::Bytes;
use futures::FutureExt as _;
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Write ids that a stored task remembers here. The runtime keeps eight; with two, a
/// history can exceed the number.
const WRITES: usize = 2;

/// The store of one history.
#[derive(Debug)]
pub(crate) struct SimStore {
    pub(crate) memory: MemoryStore,
    hub: Arc<Hub>,
    /// Idempotency keys as a planted fault keeps them: apart from their tasks.
    loose: Mutex<BTreeMap<KeyHash, (String, TaskId)>>,
    /// The epochs that an answer has raised.
    resumed: Mutex<BTreeSet<(Life, u64)>>,
}

/// The unit of points that pass during the wait for a lost reply: up to three times as
/// many.
const HELD: u64 = 8;
/// Attempts of the AWS SDK per call.
const ATTEMPTS: u32 = 3;

fn away() -> StoreError {
    StoreError::Unavailable("simulated".to_owned())
}

impl SimStore {
    pub(crate) fn new(hub: Arc<Hub>) -> Self {
        let memory = MemoryStore::new();
        Self {
            memory,
            hub,
            loose: Mutex::default(),
            resumed: Mutex::default(),
        }
    }

    /// One call of the table.
    async fn call<T, F>(&self, call: impl FnMut() -> F + Send) -> Result<T, StoreError>
    where
        T: Send,
        F: Future<Output = Result<T, StoreError>> + Send,
    {
        self.call_of(Service::Table, call).await
    }

    /// One call as the SDK makes it: repeated on failure, unless the process has used up its
    /// retries.
    async fn call_of<T, F>(
        &self,
        service: Service,
        mut call: impl FnMut() -> F + Send,
    ) -> Result<T, StoreError>
    where
        T: Send,
        F: Future<Output = Result<T, StoreError>> + Send,
    {
        for _ in 1..ATTEMPTS {
            match self.attempt(service, &mut call).await {
                Err(StoreError::Unavailable(_)) if self.hub.world().repeats() => {}
                decided => return decided,
            }
        }
        self.attempt(service, &mut call).await
    }

    /// One attempt. It can be stopped before and after, fail before it takes effect, and lose
    /// its reply.
    async fn attempt<T, F>(
        &self,
        service: Service,
        call: &mut (impl FnMut() -> F + Send),
    ) -> Result<T, StoreError>
    where
        T: Send,
        F: Future<Output = Result<T, StoreError>> + Send,
    {
        self.hub.pause().await;
        if self.hub.world().away == Some(service) {
            return Err(away());
        }
        let fate = self.hub.world().fate();
        let done = match fate {
            Fate::Refused => Err(away()),
            Fate::Fine => call().await,
            Fate::Unheard => {
                call().await?;
                self.held().await;
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

    /// Lets other processes run while the caller waits for a reply that is lost.
    async fn held(&self) {
        let points = self.hub.world().chance.below(4) * HELD;
        for _ in 0..points {
            self.hub.pause().await;
        }
    }

    /// Stores a commit, and passes it to the oracle and the stream if it is new.
    async fn store(&self, write: &TaskWrite) -> Result<Committed, StoreError> {
        let mutant = self.hub.world().mutant;
        if mutant == Some(Mutant::LostCommit) && self.hub.world().chance.in_thousand(20) {
            return Ok(Committed::Done);
        }
        if self.keeps_keys_loose() && write.key.is_some() {
            return self.store_loosely(write).await;
        }
        let releases = write.record.not_before().is_some();
        if mutant == Some(Mutant::ReleaseLost) && releases {
            return Err(away());
        }
        let mut write = match mutant {
            Some(Mutant::ReleaseCounted) if releases => TaskWrite {
                record: with_an_attempt_more(&write.record)?,
                ..write.clone()
            },
            Some(Mutant::BlindCommit) => self.blind(write).await?,
            Some(Mutant::BlindThread) => self.blind_thread(write).await?,
            Some(Mutant::IncarnationIgnored) => self.of_any_task(write).await?,
            _ => write.clone(),
        };
        write.record.forget_writes(WRITES);
        let write = &write;
        if self.is_made_again(write).await? {
            self.hub.world().oracle.abandoned = true;
        }
        let committed = self.memory.commit(write).await?;
        match committed {
            Committed::Done if write.record.state().is_interrupted() && self.takes_late() => {
                self.is_new(write);
                while self.hub.world().late == Late::Held {
                    self.hub.pause().await;
                }
                Err(away())
            }
            Committed::Done => {
                if self.is_new(write) || mutant != Some(Mutant::WriteIdIgnored) {
                    return Ok(Committed::Done);
                }
                let record = &write.record;
                let found = self.memory.load(record.owner(), record.id(), write.now);
                Ok(Committed::Conflict(found.await?))
            }
            Committed::Conflict(Some(current)) => {
                let seen = match mutant {
                    Some(Mutant::EpochKeptByResume) if self.is_resumed(&current, &write.record) => {
                        with(&current, "epoch", &write.record)?
                    }
                    _ => disguised(mutant, &current, &write.record)?,
                };
                Ok(Committed::Conflict(Some(seen)))
            }
            other => Ok(other),
        }
    }

    /// Whether a create is repeated after its reply was lost and its task was deleted and
    /// removed. No store can recognise this repeat, so the history ends without a verdict.
    async fn is_made_again(&self, write: &TaskWrite) -> Result<bool, StoreError> {
        if write.expect != Expect::Absent || !self.hub.world().oracle.knows(write) {
            return Ok(false);
        }
        let stored = self.memory.load_by_key(&write.record.key()).await?;
        let life = Life::of(&write.record);
        Ok(stored.is_none_or(|stored| Life::of(&stored) != life))
    }

    /// Passes a commit to the oracle and the stream, once. Returns whether it was new.
    fn is_new(&self, write: &TaskWrite) -> bool {
        let world = self.hub.world();
        let new = !world.oracle.knows(write);
        drop(world);
        if new {
            self.note_resume(&write.record);
            let mut world = self.hub.world();
            world.oracle.committed(write);
            world.messages.streamed(&write.record);
        }
        new
    }

    /// Records the epoch if this stored commit is that of an answer.
    fn note_resume(&self, record: &TaskRecord) {
        let resumes = {
            let world = self.hub.world();
            let before = world.oracle.tasks.get(&Life::of(record));
            before.is_some_and(|it| TaskImage::of(&it.record).turn < TaskImage::of(record).turn)
        };
        if resumes {
            let raised = (Life::of(record), record.epoch());
            self.resumed().insert(raised);
        }
    }

    /// Whether only an answer has raised the epoch that `mine` has.
    fn is_resumed(&self, current: &TaskRecord, mine: &TaskRecord) -> bool {
        let raised = (Life::of(current), current.epoch());
        mine.epoch() + 1 == current.epoch() && self.resumed().contains(&raised)
    }

    fn resumed(&self) -> MutexGuard<'_, BTreeSet<(Life, u64)>> {
        self.resumed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the reply to the commit of a question is held back.
    fn takes_late(&self) -> bool {
        let late = &mut self.hub.world().late;
        let takes = *late == Late::Next;
        if takes {
            *late = Late::Held;
        }
        takes
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

    /// Writes a keyed commit in two writes, with other processes in between.
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

    /// The write as a store applies it that does not check the incarnation.
    async fn of_any_task(&self, write: &TaskWrite) -> Result<TaskWrite, StoreError> {
        let blind = self.blind(write).await?;
        let version = |expect: &Expect| match expect {
            Expect::Absent => None,
            Expect::Version { version, .. } => Some(*version),
        };
        let same = version(&write.expect).is_some_and(|it| version(&blind.expect) == Some(it));
        Ok(if same { blind } else { write.clone() })
    }

    async fn beat(&self, record: &TaskRecord, until: Timestamp) -> Result<bool, StoreError> {
        if self.hub.world().is(Mutant::IncarnationIgnored)
            && let Some(stored) = self.memory.load_by_key(&record.key()).await?
            && stored.epoch() == record.epoch()
        {
            return self.memory.heartbeat(&stored, until).await;
        }
        self.memory.heartbeat(record, until).await
    }

    async fn note(
        &self,
        push: &PushRecord,
        holder: &WriteId,
        delivery: &Delivery,
    ) -> Result<bool, StoreError> {
        if self.hub.world().is(Mutant::LeaseStays) && delivery.lease.is_none() {
            return Ok(true);
        }
        let noted = self.memory.note_delivery(push, holder, delivery).await?;
        let (hook, cursor) = (&push.listener.id, delivery.cursor);
        let until = delivery.lease.as_ref().map(|lease| lease.until.as_millis());
        self.hub
            .world()
            .oracle
            .note(|| format!("{hook} is at event {cursor}, leased until {until:?}: {noted}"));
        Ok(noted)
    }

    async fn lease(
        &self,
        push: &PushRecord,
        lease: &PushLease,
        now: Timestamp,
        clean_at: Timestamp,
    ) -> Result<bool, StoreError> {
        let leased = self.memory.lease_push(push, lease, now, clean_at).await?;
        let (hook, until) = (&push.listener.id, lease.until.as_millis());
        self.hub
            .world()
            .oracle
            .note(|| format!("{hook} is leased until {until}: {leased}"));
        Ok(leased)
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

    async fn find_key(
        &self,
        owner: &Owner,
        key: &KeyHash,
        now: Timestamp,
    ) -> Result<Option<Keyed>, StoreError> {
        if self.keeps_keys_loose() {
            return self.load_loose(owner, key, now).await;
        }
        self.memory.load_key(owner, key, now).await
    }

    async fn keep_thread(&self, write: &ThreadWrite) -> Result<bool, StoreError> {
        let stored = self.memory.put_thread(write).await?;
        if stored {
            self.hub.world().oracle.thread_kept(write);
        }
        Ok(stored)
    }

    async fn drop_thread(&self, record: &ThreadRecord) -> Result<bool, StoreError> {
        let gone = self.memory.remove_thread(record).await?;
        if gone {
            self.hub.world().oracle.thread_gone(&record.context_id);
        }
        Ok(gone)
    }

    async fn keep_blob(
        &self,
        task: Option<&TaskKey>,
        key: &str,
        bytes: Bytes,
    ) -> Result<(), StoreError> {
        let mutant = self.hub.world().mutant;
        if mutant == Some(Mutant::LostBlob) {
            return Ok(());
        }
        let put = match task {
            Some(task) => self.memory.put_for(task, key, bytes).await,
            None => self.memory.put(key, bytes).await,
        };
        if mutant == Some(Mutant::OneBlobKey) {
            return Ok(());
        }
        put
    }

    fn blob_key(&self, key: &str) -> String {
        if self.hub.world().is(Mutant::OneBlobKey) {
            let cut = key.rfind('/').unwrap_or(key.len());
            return key.chars().take(cut).collect();
        }
        key.to_owned()
    }
}

impl SimStore {
    /// The webhooks with missing events although no push queue message is left.
    pub(crate) fn unheard(&self, oracle: &Oracle) -> Vec<String> {
        let mut missed = Vec::new();
        for (life, seen) in oracle.living() {
            let record = &seen.record;
            let found = self.memory.pushes(record.owner(), record.id());
            let found = found.now_or_never().and_then(Result::ok);
            let found = found.unwrap_or_default().into_iter();
            let mine = found.filter(|push| push.incarnation == *record.incarnation());
            missed.extend(mine.filter_map(|push| oracle.missed(life, &push)));
        }
        missed
    }

    /// Stored content that no task needs any more.
    pub(crate) fn left_over(&self, oracle: &Oracle) -> Vec<String> {
        let mut left = Vec::new();
        let mut named = String::new();
        for (life, seen) in &oracle.tasks {
            let record = &seen.record;
            if !seen.ended {
                named.push_str(&stored::encode(record).to_string());
                continue;
            }
            let found = self.memory.load_by_key(&record.key()).now_or_never();
            let found = found.and_then(Result::ok).flatten();
            let same = found.is_some_and(|found| Life::of(&found) == *life);
            if same && seen.deleted.is_some() {
                left.push(format!("G19: task {life} is deleted and still stored"));
            }
        }
        let keys = self.memory.keys("", None, usize::MAX).now_or_never();
        for key in keys.and_then(Result::ok).unwrap_or_default() {
            if !named.contains(&key) {
                left.push(format!("object {key} is named by no task"));
            }
        }
        left
    }
}

/// The stored task as a commit of `mine` sees it in a conflict, with the planted fault.
fn disguised(
    mutant: Option<Mutant>,
    current: &TaskRecord,
    mine: &TaskRecord,
) -> Result<TaskRecord, StoreError> {
    match mutant {
        Some(Mutant::EpochIgnored) => with(current, "epoch", mine),
        Some(Mutant::IncarnationIgnored) => with(current, "incarnation", mine),
        _ => Ok(current.clone()),
    }
}

/// `record` with one member of its stored form taken from `other`.
fn with(record: &TaskRecord, member: &str, other: &TaskRecord) -> Result<TaskRecord, StoreError> {
    let (mut form, other) = (stored::encode(record), stored::encode(other));
    if let (Some(own), Some(theirs)) = (form.get_mut(member), other.get(member)) {
        *own = theirs.clone();
    }
    stored::decode(form)
}

/// `record` with one attempt more. The stored form leaves out the first one.
fn with_an_attempt_more(record: &TaskRecord) -> Result<TaskRecord, StoreError> {
    let mut form = stored::encode(record);
    if let Some(members) = form.as_object_mut() {
        members.insert("attempt".to_owned(), (record.attempt() + 1).into());
    }
    stored::decode(form)
}

/// The same call of the memory store, unless the simulation has its own version.
macro_rules! behind {
    ($store:ident, $part:ident, $call:ident, ($($arg:ident),*)) => {
        $part::$call(&$store.memory, $($arg),*)
    };
    ($store:ident, $part:ident, $call:ident, ($($arg:ident),*), $own:ident) => {
        $store.$own($($arg),*)
    };
}

/// Puts points before and after every call, and lets the call fail.
macro_rules! pointed {
    ($($part:ident {
        $([$plain:ident() -> $value:ty])*
        $($call:ident($($arg:ident: $type:ty),* $(,)?) -> $answer:ty $(= $own:ident)?;)*
    })+) => {$(
        #[deny(clippy::missing_trait_methods, reason = "a default has no points")]
        #[async_trait]
        impl $part for SimStore {
            $(
                fn $plain(&self) -> $value {
                    $part::$plain(&self.memory)
                }
            )*
            $(
                async fn $call(&self, $($arg: $type),*) -> Result<$answer, StoreError> {
                    self.call(|| {
                        $(let $arg = Clone::clone(&$arg);)*
                        behind!(self, $part, $call, ($($arg),*) $(, $own)?)
                    })
                    .await
                }
            )*
        }
    )+};
}

pointed! {
    ReadTasks {
        load(owner: &Owner, id: &TaskId, now: Timestamp) -> Option<TaskRecord>;
        head(owner: &Owner, id: &TaskId, now: Timestamp) -> Option<TaskRecord>;
        heads(tasks: &[OpenTask], now: Timestamp) -> Vec<TaskRecord>;
        project(head: TaskRecord, wanted: Projection, now: Timestamp) -> Option<ProjectedTask>;
        tail(owner: &Owner, id: &TaskId, after: u64, now: Timestamp) -> Option<Tail>;
        list(owner: &Owner, query: &RecordQuery) -> RecordPage;
        load_key(owner: &Owner, key: &KeyHash, now: Timestamp) -> Option<Keyed> = find_key;
    }
    WriteTasks {
        commit(write: &TaskWrite) -> Committed = store;
        put_pointer(record: &TaskRecord, until: Timestamp) -> ();
        ended_task(owner: &Owner, id: &TaskId, now: Timestamp) -> Option<TaskRecord>;
        tasks_in(
            owner: &Owner, context: &ContextId, after: Option<String>, limit: usize,
        ) -> (Vec<TaskRecord>, Option<String>);
        remove_task(record: &TaskRecord) -> bool;
        heartbeat(record: &TaskRecord, lease_until: Timestamp) -> bool = beat;
    }
    SweepTasks {
        [open_shards() -> u32]
        open_tasks(
            shard: u32, after: Option<String>, limit: usize,
        ) -> (Vec<OpenTask>, Option<String>);
    }
    SweepObjects {
        load_by_key(key: &TaskKey) -> Option<TaskRecord>;
        head_by_key(key: &TaskKey) -> Option<TaskRecord>;
        state_object(thread: &ThreadKey) -> Option<String>;
        content_objects(key: &TaskKey) -> Vec<String>;
        objects_place() -> Option<ObjectsPlace>;
        note_objects_place(place: &ObjectsPlace) -> ();
    }
    ReadThreads {
        load_thread(owner: &Owner, id: &ContextId) -> Option<ThreadRecord>;
        load_thread_head(owner: &Owner, id: &ContextId) -> Option<ThreadRecord>;
        list_threads(owner: &Owner, query: &ThreadQuery) -> ThreadPage;
    }
    WriteThreads {
        put_thread(write: &ThreadWrite) -> bool = keep_thread;
        forget_state(record: &ThreadRecord) -> ();
        remove_thread(record: &ThreadRecord) -> bool = drop_thread;
    }
    ReadPushes {
        pushes(owner: &Owner, task: &TaskId) -> Vec<PushRecord>;
    }
    WritePushes {
        put_push(push: &PushRecord) -> ();
        delete_push(owner: &Owner, task: &TaskId, id: &PushId) -> ();
    }
    DeliverPushes {
        lease_push(
            push: &PushRecord, lease: &PushLease, now: Timestamp, clean_at: Timestamp,
        ) -> bool = lease;
        note_delivery(push: &PushRecord, holder: &WriteId, delivery: &Delivery) -> bool = note;
        confirm_pushes(record: &TaskRecord) -> bool;
    }
    SweepThreads {
        [expiry_shards() -> u32]
        expiring_threads(
            shard: u32, now: Timestamp, after: Option<String>, limit: usize,
        ) -> (Vec<ExpiringThread>, Option<String>);
        note_expiry(thread: &ThreadRecord) -> ();
        remove_state(owner: &Owner, id: &ContextId, now: Timestamp) -> StateRemoved;
    }
}

#[async_trait]
impl ReadBlobs for SimStore {
    async fn get(&self, key: &str) -> Result<Option<Bytes>, StoreError> {
        let key = self.blob_key(key);
        self.call_of(Service::Bucket, || self.memory.get(&key))
            .await
    }

    async fn head(&self, key: &str) -> Result<Option<BlobHead>, StoreError> {
        self.call_of(Service::Bucket, || ReadBlobs::head(&self.memory, key))
            .await
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
impl Blobs for SimStore {
    async fn put(&self, key: &str, bytes: Bytes) -> Result<(), StoreError> {
        let key = self.blob_key(key);
        self.call_of(Service::Bucket, || {
            self.keep_blob(None, &key, bytes.clone())
        })
        .await
    }

    async fn put_for(&self, task: &TaskKey, key: &str, bytes: Bytes) -> Result<(), StoreError> {
        let key = self.blob_key(key);
        self.call_of(Service::Bucket, || {
            self.keep_blob(Some(task), &key, bytes.clone())
        })
        .await
    }

    async fn keys(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<String>, StoreError> {
        self.call_of(Service::Bucket, || self.memory.keys(prefix, after, limit))
            .await
    }

    async fn remove(&self, keys: &[String]) -> Result<(), StoreError> {
        self.call_of(Service::Bucket, || self.memory.remove(keys))
            .await
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
