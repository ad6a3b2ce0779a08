//! Webhooks in memory.

use super::MemoryStore;
use crate::store::StoreError;
use crate::store::push::{DeliverPushes, ReadPushes, WritePushes};
use crate::task::{Owner, PushId, PushRecord, TaskId, TaskKey, TaskRecord, Timestamp};
use async_trait::async_trait;

#[async_trait]
impl ReadPushes for MemoryStore {
    async fn pushes(&self, owner: &Owner, task: &TaskId) -> Result<Vec<PushRecord>, StoreError> {
        let key = TaskKey::new(owner, task);
        let shelf = self.shelf();
        let found = shelf.pushes.iter();
        Ok(found
            .filter(|((of, _), push)| *of == key && push.owner == *owner)
            .map(|(_, push)| push.clone())
            .collect())
    }
}

#[async_trait]
impl WritePushes for MemoryStore {
    async fn put_push(&self, push: &PushRecord) -> Result<(), StoreError> {
        let key = TaskKey::new(&push.owner, &push.task);
        self.shelf().keep_push(&key, push);
        Ok(())
    }

    async fn delete_push(
        &self,
        owner: &Owner,
        task: &TaskId,
        id: &PushId,
    ) -> Result<(), StoreError> {
        let place = (TaskKey::new(owner, task), id.clone());
        let mut shelf = self.shelf();
        if shelf
            .pushes
            .get(&place)
            .is_some_and(|push| push.owner == *owner)
        {
            shelf.pushes.remove(&place);
        }
        Ok(())
    }
}

#[async_trait]
impl DeliverPushes for MemoryStore {
    async fn advance_push(
        &self,
        push: &PushRecord,
        to: u64,
        clean_at: Timestamp,
    ) -> Result<bool, StoreError> {
        let mut shelf = self.shelf();
        let stored = shelf.same_push(push).filter(|stored| stored.cursor < to);
        Ok(stored
            .map(|stored| {
                stored.cursor = to;
                stored.attempts = 0;
                stored.retry_at = Timestamp::default();
                stored.clean_at = clean_at;
            })
            .is_some())
    }

    async fn attempt_push(
        &self,
        push: &PushRecord,
        retry_at: Timestamp,
    ) -> Result<bool, StoreError> {
        let mut shelf = self.shelf();
        let stored = shelf.same_push(push);
        let stored = stored.filter(|stored| stored.attempts == push.attempts);
        Ok(stored
            .map(|stored| {
                stored.attempts += 1;
                stored.retry_at = retry_at;
            })
            .is_some())
    }

    async fn confirm_pushes(&self, record: &TaskRecord) -> Result<bool, StoreError> {
        let mut shelf = self.shelf();
        let key = record.key();
        let current = shelf.tasks.get(&key).is_some_and(|stored| {
            stored.version() == record.version() && stored.incarnation == record.incarnation
        });
        let confirmed = current && record.state().is_at_rest();
        if confirmed {
            shelf.confirmed.insert(key, record.version());
        }
        Ok(confirmed)
    }
}
