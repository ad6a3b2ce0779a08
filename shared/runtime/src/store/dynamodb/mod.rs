//! Keeps tasks and threads in one DynamoDB table.
//!
//! - `key`: every partition key and sort key of the table
//! - `item`: converts records to items and back
//! - `store`: the table and its client
//! - `children`: the child items of a task that has grown
//! - `projection`: reads the child items that a projection of a task needs
//! - `large_value`: content that is too large for an item
//! - `conditional_write`: a conditional write as data; `write` runs it
//! - `outcome`: sends requests and classifies their errors
//! - `idempotency`: the idempotency keys of sends
//! - `list`: a page of tasks from the list index; `merge` joins the shards of the index,
//!   `shards` knows how many there are
//! - `contexts`: a page of contexts; `task_pointers`: the tasks of one context
//! - `open_task_index`, `expiry_index`: reads of the sweep index; `sweep`: which objects
//!   are in use
//! - `push`: push configs; `push_item` converts them to items and back
//! - `delete`: deletions; `erase_tenant`: removes all data of a tenant
//! - `stream_record`: reads the records of the table's stream
//! - `table`: creates the table for emulators
//!
//! Expiry is part of every condition, and the store checks it after every read. DynamoDB's
//! own TTL only cleans up. If the response to a write is lost, the store recognises the
//! write by its write id.

mod children;
mod conditional_write;
mod contexts;
mod delete;
mod erase_tenant;
mod expiry_index;
mod idempotency;
mod item;
mod key;
mod large_value;
mod list;
mod merge;
mod open_task_index;
mod outcome;
mod projection;
mod push;
mod push_item;
mod shards;
mod store;
mod stream_record;
mod sweep;
mod table;
mod task_pointers;
mod write;

pub use erase_tenant::{EraseError, Erasure};
pub use shards::MAX_SHARDS;
pub use store::DynamoStore;
pub use stream_record::task_image;
#[cfg(feature = "lambda")]
pub use stream_record::task_image_of_event;
pub use table::create_table;

use self::conditional_write::{ConditionalWrite, WriteKind};
use self::idempotency::KeyConflict;
use self::item::JoinedThread;
use self::large_value::ValueOwner;
use self::outcome::torn;
use self::outcome::{Check, TRIES};
use self::write::WriteResult;
use super::queue::{OpenTask, SweepTasks};
use super::{
    Committed, Keyed, ProjectedTask, Projection, ReadTasks, ReadThreads, RecordPage, RecordQuery,
    StoreError, Tail, TaskWrite, ThreadPage, ThreadQuery, ThreadRecord, ThreadWrite, WriteTasks,
    WriteThreads, stored,
};
use crate::task::{ContextId, KeyHash, Owner, TaskId, TaskKey, TaskRecord, ThreadKey, Timestamp};
use async_trait::async_trait;
use std::collections::BTreeSet;
use std::num::NonZeroU32;

impl DynamoStore {
    /// The head of a task: the part of it that its `META` item holds.
    async fn own_item(&self, id: &TaskKey) -> Result<Option<TaskRecord>, StoreError> {
        let meta = self.meta(&key::task(id)).await?;
        meta.as_ref().map(item::to_task).transpose()
    }

    /// The head of a task of `owner`. An attribute names the subject. The store does not
    /// decode the item of another subject, so its size does not show in the response time.
    async fn item_for(
        &self,
        owner: &Owner,
        id: &TaskKey,
    ) -> Result<Option<TaskRecord>, StoreError> {
        let meta = self.meta(&key::task(id)).await?;
        let mine = meta.filter(|meta| item::may_belong_to(meta, owner));
        let task = mine.as_ref().map(item::to_task).transpose()?;
        Ok(task.filter(|task| task.owner() == owner))
    }

    /// The task with its children, if `wanted` holds for its head. With an `owner`, only a
    /// task of that owner.
    async fn stored_task(
        &self,
        owner: Option<&Owner>,
        id: &TaskKey,
        wanted: impl Fn(&TaskRecord) -> bool + Send,
    ) -> Result<Option<TaskRecord>, StoreError> {
        let mut versions = BTreeSet::new();
        for tries in 0..TRIES {
            let head = match owner {
                Some(owner) => self.item_for(owner, id).await?,
                None => self.own_item(id).await?,
            };
            let Some(head) = head.filter(&wanted) else {
                return Ok(None);
            };
            versions.insert(head.version());
            if let Some(whole) = self.whole(&key::task(id), head).await? {
                return Ok(Some(whole));
            }
            outcome::pause(tries).await;
        }
        Err(torn(&versions))
    }

