//! Finds what a sweep has to look at: open tasks, expiring threads, and objects in use.
//!
//! The sweep index has no content, only the key of an item and its owner. Of threads it has only
//! states and unfinished deletions. It shows the expiry that was current when the state was last
//! written. A later use of the thread does not update the index. When the sweep finds such an
//! outdated entry, it writes the new expiry. That happens about once in a thread's life.

use super::{Sweep, changes, large_value, task_item, threads};
use crate::item::{self, EXPIRES_AT, VERSION, corrupt};
use crate::keys::{self, META, PK, Partition, SK, STATE};
use crate::table::{
    Comparison, Condition, Item, Position, Query, Range, Statement, Write, WriteResult,
};
use a2a_lambda_model::store::queue::{ObjectsPlace, OpenTask};
use a2a_lambda_model::store::{Expiring, ExpiringThread, StateRemoved, StoreError, ThreadRecord};
use a2a_lambda_model::stored::{self, ChildName};
use a2a_lambda_model::task::{ContextId, Owner, TaskKey, TaskRecord, ThreadKey, Timestamp};

/// Index items of one request at most.
const CHUNK: usize = 1_000;

const BEGAN: &str = "began";
const BEFORE: &str = "before";
const AFTER: &str = "after";

impl Sweep {
    /// A page of one shard of the sweep index.
    async fn shard_page<T>(
        &self,
        shard: Partition,
        range: Range,
        after: Option<Position>,
        limit: usize,
        read: fn(&Item) -> Result<T, StoreError>,
    ) -> Result<(Vec<T>, Option<Position>), StoreError> {
        let query = Query {
            range,
            start: after,
            limit: Some(limit.clamp(1, CHUNK)),
            ..shard.into()
        };
        let page = self.0.table.query(&query).await?;
        Ok((item::readable(&page.items, read)?, page.next))
    }
}

fn open_task(item: &Item) -> Result<OpenTask, StoreError> {
    let task = keys::task_of(item::text(item, PK)?);
    let (tenant, task) = task.ok_or_else(|| corrupt("the partition key names no task"))?;
    Ok(OpenTask {
        owner: item::owner(item, tenant)?,
        task,
    })
}

fn expiring(item: &Item) -> Result<ExpiringThread, StoreError> {
    let no_thread = || corrupt("the key names no thread");
    let (tenant, context_id) = keys::thread_of(item::text(item, PK)?).ok_or_else(no_thread)?;
    let what = match item::text(item, SK)? {
        META => Expiring::Deleted,
        STATE => Expiring::State,
        _ => return Err(no_thread()),
    };
    Ok(ExpiringThread {
        owner: item::owner(item, tenant)?,
        context_id,
        what,
    })
}

impl Sweep {
    /// How many shards the index of open tasks has. Each shard is read separately.
    #[must_use]
    pub const fn open_shards(&self) -> u32 {
        keys::OPEN_SHARDS
    }

    /// Up to `limit` tasks of a shard (the first is 0), oldest first, after the
    /// position `after`: tasks that are submitted or working, and tasks at rest whose
    /// pushes are not confirmed. The second value is the position of the next page,
    /// `None` at the end.
    ///
    /// # Errors
    /// [`StoreError`] when the store does not answer.
    pub async fn open_tasks(
        &self,
        shard: u32,
        after: Option<Position>,
        limit: usize,
    ) -> Result<(Vec<OpenTask>, Option<Position>), StoreError> {
        self.shard_page(keys::open(shard), Range::All, after, limit, open_task)
            .await
    }

    /// How many shards the index of threads has. Each shard is read separately.
    #[must_use]
    pub const fn expiry_shards(&self) -> u32 {
        keys::EXPIRY_SHARDS
    }

    /// Up to `limit` threads of a shard (the first is 0) that are due by `now`
    /// ([`ThreadRecord::swept_at`]), after the position `after`. The second value is
    /// the position of the next page, `None` at the end.
    ///
    /// # Errors
    /// [`StoreError`] when the store does not answer.
    pub async fn expiring_threads(
        &self,
        shard: u32,
        now: Timestamp,
        after: Option<Position>,
        limit: usize,
    ) -> Result<(Vec<ExpiringThread>, Option<Position>), StoreError> {
        let due = Range::Between(i64::MIN.into(), now.as_millis().into());
        self.shard_page(keys::expiring(shard), due, after, limit, expiring)
            .await
    }

    /// Stores the current expiry of the state of `thread` in the index, so that no
    /// sweep finds the state earlier. A state of another write stays as it is.
    ///
    /// # Errors
    /// [`StoreError`] when the store does not answer.
    pub async fn note_expiry(&self, thread: &ThreadRecord) -> Result<(), StoreError> {
        let key = keys::thread_state(&threads::key(thread));
        let mut expiry = threads::state_expiry(thread);
        // Only a sweep that has looked at the state takes it off the index.
        expiry.retain(|(_, value)| value.is_some());
        let note = Statement::update(key, changes(expiry));
        self.0
            .table
            .try_write(note.when(task_item::has_version(thread.state_version)))
            .await
            .map(drop)
    }

