//! Removes tasks and threads with all their items.

use super::conditional_write::ConditionalWrite;
use super::item::{self, Item};
use super::store::DynamoStore;
use super::{key, large_value, outcome, push_item};
use a2a_lambda_model::store::{StoreError, ThreadRecord};
use a2a_lambda_model::task::{TaskRecord, ThreadKey};

/// Objects of one list.
const LISTED: usize = 1000;

fn is_meta(key: &Item) -> bool {
    item::string(key, key::SK).is_ok_and(|sort| sort == key::META)
}

fn is_same(stored: &TaskRecord, record: &TaskRecord) -> bool {
    stored.owner() == record.owner()
        && stored.version() == record.version()
        && stored.incarnation() == record.incarnation()
}

impl DynamoStore {
    /// Removes a task with everything in its partition; see
    /// [`a2a_lambda_model::store::WriteTasks::remove_task`].
    pub(super) async fn remove_task_items(&self, record: &TaskRecord) -> Result<bool, StoreError> {
        let partition = key::task(&record.key());
        loop {
            let seen = self.keys_of(&partition).await?;
            // While the task is stored, the items seen are its own or older ones. Items of a
            // later task with this id come only afterwards and differ.
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
                // A later task with this id may already have replaced the item. The attribute
                // distinguishes the two.
                let name = if item.contains_key(push_item::MARK) {
                    push_item::MARK
                } else {
                    item::INCARNATION
                };
                self.write_once(ConditionalWrite::gone_as_seen(&item, name))
                    .await?;
            }
        }
        for key in record.held_keys() {
            let gone = ConditionalWrite::no_key(record, key);
            self.write_once(gone).await?;
        }
        // Both in one transaction: an interrupted deletion of the context then finds the
        // task by its pointer, or neither is left.
        let mut last = vec![ConditionalWrite::no_task(record)];
        last.extend(ConditionalWrite::no_pointer(record));
        let gone = self.write_all(last).await?;
        // A repeated call finds no item, which is success.
        Ok(gone || self.own_item(&record.key()).await?.is_none())
    }

    /// Removes the state of a cleared thread, but nothing that a later write has stored; see
    /// [`a2a_lambda_model::store::WriteThreads::forget_state`].
    pub(super) async fn remove_thread_state(
        &self,
        record: &ThreadRecord,
    ) -> Result<(), StoreError> {
        self.write_once(ConditionalWrite::no_state_up_to(record))
            .await?;
        let Some(blobs) = &self.blobs else {
            return Ok(());
        };
        let below = large_value::below(&ThreadKey::new(&record.owner, &record.context_id));
        let mut after: Option<String> = None;
        loop {
            let found = blobs.keys(&below, after.as_deref(), LISTED).await?;
            // An object of a later write may belong to the next thread with this id.
            let is_over = |name: &String| {
                large_value::written_at(name).is_none_or(|at| at <= record.updated_at)
            };
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

    /// Removes a thread: its state and pointers first, its `META` item last. So an interrupted
    /// removal can be found by that item and repeated.
    pub(super) async fn remove_thread_items(
        &self,
        record: &ThreadRecord,
    ) -> Result<bool, StoreError> {
        self.remove_thread_state(record).await?;
        self.remove_pointers(record).await?;
        let gone = self.write_once(ConditionalWrite::no_thread(record)).await?;
        // A repeated call finds no item, which is success.
        let partition = key::thread(&record.owner, &record.context_id);
        Ok(gone || self.meta(&partition).await?.is_none())
    }

    /// Keys in a partition (the first page of them), each with the attribute that
    /// distinguishes the item from one that replaces it.
    async fn keys_of(&self, partition: &str) -> Result<Vec<Item>, StoreError> {
        let found = self
            .client
            .query()
            .table_name(&self.table)
            .consistent_read(true)
            .key_condition_expression("PK = :pk")
            .expression_attribute_values(":pk", item::text(partition))
            .projection_expression("PK, SK, #incarnation, #mark")
            .expression_attribute_names("#incarnation", item::INCARNATION)
            .expression_attribute_names("#mark", push_item::MARK)
            .send()
            .await
            .map_err(|error| outcome::read_error(&error))?;
        Ok(found.items.unwrap_or_default())
    }
}