    /// The result of a commit that failed a condition.
    async fn refused(
        &self,
        write: &TaskWrite,
        checks: Vec<Check>,
    ) -> Result<Committed, StoreError> {
        let record = &write.record;
        let mut checks = checks.into_iter();
        let shown = match checks.next() {
            Some(Check::Failed(Some(item))) => Some(item::to_task(&item)?),
            // Some emulators do not return the item of a failed condition.
            Some(Check::Failed(None)) => None,
            Some(Check::Held) | None => {
                // `key_stands` has already looked at the condition of the key.
                let at = usize::from(write.key.is_some());
                let thread = matches!(checks.nth(at), Some(Check::Failed(_)));
                if write.thread.is_some() && thread {
                    return Ok(Committed::ThreadConflict);
                }
                return Err(StoreError::Corrupt(
                    "task has a child item of a later version".to_owned(),
                ));
            }
        };
        let known = |shown: &TaskRecord| {
            let ours = write.id().is_some_and(|id| shown.was_written_by(id));
            ours || shown.layout().is_empty()
        };
        let stored = match shown.filter(known) {
            Some(shown) => Some(shown),
            None => self.stored_task(None, &record.key(), |_| true).await?,
        };
        let mine = stored.filter(|stored| stored.owner() == record.owner());
        if let (Some(stored), Some(id)) = (&mine, write.id())
            && stored.was_written_by(id)
        {
            return Ok(Committed::Done);
        }
        let live = mine.filter(|stored| !stored.expired(write.now));
        Ok(Committed::Conflict(live.map(Box::new)))
    }

    /// Looks up whether a write with an unknown result is stored.
    async fn look_for(&self, write: &TaskWrite, why: String) -> Result<Committed, StoreError> {
        let id = write.checked_id()?;
        let stored = self.own_item(&write.record.key()).await?;
        match stored {
            Some(stored) if stored.was_written_by(id) => Ok(Committed::Done),
            _ if self.key_has(write).await? => Ok(Committed::Done),
            _ => Err(StoreError::Unavailable(why)),
        }
    }

    /// Whether this write is among the last writes of the stored thread.
    async fn thread_has(&self, write: &ThreadWrite) -> Result<bool, StoreError> {
        let record = &write.record;
        let partition = key::thread(&record.owner, &record.context_id);
        let meta = self.meta(&partition).await?;
        Ok(meta.is_some_and(|meta| item::thread_written_by(&meta, &write.write)))
    }

    /// The statements of a commit, in this order: the task, its key, its thread, its push
    /// configs, its new children. `refused` and `key_stands` find the results by position.
    /// `dead` is the write id of the key item that the commit may replace.
    async fn statements(
        &self,
        write: &TaskWrite,
        shards: NonZeroU32,
        dead: Option<&str>,
    ) -> Result<Vec<ConditionalWrite>, StoreError> {
        let pieces = stored::pieces(&write.record)?;
        let children = self.child_statements(write, pieces.children).await?;
        let mut statements = vec![ConditionalWrite::task(write, shards, pieces.head)];
        if let Some(key) = &write.key {
            statements.push(ConditionalWrite::key(write, key, dead));
        }
        if let Some(thread) = &write.thread {
            statements.extend(self.thread_statements(thread, shards).await?);
        }
        for push in &write.pushes {
            statements.extend(ConditionalWrite::push(push)?);
        }
        statements.extend(children);
        // A transaction takes the pointer too. A task alone has no transaction: `commit`
        // writes its pointer beside it.
        if statements.len() > 1 {
            statements.extend(ConditionalWrite::pointer(write));
        }
        Ok(statements)
    }

    /// Stores a commit, or returns the reason why not. If the key has become free, it builds
    /// the statements again.
    async fn put_all(
        &self,
        write: &TaskWrite,
        shards: NonZeroU32,
        statements: &mut Vec<ConditionalWrite>,
    ) -> Result<Committed, StoreError> {
        for _ in 0..TRIES {
            let checks = match self.write(statements).await? {
                WriteResult::Done => return Ok(Committed::Done),
                WriteResult::Unknown(why) => return self.look_for(write, why).await,
                WriteResult::Refused(checks) => checks,
            };
            match self.key_stands(write, &checks).await? {
                KeyConflict::Free => return self.refused(write, checks).await,
                KeyConflict::Mine => return Ok(Committed::Done),
                KeyConflict::For(keyed) => return Ok(Committed::KeyTaken(keyed)),
                KeyConflict::Dead(by) => {
                    *statements = self.statements(write, shards, by.as_deref()).await?;
                }
            }
        }
        Err(moving_key())
    }

