//! Removing whole partitions.

use super::item::{self, Item};
use super::statement::Statement;
use super::{DynamoStore, calls, key, list, object, push};
use crate::store::{ListPosition, RecordQuery, StoreError, ThreadRecord};
use crate::task::{ContextId, Owner, TaskKey, TaskRecord, ThreadKey};

/// Objects of one list.
const LISTED: usize = 1000;

fn is_meta(key: &Item) -> bool {
    item::string(key, key::SK).is_ok_and(|sort| sort == key::META)
}

fn is_same(stored: &TaskRecord, record: &TaskRecord) -> bool {
    stored.owner() == record.owner()
        && stored.version() == record.version()
        && stored.incarnation == record.incarnation
}

/// What a place among the hidden tasks of a conversation begins with.
const HIDDEN: &str = "H";
/// The same of one in the list.
const LISTED_TASKS: &str = "L";

impl DynamoStore {
    /// A page of what stands in a conversation; see
    /// [`crate::store::WriteTasks::tasks_in`].
    pub(super) async fn heads_in(
        &self,
        owner: &Owner,
        context: &ContextId,
        after: Option<String>,
        limit: usize,
    ) -> Result<(Vec<TaskRecord>, Option<String>), StoreError> {
        let after = after.as_deref();
        if let Some(place) = after.and_then(|after| after.strip_prefix(HIDDEN)) {
            return self.hidden_in(owner, context, place, limit).await;
        }
        let place =
            |after: &str| ListPosition::parse(after.strip_prefix(LISTED_TASKS).unwrap_or_default());
        let place = after.map(place).transpose()?;
        let query = RecordQuery::of_context(context, place, limit);
        let shards = self.shard_count(owner).await?.to_read();
        let page = list::page(&self.client, &self.table, owner, &query, shards).await?;
        if let Some(next) = page.next {
            return Ok((page.records, Some(format!("{LISTED_TASKS}{next}"))));
        }
        let mut heads = page.records;
        let (hidden, next) = self.hidden_in(owner, context, "", limit).await?;
        heads.extend(hidden);
        Ok((heads, next))
    }

    /// The same of its hidden tasks, after the place in their partition.
    async fn hidden_in(
        &self,
        owner: &Owner,
        context: &ContextId,
        after: &str,
        limit: usize,
    ) -> Result<(Vec<TaskRecord>, Option<String>), StoreError> {
        let end = if after.is_empty() {
            key::after_all()
        } else {
            after.to_owned()
        };
        let found = self
            .client
            .query()
            .table_name(&self.table)
            .index_name(key::LISTS)
            .key_condition_expression("GSI1PK = :hidden AND GSI1SK < :end")
            .expression_attribute_values(":hidden", item::text(key::hidden(owner, context)))
            .expression_attribute_values(":end", item::text(end))
            .scan_index_forward(false)
            .limit(i32::try_from(limit.clamp(1, list::BATCH)).unwrap_or(i32::MAX))
            .send()
            .await
            .map_err(|error| calls::read_error(&error))?;
        let last = found.last_evaluated_key.as_ref();
        let next = last.map(|last| item::string(last, key::LISTS_SK));
        let next = next.transpose()?.map(|place| format!("{HIDDEN}{place}"));
        let mut tasks = Vec::new();
        for entry in found.items() {
            let place = key::position(item::string(entry, key::LISTS_SK)?);
            tasks.extend(place.map(|place| place.task));
        }
        // An index that lags can show one twice.
        tasks.sort();
        tasks.dedup();
        let keys = tasks.iter().map(|task| {
            let partition = key::task(&TaskKey::new(owner, task));
            item::key_of(&partition, key::META)
        });
        let metas = list::batch(&self.client, &self.table, keys.collect()).await?;
        let mut heads: Vec<TaskRecord> = list::readable(&metas, item::to_task).collect();
        heads.retain(|head| head.owner() == owner && head.context_id() == context);
        Ok((heads, next))
    }

    /// Removes a task with everything in its partition; see
    /// [`crate::store::WriteTasks::remove_task`].
    pub(super) async fn remove_task_items(&self, record: &TaskRecord) -> Result<bool, StoreError> {
        let partition = key::task(&record.key());
        loop {
            let seen = self.keys_of(&partition).await?;
            // What was seen while the task stands is its own, or older; another
            // task of this id can come only later, and then differs.
            match self.own_item(&record.key()).await? {
                None => return Ok(true),
                Some(stored) if !is_same(&stored, record) => return Ok(false),
                Some(_) => {}
            }
            let beside: Vec<Item> = seen.into_iter().filter(|key| !is_meta(key)).collect();
            if beside.is_empty() {
                break;
            }
            for item in beside {
                let name = if item.contains_key(push::MARK) {
                    push::MARK
                } else {
                    item::INCARNATION
                };
                let object = object::named(&item);
                self.settle(Statement::gone_as_seen(&item, name)).await?;
                self.remove_objects(object.into_iter().collect()).await;
            }
        }
        for key in record.held_keys() {
            let gone = Statement::no_key(record, key);
            self.settle(gone).await?;
        }
        let gone = self.settle(Statement::no_task(record)).await?;
        // A repeated call finds no item.
        Ok(gone || self.own_item(&record.key()).await?.is_none())
    }

    /// Removes what lies beside a cleared thread, and nothing that a later write has
    /// put there; see [`crate::store::WriteThreads::forget_state`].
    pub(super) async fn remove_thread_state(
        &self,
        record: &ThreadRecord,
    ) -> Result<(), StoreError> {
        self.settle(Statement::no_state_up_to(record)).await?;
        let Some(blobs) = &self.blobs else {
            return Ok(());
        };
        let below = object::below(&ThreadKey::new(&record.owner, &record.context_id));
        let mut after: Option<String> = None;
        loop {
            let found = blobs.keys(&below, after.as_deref(), LISTED).await?;
            // One of a later write may be of the next thread of this id.
            let is_over =
                |name: &String| object::written_at(name).is_none_or(|at| at <= record.updated_at);
            let gone: Vec<String> = found.iter().filter(|name| is_over(name)).cloned().collect();
            if !gone.is_empty() {
                blobs.remove(&gone).await?;
            }
            if found.len() < LISTED {
                return Ok(());
            }
            after = found.last().cloned();
        }
    }

    /// Removes a thread: what lies beside it, then the item that decides, so that a
    /// removal which did not come to its end is found again by it.
    pub(super) async fn remove_thread_items(
        &self,
        record: &ThreadRecord,
    ) -> Result<bool, StoreError> {
        self.remove_thread_state(record).await?;
        let gone = self.settle(Statement::no_thread(record)).await?;
        // A repeated call finds no item.
        let partition = key::thread(&record.owner, &record.context_id);
        Ok(gone || self.meta(&partition).await?.is_none())
    }

    /// The keys of a partition, some of them if there are many, and what tells
    /// each item from one that replaces it.
    async fn keys_of(&self, partition: &str) -> Result<Vec<Item>, StoreError> {
        let found = self
            .client
            .query()
            .table_name(&self.table)
            .consistent_read(true)
            .key_condition_expression("PK = :pk")
            .expression_attribute_values(":pk", item::text(partition))
            .projection_expression("PK, SK, #incarnation, #mark, #object")
            .expression_attribute_names("#incarnation", item::INCARNATION)
            .expression_attribute_names("#mark", push::MARK)
            .expression_attribute_names("#object", object::KEY)
            .send()
            .await
            .map_err(|error| calls::read_error(&error))?;
        Ok(found.items.unwrap_or_default())
    }
}