    /// Removes a state that no thread names, if its stored expiry is at or before
    /// `now`, and then its object.
    ///
    /// # Errors
    /// [`StoreError`] when the store does not answer. An object that cannot be
    /// removed is not an error: it is unreferenced and will be collected.
    pub async fn remove_state(
        &self,
        owner: &Owner,
        id: &ContextId,
        now: Timestamp,
    ) -> Result<StateRemoved, StoreError> {
        let key = keys::thread_state(&ThreadKey::new(owner, id));
        let is_over = Condition::is(EXPIRES_AT, Comparison::AtMost, now.as_millis());
        let removal = Write {
            wants_old: true,
            ..Statement::delete(key).when(is_over).into()
        };
        let old = match self.0.table.write(removal).await? {
            WriteResult::Done(old) => old,
            WriteResult::Refused(_) => None,
            WriteResult::Unknown(why) => return Err(StoreError::Unavailable(why)),
        };
        let objects = match &old {
            Some(old) => self.0.remove_object_of(old).await,
            None => 0,
        };
        Ok(StateRemoved {
            state: old.is_some(),
            objects,
        })
    }

    /// The whole task under `key` as it is stored, read consistently, of any owner
    /// and even if it has expired.
    ///
    /// # Errors
    /// [`StoreError`] when the store does not answer or the item is corrupt.
    pub async fn load_by_key(&self, key: &TaskKey) -> Result<Option<TaskRecord>, StoreError> {
        self.0.stored_task(None, key, |_| true).await
    }

    /// The same with only the content in the item itself: state, incarnation and
    /// expiry.
    ///
    /// # Errors
    /// As [`Sweep::load_by_key`].
    pub async fn head_by_key(&self, key: &TaskKey) -> Result<Option<TaskRecord>, StoreError> {
        self.0.own_item(key).await
    }

    /// The object in which the store keeps the state of a thread, if it does; read
    /// consistently.
    ///
    /// # Errors
    /// As [`Sweep::load_by_key`].
    pub async fn state_object(&self, thread: &ThreadKey) -> Result<Option<String>, StoreError> {
        let state = self.0.item(keys::thread_state(thread)).await?;
        Ok(state.as_ref().and_then(large_value::object_name))
    }

    /// The objects in which the store itself keeps content of the task under `key`,
    /// read consistently. Objects that the task's record names are not included.
    ///
    /// # Errors
    /// As [`Sweep::load_by_key`].
    pub async fn content_objects(&self, key: &TaskKey) -> Result<Vec<String>, StoreError> {
        let Some(head) = self.0.own_item(key).await? else {
            return Ok(Vec::new());
        };
        let mut objects = Vec::new();
        for (name, item) in self.0.child_keys(&head).await? {
            if is_named(&head, name, item::number(&item, VERSION)?) {
                objects.extend(large_value::object_name(&item));
            }
        }
        Ok(objects)
    }

    /// The progress that the last sweep stored; `None` if there was none.
    ///
    /// # Errors
    /// [`StoreError`] when the store does not answer.
    pub async fn objects_place(&self) -> Result<Option<ObjectsPlace>, StoreError> {
        let Some(item) = self.0.item(keys::objects_place()).await? else {
            return Ok(None);
        };
        Ok(Some(ObjectsPlace {
            began: item::time(&item, BEGAN)?,
            before: item::optional_time(&item, BEFORE)?,
            after: item::text(&item, AFTER).ok().map(str::to_owned),
        }))
    }

    /// Stores the progress for the next sweep.
    ///
    /// # Errors
    /// [`StoreError`] when the store does not answer.
    pub async fn note_objects_place(&self, position: &ObjectsPlace) -> Result<(), StoreError> {
        let item = item::of(vec![
            (BEGAN, Some(item::millis(position.began))),
            (BEFORE, position.before.map(item::millis)),
            (AFTER, position.after.as_deref().map(Into::into)),
        ]);
        let note = Statement::put(keys::objects_place(), item);
        self.0.table.try_write(note).await.map(drop)
    }
}

/// Whether a task names the child with this version. One that was replaced after the read of
/// the task has a later version, and counts as named.
fn is_named(task: &TaskRecord, name: ChildName, version: u64) -> bool {
    match name {
        ChildName::State => {
            let state = task.layout.state.as_ref();
            state.is_some_and(|state| version >= state.version)
        }
        ChildName::Moved { .. } => stored::names(task, name),
    }
}
