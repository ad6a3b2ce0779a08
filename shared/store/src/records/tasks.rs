//! Reads and writes tasks.

use super::task_item::{self, to_task};
use super::torn_reads::{TRIES, TornReads};
use super::{Records, changes};
use crate::item::{self, INCARNATION, LEASE_UNTIL, STATE};
use crate::keys::{self, Key};
use crate::table::{self, Comparison, Condition, Item, Statement};
use a2a_lambda_model::store::queue::OpenTask;
use a2a_lambda_model::store::{
    Committed, Keyed, ProjectedTask, Projection, ReadTasks, RecordPage, RecordQuery, StoreError,
    Tail, TaskWrite, WriteTasks,
};
use a2a_lambda_model::task::{
    ContextId, KeyHash, Owner, TaskId, TaskKey, TaskRecord, TaskState, Timestamp,
};
use async_trait::async_trait;
use std::collections::BTreeSet;

impl Records {
    /// One item, read consistently.
    pub(super) async fn item(&self, key: Key) -> Result<Option<Item>, StoreError> {
        table::item(self.reader(), key).await
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
        Ok(task.filter(|task| task.owner() == owner))
    }

    /// The task with its children, if `is_wanted` holds for its head. With an `owner`, only a
    /// task of that owner.
    pub(super) async fn stored_task(
        &self,
        owner: Option<&Owner>,
        id: &TaskKey,
        is_wanted: impl Fn(&TaskRecord) -> bool + Send,
    ) -> Result<Option<TaskRecord>, StoreError> {
        let mut reads = TornReads::default();
        for _ in 0..TRIES {
            let head = match owner {
                Some(owner) => self.item_for(owner, id).await?,
                None => self.own_item(id).await?,
            };
            let Some(head) = head.filter(&is_wanted) else {
                return Ok(None);
            };
            reads.note(head.version());
            let task = self.whole(head).await;
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
        Ok(item::readable(&metas, to_task).collect())
    }
}

#[async_trait]
impl ReadTasks for Records {
    async fn load(
        &self,
        owner: &Owner,
        id: &TaskId,
        now: Timestamp,
    ) -> Result<Option<TaskRecord>, StoreError> {
        let is_live = |record: &TaskRecord| !record.expired(now);
        self.stored_task(Some(owner), &TaskKey::new(owner, id), is_live)
            .await
    }

    async fn head(
        &self,
        owner: &Owner,
        id: &TaskId,
        now: Timestamp,
    ) -> Result<Option<TaskRecord>, StoreError> {
        let head = self.item_for(owner, &TaskKey::new(owner, id)).await?;
        Ok(head.filter(|record| !record.expired(now)))
    }

    async fn heads(
        &self,
        tasks: &[OpenTask],
        now: Timestamp,
    ) -> Result<Vec<TaskRecord>, StoreError> {
        let keys = tasks.iter().map(|it| TaskKey::new(&it.owner, &it.task));
        let mut heads = self.heads_of(keys).await?;
        heads.retain(|head| {
            let same = |open: &OpenTask| open.owner == *head.owner() && open.task == *head.id();
            tasks.iter().any(same) && !head.expired(now)
        });
        Ok(heads)
    }

    async fn project(
        &self,
        head: TaskRecord,
        projection: Projection,
        now: Timestamp,
    ) -> Result<Option<ProjectedTask>, StoreError> {
        self.project_task(head, projection, now).await
    }

    async fn tail(
        &self,
        owner: &Owner,
        id: &TaskId,
        after: u64,
        now: Timestamp,
    ) -> Result<Option<Tail>, StoreError> {
        let log = self.log_after(owner, id, after).await?;
        let is_live = |record: &TaskRecord| record.owner() == owner && !record.expired(now);
        Ok(log.and_then(|(head, tail)| is_live(&head).then_some(tail)))
    }

    async fn list(&self, owner: &Owner, query: &RecordQuery) -> Result<RecordPage, StoreError> {
        if let Some(context) = &query.context_id
            && let Some(page) = self.page_in(owner, context, query).await?
        {
            return Ok(page);
        }
        self.page_of(owner, query).await
    }

    async fn load_key(
        &self,
        owner: &Owner,
        key: &KeyHash,
        now: Timestamp,
    ) -> Result<Option<Keyed>, StoreError> {
        match self.item(keys::idempotency(&owner.tenant, key)).await? {
            None => Ok(None),
            Some(item) => self.task_of_key(owner, &item, now).await,
        }
    }
}

#[async_trait]
impl WriteTasks for Records {
    async fn commit(&self, write: &TaskWrite) -> Result<Committed, StoreError> {
        write.checked_id()?;
        let statements = self.statements(write, None).await?;
        // These run before the commit and outside of it: an item that is kept longer does no
        // harm, an item that expires too early does.
        self.keep_children(&write.record).await?;
        self.keep_keys(&write.record).await?;
        self.keep_pointer(&write.record).await?;
        // A transaction has the pointer. A task alone gets it before, not beside it: a read of
        // the context would miss a task without a pointer. A transaction of the two would cost
        // twice the write units (decision 0007).
        if statements.len() == 1
            && let Some(pointer) = super::task_pointers::missing(write)
        {
            self.done(pointer).await?;
        }
        self.put_all(write, statements).await
    }

    async fn put_pointer(&self, record: &TaskRecord, until: Timestamp) -> Result<(), StoreError> {
        if let Some(pointer) = super::task_pointers::pointer(record, until) {
            self.done(pointer).await?;
        }
        Ok(())
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
        // A heartbeat has no new event to push. The stream filter must not see an old one.
        let lease = changes(vec![
            (LEASE_UNTIL, Some(item::millis(lease_until))),
            (task_item::NOTIFY, None),
        ]);
        let equal = Comparison::Equal;
        let is_running = Condition::All(vec![
            Condition::is(task_item::EPOCH, equal, item::count(record.epoch())),
            Condition::is(INCARNATION, equal, record.incarnation().as_str()),
            Condition::is(STATE, equal, TaskState::Working.as_str()),
            task_item::is_owned_by(record.owner()),
            Condition::exists(LEASE_UNTIL),
        ]);
        let key = keys::task(&record.key());
        self.done(Statement::update(key, lease).when(is_running))
            .await
    }
}
