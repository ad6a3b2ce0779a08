//! Reads and writes tasks.

use super::task_item::{self, to_task};
use super::{RecordReader, Records, TRIES, TornReads, changes};
use crate::item::{self, INCARNATION, LEASE_UNTIL, STATE};
use crate::keys::{self, Key};
use crate::table::{self, Comparison, Condition, Item, Statement};
use a2a_lambda_model::store::queue::OpenTask;
use a2a_lambda_model::store::{IdempotencyEntry, StoreError};
use a2a_lambda_model::task::{KeyHash, Owner, TaskId, TaskKey, TaskRecord, TaskState, Timestamp};
use std::collections::BTreeSet;

impl RecordReader {
    /// One item, read consistently.
    pub(super) async fn item(&self, key: Key) -> Result<Option<Item>, StoreError> {
        table::item(&*self.table, key).await
    }

    /// The head of a task, of any owner: the part of it that its `META` item holds.
    pub(super) async fn own_item(&self, id: &TaskKey) -> Result<Option<TaskRecord>, StoreError> {
        let meta = self.item(keys::task(id)).await?;
        meta.as_ref().map(to_task).transpose()
    }

    /// The head of a task of `owner`. An attribute names the subject. The item of another subject
    /// is not decoded, so its size does not show in the response time.
    pub(super) async fn item_for(
        &self,
        owner: &Owner,
        id: &TaskKey,
    ) -> Result<Option<TaskRecord>, StoreError> {
        let meta = self.item(keys::task(id)).await?;
        let mine = meta.filter(|meta| task_item::may_belong_to(meta, owner));
        let task = mine.as_ref().map(to_task).transpose()?;
        Ok(task.filter(|task| &task.owner == owner))
    }

    /// The task with its children, if `accepts` holds for its head. With an `owner`, only a
    /// task of that owner.
    pub(super) async fn stored_task(
        &self,
        owner: Option<&Owner>,
        id: &TaskKey,
        accepts: impl Fn(&TaskRecord) -> bool + Send,
    ) -> Result<Option<TaskRecord>, StoreError> {
        let mut reads = TornReads::default();
        for _ in 0..TRIES {
            let head = match owner {
                Some(owner) => self.item_for(owner, id).await?,
                None => self.own_item(id).await?,
            };
            let Some(head) = head.filter(&accepts) else {
                return Ok(None);
            };
            reads.note(head.version);
            let task = self.join_children(head).await;
            if let Some(task) = reads.result(task)? {
                return Ok(Some(task));
            }
        }
        Err(reads.error())
    }

    /// The heads of tasks, of any owner, each once and in no order.
    pub(super) async fn heads_of(
        &self,
        tasks: impl Iterator<Item = TaskKey> + Send,
    ) -> Result<Vec<TaskRecord>, StoreError> {
        // A read refuses to name a key twice.
        let keys: BTreeSet<Key> = tasks.map(|task| keys::task(&task)).collect();
        let keys: Vec<Key> = keys.into_iter().collect();
        let metas = self.table.get(&keys).await?;
        item::readable(&metas, to_task)
    }
}

impl RecordReader {
    /// The task, read consistently; `None` if absent, expired or not `owner`'s.
    ///
    /// # Errors
    /// [`StoreError`] when the store does not answer or the item is corrupt.
    pub async fn load(
        &self,
        owner: &Owner,
        id: &TaskId,
        now: Timestamp,
    ) -> Result<Option<TaskRecord>, StoreError> {
        let lives = |record: &TaskRecord| !record.is_expired(now);
        self.stored_task(Some(owner), &TaskKey::new(owner, id), lives)
            .await
    }

    /// The task without the content that grows, read consistently; `None` as for
    /// [`RecordReader::load`]. State, versions, lease, expiry and push config ids are
    /// always present. Messages, artifacts, events and saved data may be missing;
    /// then [`is_partial`](a2a_lambda_model::task::TaskFields::is_partial) is true and a store refuses a commit on top of
    /// the record.
    ///
    /// # Errors
    /// [`StoreError`] when the store does not answer or the item is corrupt.
    pub async fn head(
        &self,
        owner: &Owner,
        id: &TaskId,
        now: Timestamp,
    ) -> Result<Option<TaskRecord>, StoreError> {
        let head = self.item_for(owner, &TaskKey::new(owner, id)).await?;
        Ok(head.filter(|record| !record.is_expired(now)))
    }

