//! Removing whole partitions.

use super::item::{self, Item};
use super::statement::Statement;
use super::{DynamoStore, calls, key};
use crate::store::StoreError;
use crate::task::{Owner, TaskId, TaskKey, TenantId};

impl DynamoStore {
    /// Removes a task with everything in its partition; see
    /// [`crate::store::WriteTasks::remove_task`].
    pub(super) async fn remove_task_items(
        &self,
        owner: &Owner,
        id: &TaskId,
        version: Option<u64>,
    ) -> Result<bool, StoreError> {
        let partition = key::task(&TaskKey::new(owner, id));
        if let Some(version) = version {
            let statement = Statement::no_task(owner, &partition, version);
            // A repeated call finds no item: that counts as done, if no other
            // task stands there.
            if !self.settle_again(statement).await? && self.meta(&partition).await?.is_some() {
                return Ok(false);
            }
        }
        self.remove_beside(&partition).await?;
        Ok(self.meta(&partition).await?.is_none())
    }

    /// Removes what lies in a partition without its deciding item.
    async fn remove_beside(&self, partition: &str) -> Result<(), StoreError> {
        loop {
            let keys = self.keys_of(partition).await?;
            let is_meta = |key: &Item| item::string(key, key::SK).is_ok_and(|it| it == key::META);
            if keys.is_empty() || keys.iter().any(is_meta) {
                return Ok(());
            }
            for key in keys {
                self.settle_again(Statement::gone(key)).await?;
            }
        }
    }

    /// Removes everything in a partition, the deciding item last.
    pub(super) async fn remove_partition(&self, partition: &str) -> Result<(), StoreError> {
        loop {
            let mut keys = self.keys_of(partition).await?;
            if keys.is_empty() {
                return Ok(());
            }
            keys.sort_by_key(|key| item::string(key, key::SK).is_ok_and(|it| it == key::META));
            for key in keys {
                self.settle_again(Statement::gone(key)).await?;
            }
        }
    }

    /// The keys of a partition, some of them if there are many.
    async fn keys_of(&self, partition: &str) -> Result<Vec<Item>, StoreError> {
        let found = self
            .client
            .query()
            .table_name(&self.table)
            .consistent_read(true)
            .key_condition_expression("PK = :pk")
            .expression_attribute_values(":pk", item::text(partition))
            .projection_expression("PK, SK")
            .send()
            .await
            .map_err(|error| calls::read_error(&error))?;
        Ok(found.items.unwrap_or_default())
    }

    /// Removes up to `limit` items of a tenant and says how many there were:
    /// call it until none is left. It reads the whole table, which has no index
    /// by tenant: an operator's job, and none of a function. Turns that run
    /// meanwhile find their tasks gone.
    ///
    /// # Errors
    /// [`StoreError`] when the table does not answer; the next call goes on.
    pub async fn erase_tenant(&self, tenant: &TenantId, limit: usize) -> Result<usize, StoreError> {
        let mut start = None;
        let mut removed = 0;
        loop {
            let found = self
                .client
                .scan()
                .table_name(&self.table)
                .consistent_read(true)
                .filter_expression("begins_with(PK, :tenant)")
                .expression_attribute_values(":tenant", item::text(key::tenant(tenant)))
                .projection_expression("PK, SK")
                .set_exclusive_start_key(start)
                .send()
                .await
                .map_err(|error| calls::read_error(&error))?;
            for key in found.items.unwrap_or_default() {
                if removed == limit {
                    return Ok(removed);
                }
                self.settle_again(Statement::gone(key)).await?;
                removed += 1;
            }
            start = found.last_evaluated_key;
            if start.is_none() {
                return Ok(removed);
            }
        }
    }
}