    async fn thread_statements(
        &self,
        write: &ThreadWrite,
        shards: NonZeroU32,
    ) -> Result<Vec<ConditionalWrite>, StoreError> {
        let mut statements = vec![ConditionalWrite::thread(write, self.tombstone, shards)?];
        if let Some(mut state) = ConditionalWrite::thread_state(write)? {
            if let WriteKind::Put(item) = &mut state.kind {
                let (owner, id) = (&write.record.owner, &write.record.context_id);
                let whose = ValueOwner::Thread(ThreadKey::new(owner, id));
                let name = large_value::of_thread(write);
                self.spill(item, large_value::INLINE_MAX, &whose, &name)
                    .await?;
            }
            statements.push(state);
        }
        Ok(statements)
    }

    /// The `META` and `STATE` items of a thread, in one read.
    async fn read_thread(&self, partition: &str) -> Result<Option<JoinedThread>, StoreError> {
        let found = self
            .client
            .query()
            .table_name(&self.table)
            .consistent_read(true)
            .key_condition_expression("PK = :pk AND SK BETWEEN :meta AND :state")
            .expression_attribute_values(":pk", item::text(partition))
            .expression_attribute_values(":meta", item::text(key::META))
            .expression_attribute_values(":state", item::text(key::STATE))
            .send()
            .await
            .map_err(|error| outcome::read_error(&error))?;
        let with_sort = |sort: &str| {
            let mut items = found.items().iter();
            items.find(|item| item::string(item, key::SK).is_ok_and(|found| found == sort))
        };
        let Some(meta) = with_sort(key::META) else {
            return Ok(None);
        };
        let mut state = with_sort(key::STATE).cloned();
        if let Some(state) = &mut state
            && item::names_state(meta, state)?
            && !self.load_value(state).await?
        {
            let version = item::integer(meta, item::VERSION)?;
            return Ok(Some(JoinedThread::Torn(version)));
        }
        item::to_thread(meta, state.as_ref()).map(Some)
    }
}

impl std::fmt::Debug for DynamoStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DynamoStore")
            .field("table", &self.table)
            .finish_non_exhaustive()
    }
}

fn moving_key() -> StoreError {
    StoreError::Unavailable(
        "the idempotency key changed during every attempt to write it".to_owned(),
    )
}

#[async_trait]
impl ReadTasks for DynamoStore {
    async fn load(
        &self,
        owner: &Owner,
        id: &TaskId,
        now: Timestamp,
    ) -> Result<Option<TaskRecord>, StoreError> {
        let wanted = |record: &TaskRecord| !record.expired(now);
        self.stored_task(Some(owner), &TaskKey::new(owner, id), wanted)
            .await
    }

    async fn head(
        &self,
        owner: &Owner,
        id: &TaskId,
        now: Timestamp,
    ) -> Result<Option<TaskRecord>, StoreError> {
        let found = self.item_for(owner, &TaskKey::new(owner, id)).await?;
        Ok(found.filter(|record| !record.expired(now)))
    }

    async fn heads(
        &self,
        tasks: &[OpenTask],
        now: Timestamp,
    ) -> Result<Vec<TaskRecord>, StoreError> {
        self.heads_of(tasks, now).await
    }

    async fn project(
        &self,
        head: TaskRecord,
        wanted: Projection,
        now: Timestamp,
    ) -> Result<Option<ProjectedTask>, StoreError> {
        self.project_task(head, wanted, now).await
    }

    async fn tail(
        &self,
        owner: &Owner,
        id: &TaskId,
        after: u64,
        now: Timestamp,
    ) -> Result<Option<Tail>, StoreError> {
        let found = self.log_after(owner, id, after).await?;
        let wanted = |record: &TaskRecord| record.owner() == owner && !record.expired(now);
        Ok(found.and_then(|(head, tail)| wanted(&head).then_some(tail)))
    }

    async fn list(&self, owner: &Owner, query: &RecordQuery) -> Result<RecordPage, StoreError> {
        if let Some(context) = &query.context_id
            && let Some(page) = self.page_in(owner, context, query).await?
        {
            return Ok(page);
        }
        let shards = self.shards_to_read(owner, query.now).await?;
        list::page(&self.client, &self.table, owner, query, shards).await
    }

    async fn load_key(
        &self,
        owner: &Owner,
        key: &KeyHash,
        now: Timestamp,
    ) -> Result<Option<Keyed>, StoreError> {
        self.keyed(owner, key, now).await
    }
}

#[async_trait]
impl SweepTasks for DynamoStore {
    fn open_shards(&self) -> u32 {
        key::OPEN_SHARDS
    }