    /// The heads of those of `tasks` for which [`RecordReader::head`] returns one, in no
    /// order. A corrupt head is logged and left out.
    ///
    /// # Errors
    /// [`StoreError`] when the store does not answer.
    pub async fn heads(
        &self,
        tasks: &[OpenTask],
        now: Timestamp,
    ) -> Result<Vec<TaskRecord>, StoreError> {
        let keys = tasks.iter().map(|it| TaskKey::new(&it.owner, &it.task));
        let mut heads = self.heads_of(keys).await?;
        heads.retain(|head| {
            let same = |open: &OpenTask| open.owner == head.owner && open.task == head.id;
            tasks.iter().any(same) && !head.is_expired(now)
        });
        Ok(heads)
    }

    /// The send and the task of an idempotency key of `owner`, read consistently;
    /// `None` if the key is free.
    ///
    /// # Errors
    /// [`StoreError`] when the store does not answer or an item is corrupt.
    pub async fn load_key(
        &self,
        owner: &Owner,
        key: &KeyHash,
        now: Timestamp,
    ) -> Result<Option<IdempotencyEntry>, StoreError> {
        match self.item(keys::idempotency(&owner.tenant, key)).await? {
            None => Ok(None),
            Some(item) => self.task_of_key(owner, &item, now).await,
        }
    }

    /// The task `id` of `owner`, if it has expired by `now` and its item still
    /// exists. Only the content in the item itself is read, because the children may
    /// be gone.
    ///
    /// # Errors
    /// [`StoreError`] when the store does not answer or the item is corrupt.
    pub async fn ended_task(
        &self,
        owner: &Owner,
        id: &TaskId,
        now: Timestamp,
    ) -> Result<Option<TaskRecord>, StoreError> {
        let head = self.own_item(&TaskKey::new(owner, id)).await?;
        Ok(head.filter(|record| &record.owner == owner && record.is_expired(now)))
    }
}

impl Records {
    /// Makes the context of a task that is not stored yet know it, until `until`. A pointer
    /// without its task shows nothing anywhere.
    ///
    /// # Errors
    /// [`StoreError`]; then the task must not be stored.
    pub async fn link_context(
        &self,
        record: &TaskRecord,
        until: Timestamp,
    ) -> Result<(), StoreError> {
        if let Some(pointer) = super::task_pointers::pointer(record, until) {
            self.table.try_write(pointer).await?;
        }
        Ok(())
    }

    /// Extends the lease of the turn in `record` to `lease_until`, if the stored task
    /// has the same incarnation and epoch, is `working` and has a lease; else returns
    /// `false`. A turn that was handed over has no lease, and a late heartbeat does
    /// not give it one. The version does not change, so a commit in flight does not
    /// lose.
    ///
    /// # Errors
    /// [`StoreError`]; after `Unavailable` the lease may or may not be longer.
    pub async fn heartbeat(
        &self,
        record: &TaskRecord,
        lease_until: Timestamp,
    ) -> Result<bool, StoreError> {
        // A heartbeat has no new event to push. The stream filter must not see an old one.
        let lease = changes(vec![
            (LEASE_UNTIL, Some(item::millis(lease_until))),
            (task_item::NOTIFY, None),
        ]);
        let equal = Comparison::Equal;
        let is_running = Condition::All(vec![
            Condition::is(task_item::EPOCH, equal, item::count(record.epoch)),
            Condition::is(INCARNATION, equal, record.incarnation.as_str()),
            Condition::is(STATE, equal, TaskState::Working.as_str()),
            task_item::is_owned_by(&record.owner),
            Condition::exists(LEASE_UNTIL),
        ]);
        let key = keys::task(&record.key());
        self.table
            .try_write(Statement::update(key, lease).when(is_running))
            .await
    }
}
