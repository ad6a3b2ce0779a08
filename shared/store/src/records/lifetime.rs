//! Keeps the items beside a task as long as the task.
//!
//! Pointer, children, idempotency keys and push configs are written with the `kept_until` of
//! their task, which is one lifetime ahead. The first commit that would pass it moves it, and
//! prolongs all of them before.

use super::Records;
use crate::item::TTL;
use crate::keys::{self, Key};
use crate::table::{self, Comparison, Condition, ItemChange, Statement};
use a2a_lambda_model::store::StoreError;
use a2a_lambda_model::stored;
use a2a_lambda_model::task::TaskRecord;

impl Records {
    /// Sets a later time for the table's TTL on the items beside a task. An item that is gone,
    /// or has a later one, stays as it is. This happens outside of a commit: if the commit
    /// fails, a longer TTL does no harm, and an item that expires too early would.
    ///
    /// # Errors
    /// [`StoreError`] when the table does not answer; then the commit must not be made.
    pub(super) async fn prolong(&self, record: &TaskRecord) -> Result<(), StoreError> {
        let until = record.kept_until().ttl_seconds();
        for key in self.keys_beside(record).await? {
            let later = Statement::update(key, [ItemChange::set(TTL, until)]);
            let later = later.when(Condition::is(TTL, Comparison::Below, until));
            table::done(&*self.table, later).await?;
        }
        Ok(())
    }

    /// The keys of the items beside a task. Some may be gone.
    async fn keys_beside(&self, record: &TaskRecord) -> Result<Vec<Key>, StoreError> {
        let (task, tenant) = (record.key(), &record.owner().tenant);
        let mut keys = Vec::new();
        if !record.names_its_context() {
            keys.push(keys::pointer(record));
        }
        if stored::has_older_children(record) {
            let children = self.child_keys(record).await?;
            keys.extend(
                children
                    .into_iter()
                    .map(|(name, _)| keys::child(&task, name)),
            );
        }
        for id in record.listeners() {
            keys.extend([keys::push(&task, id), keys::delivery(&task, id)]);
        }
        let of_sends = record.held_keys().iter();
        keys.extend(of_sends.map(|key| keys::idempotency(tenant, key)));
        Ok(keys)
    }
}