    async fn open_tasks(
        &self,
        shard: u32,
        after: Option<String>,
        limit: usize,
    ) -> Result<(Vec<OpenTask>, Option<String>), StoreError> {
        open_task_index::page(&self.client, &self.table, shard, after.as_deref(), limit).await
    }
}

#[async_trait]
impl WriteTasks for DynamoStore {
    async fn commit(&self, write: &TaskWrite) -> Result<Committed, StoreError> {
        write.checked_id()?;
        let shards = self.shards_to_write(write).await;
        let mut statements = self.statements(write, shards, None).await?;
        // These run before the commit and outside of it: an item that is kept longer does no
        // harm, an item that expires too early does.
        self.keep_children(&write.record).await?;
        self.keep_keys(&write.record).await?;
        self.keep_pointer(&write.record).await?;
        let alone = statements.len() == 1;
        let pointer = ConditionalWrite::pointer(write).filter(|_| alone);
        let put = self.put_all(write, shards, &mut statements);
        // Both requests run in parallel. A transaction of the two would cost twice the write
        // units (decision 0016).
        let (committed, pointed) = futures::join!(put, self.point(pointer));
        let committed = committed?;
        // Without its pointer a read of the context would miss the task, so the commit fails.
        pointed?;
        Ok(committed)
    }

    async fn ended_task(
        &self,
        owner: &Owner,
        id: &TaskId,
        now: Timestamp,
    ) -> Result<Option<TaskRecord>, StoreError> {
        let head = self.own_item(&TaskKey::new(owner, id)).await?;
        Ok(head.filter(|record| record.owner() == owner && record.expired(now)))
    }

    async fn tasks_in(
        &self,
        owner: &Owner,
        context: &ContextId,
        after: Option<String>,
        limit: usize,
    ) -> Result<(Vec<TaskRecord>, Option<String>), StoreError> {
        self.heads_in(owner, context, after, limit).await
    }

    async fn remove_task(&self, record: &TaskRecord) -> Result<bool, StoreError> {
        self.remove_task_items(record).await
    }

    async fn heartbeat(
        &self,
        record: &TaskRecord,
        lease_until: Timestamp,
    ) -> Result<bool, StoreError> {
        self.write_once(ConditionalWrite::heartbeat(record, lease_until))
            .await
    }
}

#[async_trait]
impl ReadThreads for DynamoStore {
    async fn load_thread(
        &self,
        owner: &Owner,
        id: &ContextId,
    ) -> Result<Option<ThreadRecord>, StoreError> {
        let partition = key::thread(owner, id);
        let mut versions = BTreeSet::new();
        for tries in 0..TRIES {
            match self.read_thread(&partition).await? {
                None => return Ok(None),
                Some(JoinedThread::Thread(thread)) => {
                    return Ok(Some(*thread).filter(|thread| thread.owner == *owner));
                }
                // Read once more: a read during a transaction can see only one of the two items.
                Some(JoinedThread::Stateless(thread)) if tries > 0 => return Ok(Some(*thread)),
                Some(JoinedThread::Stateless(_)) => {}
                Some(JoinedThread::Torn(version)) => {
                    versions.insert(version);
                }
            }
        }
        Err(torn(&versions))
    }

    async fn load_thread_head(
        &self,
        owner: &Owner,
        id: &ContextId,
    ) -> Result<Option<ThreadRecord>, StoreError> {
        let meta = self.meta(&key::thread(owner, id)).await?;
        let head = meta.as_ref().map(item::thread_head).transpose()?;
        Ok(head.filter(|thread| thread.owner == *owner))
    }

    async fn list_threads(
        &self,
        owner: &Owner,
        query: &ThreadQuery,
    ) -> Result<ThreadPage, StoreError> {
        self.contexts(owner, query).await
    }
}

#[async_trait]
impl WriteThreads for DynamoStore {
    async fn forget_state(&self, record: &ThreadRecord) -> Result<(), StoreError> {
        self.remove_thread_state(record).await
    }

    async fn remove_thread(&self, record: &ThreadRecord) -> Result<bool, StoreError> {
        self.remove_thread_items(record).await
    }

    async fn put_thread(&self, write: &ThreadWrite) -> Result<bool, StoreError> {
        let shards = self.shards_for_thread(&write.record);
        let statements = self.thread_statements(write, shards).await?;
        Ok(match self.write(&statements).await? {
            WriteResult::Done => true,
            WriteResult::Refused(checks) => match checks.into_iter().next() {
                Some(Check::Failed(Some(meta))) => item::thread_written_by(&meta, &write.write),
                _ => self.thread_has(write).await?,
            },
            WriteResult::Unknown(_) if self.thread_has(write).await? => true,
            WriteResult::Unknown(why) => return Err(StoreError::Unavailable(why)),
        })
    }
}
