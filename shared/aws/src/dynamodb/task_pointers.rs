//! Finds the tasks of a context in the context's own partition.
//!
//! A pointer to a task is there before the task: in the transaction of the task's first write,
//! or in an earlier request. The one task that its context is named after needs no pointer. A
//! pointer alone proves nothing; the task's `META` item decides. A reader skips a pointer if
//! its task is gone or has another incarnation.

use super::conditional_write::ConditionalWrite;
use super::item::{self, Attributes, Item};
use super::store::DynamoStore;
use super::{key, list, outcome};
use a2a_lambda_model::store::{
    Expect, Expiring, IN_CONTEXT, RecordPage, RecordQuery, StoreError, TaskWrite, ThreadRecord,
};
use a2a_lambda_model::stored;
use a2a_lambda_model::task::{ContextId, Owner, TaskId, TaskKey, TaskRecord, Timestamp};
use std::collections::BTreeMap;

/// Pointers that one read returns for removal.
const REMOVED: usize = 1000;

impl ConditionalWrite {
    /// Writes the pointer to a task; `None` if its context is named after it.
    pub(super) fn pointer(record: &TaskRecord, until: Timestamp) -> Option<Self> {
        let partition = key::thread(record.owner(), record.context_id());
        let ttl = (item::TTL, item::number(until.ttl_seconds()));
        let pointer = || Self::put_at(&partition, &key::pointer(record), Attributes::from([ttl]));
        (!record.names_its_context()).then(pointer)
    }

    /// Writes the pointer to a task that `write` creates, if the context does not have it.
    pub(super) fn missing_pointer(write: &TaskWrite) -> Option<Self> {
        let is_missing = write.expect == Expect::Absent && !write.has_pointer;
        let until = || stored::child_expiry(&write.record);
        is_missing
            .then(|| Self::pointer(&write.record, until()))
            .flatten()
    }

    /// Removes the pointer to a task, if it has one. No other task ever has the same pointer.
    pub(super) fn no_pointer(record: &TaskRecord) -> Option<Self> {
        let partition = key::thread(record.owner(), record.context_id());
        let key = item::key_of(&partition, &key::pointer(record));
        (!record.names_its_context()).then(|| Self::gone(key))
    }
}

impl DynamoStore {
    /// Extends the TTL of a task's pointer to the time that this commit demands. A new pointer
    /// is kept for two lifetimes of the task. So only a task that is older than one lifetime
    /// needs the write, and a task that is being ended does not.
    ///
    /// # Errors
    /// [`StoreError`] when the table does not answer.
    pub(super) async fn keep_pointer(&self, record: &TaskRecord) -> Result<(), StoreError> {
        let lifetime = record.expires_at().since(record.updated_at());
        let is_young = record.updated_at() <= record.created_at().plus(lifetime);
        if record.names_its_context() || lifetime.is_zero() || is_young {
            return Ok(());
        }
        let partition = key::thread(record.owner(), record.context_id());
        let until = stored::child_expiry(record).ttl_seconds();
        let keep = ConditionalWrite::keep(&partition, &key::pointer(record), until);
        self.write_once(keep).await.map(|_| ())
    }

    /// Removes the pointers of a deleted context, but no pointer of a later context with the
    /// same id.
    pub(super) async fn remove_pointers(&self, record: &ThreadRecord) -> Result<(), StoreError> {
        let partition = key::thread(&record.owner, &record.context_id);
        let settled = record.swept_at(Expiring::Deleted);
        let by = key::pointers_by(settled.unwrap_or(record.expires_at));
        loop {
            let (sorts, more) = self.pointers(&partition, &by, None, REMOVED).await?;
            for sort in sorts {
                let gone = ConditionalWrite::gone(item::key_of(&partition, &sort));
                self.write_once(gone).await?;
            }
            if more.is_none() {
                return Ok(());
            }
        }
    }

