//! Removing whole partitions.

use super::item::{self, Item};
use super::statement::Statement;
use super::{DynamoStore, calls, key, list, object, push};
use crate::store::{ReadThreads as _, RecordQuery, StoreError};
use crate::task::{ContextId, Owner, TaskRecord, ThreadKey, Timestamp};

/// Tasks read at a time.
const PAGE: usize = 100;
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

impl DynamoStore {
    /// The tasks of a conversation whose life has ended; see
    /// [`crate::store::WriteTasks::ended_tasks`].
    pub(super) async fn ended_heads(
        &self,
        owner: &Owner,
        context: &ContextId,
        now: Timestamp,
    ) -> Result<Vec<TaskRecord>, StoreError> {
        let shards = self.shards_to_read(owner, now).await?;
        let mut query = RecordQuery {
            context_id: Some(context.clone()),
            state: None,
            status_after: None,
            after: None,
            limit: PAGE,
            count_limit: 0,
            // By this time nothing had expired.
            now: Timestamp::from_millis(0),
        };
        let mut ended = Vec::new();
        loop {
            let page = list::page(&self.client, &self.table, owner, &query, shards).await?;
            ended.extend(page.records.into_iter().filter(|task| task.expired(now)));
            query.after = page.next;
            if query.after.is_none() {
                return Ok(ended);
            }
        }
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
                self.settle_again(Statement::gone_as_seen(&item, name))
                    .await?;
                self.remove_objects(object.into_iter().collect()).await;
            }
        }
        let gone = self.settle_again(Statement::no_task(record)).await?;
        // A repeated call finds no item.
        Ok(gone || self.own_item(&record.key()).await?.is_none())
    }

    /// Removes a thread: its state, then the objects of it, then the item that
    /// decides, so that an earlier removal which did not come to its end is found
    /// again by it.
    pub(super) async fn remove_thread_items(
        &self,
        owner: &Owner,
        id: &ContextId,
    ) -> Result<(), StoreError> {
        let partition = key::thread(owner, id);
        loop {
            let keys = self.keys_of(&partition).await?;
            if keys.is_empty() {
                return Ok(());
            }
            let (meta, beside): (Vec<Item>, Vec<Item>) = keys.into_iter().partition(is_meta);
            for item in beside {
                let object = object::named(&item);
                self.settle_again(Statement::gone_as_seen(&item, object::KEY))
                    .await?;
                self.remove_objects(object.into_iter().collect()).await;
            }
            for item in meta {
                self.remove_state_objects(owner, id).await?;
                self.settle_again(Statement::gone_as_seen(&item, key::SK))
                    .await?;
            }
        }
    }

    /// Removes the objects of a thread that is being removed, but none of a write
    /// that is later than the thread as it is stored: that may be of the next
    /// thread of this id.
    async fn remove_state_objects(&self, owner: &Owner, id: &ContextId) -> Result<(), StoreError> {
        let (Some(blobs), Some(head)) = (&self.blobs, self.load_thread_head(owner, id).await?)
        else {
            return Ok(());
        };
        let below = object::below(&ThreadKey::new(owner, id));
        let mut after: Option<String> = None;
        loop {
            let found = blobs.keys(&below, after.as_deref(), LISTED).await?;
            let is_over =
                |name: &String| object::written_at(name).is_none_or(|at| at <= head.updated_at);
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
