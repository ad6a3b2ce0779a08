//! The store traits of tasks.

use super::conditional_write::ConditionalWrite;
use super::item;
use super::outcome::{TRIES, TornReads, pause};
use super::store::DynamoStore;
use super::{key, list, open_task_index};
use a2a_lambda_model::store::queue::{OpenTask, SweepTasks};
use a2a_lambda_model::store::{
    Committed, Keyed, ProjectedTask, Projection, ReadTasks, RecordPage, RecordQuery, StoreError,
    Tail, TaskWrite, WriteTasks,
};
use a2a_lambda_model::task::{ContextId, KeyHash, Owner, TaskId, TaskKey, TaskRecord, Timestamp};
use async_trait::async_trait;

impl DynamoStore {
    /// The head of a task: the part of it that its `META` item holds.
    pub(super) async fn own_item(&self, id: &TaskKey) -> Result<Option<TaskRecord>, StoreError> {
        let meta = self.meta(&key::task(id)).await?;
        meta.as_ref().map(item::to_task).transpose()
    }

    /// The head of a task of `owner`. An attribute names the subject. The store does not
    /// decode the item of another subject, so its size does not show in the response time.
    pub(super) async fn item_for(
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
    pub(super) async fn stored_task(
        &self,
        owner: Option<&Owner>,
        id: &TaskKey,
        wanted: impl Fn(&TaskRecord) -> bool + Send,
    ) -> Result<Option<TaskRecord>, StoreError> {
        let mut reads = TornReads::default();
        for tries in 0..TRIES {
            let head = match owner {
                Some(owner) => self.item_for(owner, id).await?,
                None => self.own_item(id).await?,
            };
            let Some(head) = head.filter(&wanted) else {
                return Ok(None);
            };
            reads.note(head.version());
            let whole = self.whole(head).await;
            if let Some(whole) = reads.result(whole)? {
                return Ok(Some(whole));
            }
            pause(tries).await;
        }
        Err(reads.error())
    }
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
        list::page(&self.client, &self.table, owner, query).await
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
            && let Some(pointer) = ConditionalWrite::missing_pointer(write)
        {
            self.write_once(pointer).await?;
        }
        self.put_all(write, statements).await
    }

    async fn put_pointer(&self, record: &TaskRecord, until: Timestamp) -> Result<(), StoreError> {
        if let Some(pointer) = ConditionalWrite::pointer(record, until) {
            self.write_once(pointer).await?;
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
        self.write_once(ConditionalWrite::heartbeat(record, lease_until))
            .await
    }
}