    /// Up to `limit` pointers of a context between `after` and `end`, newest first. If there
    /// are more, also the last of them.
    async fn pointers(
        &self,
        partition: &str,
        end: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<(Vec<String>, Option<String>), StoreError> {
        let (mut sorts, mut start) = (Vec::new(), after.map(|it| item::key_of(partition, it)));
        // The query asks for one more than `limit`, to see whether there are more.
        while sorts.len() <= limit {
            let wanted = i32::try_from(limit + 1 - sorts.len()).unwrap_or(i32::MAX);
            let found = self
                .client
                .query()
                .table_name(&self.table)
                .consistent_read(true)
                .key_condition_expression("PK = :pk AND SK BETWEEN :first AND :end")
                .expression_attribute_values(":pk", item::text(partition))
                .expression_attribute_values(":first", item::text(key::TASKS))
                .expression_attribute_values(":end", item::text(end))
                .projection_expression("SK")
                .scan_index_forward(false)
                .limit(wanted)
                .set_exclusive_start_key(start)
                .send()
                .await
                .map_err(|error| outcome::read_error(&error))?;
            for item in found.items() {
                sorts.push(item::string(item, key::SK)?.to_owned());
            }
            start = found.last_evaluated_key;
            if start.is_none() {
                break;
            }
        }
        let more = sorts.len() > limit;
        sorts.truncate(limit);
        let last = sorts.last().filter(|_| more).cloned();
        Ok((sorts, last))
    }

    /// The heads of the tasks that these pointers name, in their order. With `end`, the task
    /// that the context is named after follows.
    async fn heads_at(
        &self,
        owner: &Owner,
        context: &ContextId,
        sorts: &[String],
        end: bool,
    ) -> Result<Vec<TaskRecord>, StoreError> {
        let mut named: Vec<(TaskId, Option<_>)> = Vec::new();
        for (task, incarnation) in sorts.iter().filter_map(|sort| key::pointed(sort)) {
            named.push((task, Some(incarnation)));
        }
        named.extend(context.first_task().filter(|_| end).map(|it| (it, None)));
        let mut ids: Vec<&TaskId> = named.iter().map(|(task, _)| task).collect();
        ids.sort_unstable();
        ids.dedup();
        let keys = ids.into_iter().map(|task| {
            let partition = key::task(&TaskKey::new(owner, task));
            item::key_of(&partition, key::META)
        });
        let keys: Vec<Item> = keys.collect();
        let mut heads = BTreeMap::new();
        for chunk in keys.chunks(list::BATCH) {
            let metas = list::batch(&self.client, &self.table, chunk.to_vec()).await?;
            for head in list::readable(&metas, item::to_task) {
                if head.owner() == owner && head.context_id() == context {
                    heads.insert(head.id().clone(), head);
                }
            }
        }
        let existing = named.iter().filter_map(|(task, incarnation)| {
            let same = |head: &TaskRecord| {
                incarnation
                    .as_ref()
                    .is_none_or(|it| head.incarnation() == it)
            };
            heads.get(task).is_some_and(same).then_some(task)
        });
        let existing: Vec<TaskId> = existing.cloned().collect();
        Ok(existing
            .iter()
            .filter_map(|task| heads.remove(task))
            .collect())
    }

    /// A page of the tasks stored in a context; see
    /// [`a2a_lambda_model::store::WriteTasks::tasks_in`].
    pub(super) async fn heads_in(
        &self,
        owner: &Owner,
        context: &ContextId,
        after: Option<String>,
        limit: usize,
    ) -> Result<(Vec<TaskRecord>, Option<String>), StoreError> {
        let after = after.as_deref();
        if after.is_some_and(|after| key::pointed(after).is_none()) {
            let why = "invalid page position in a context";
            return Err(StoreError::Refused(why.to_owned()));
        }
        let partition = key::thread(owner, context);
        let pointers = self.pointers(&partition, key::AFTER_TASKS, after, limit);
        let (sorts, next) = pointers.await?;
        let heads = self.heads_at(owner, context, &sorts, next.is_none());
        Ok((heads.await?, next))
    }

    /// A page of the task list of a context that is small enough for one read of all its heads;
    /// `None` if it is larger.
    pub(super) async fn page_in(
        &self,
        owner: &Owner,
        context: &ContextId,
        query: &RecordQuery,
    ) -> Result<Option<RecordPage>, StoreError> {
        let partition = key::thread(owner, context);
        let pointers = self.pointers(&partition, key::AFTER_TASKS, None, IN_CONTEXT);
        let (sorts, more) = pointers.await?;
        if more.is_some() {
            return Ok(None);
        }
        let heads = self.heads_at(owner, context, &sorts, true).await?;
        Ok(Some(RecordPage::of_all(heads, owner, query)))
    }
}
