//! Push configs in memory.

use super::MemoryStore;
use crate::store::StoreError;
use crate::store::push::{DeliverPushes, ReadPushes, WritePushes};
use crate::task::{
    Delivery, Owner, PushId, PushLease, PushRecord, TaskId, TaskKey, TaskRecord, Timestamp, WriteId,
};
use async_trait::async_trait;

#[async_trait]
impl ReadPushes for MemoryStore {
    async fn pushes(&self, owner: &Owner, task: &TaskId) -> Result<Vec<PushRecord>, StoreError> {
        let key = TaskKey::new(owner, task);
        let tables = self.tables();
        let found = tables.pushes.iter();
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
        self.tables().keep_push(&key, push);
        Ok(())
    }

    async fn delete_push(
        &self,
        owner: &Owner,
        task: &TaskId,
        id: &PushId,
    ) -> Result<(), StoreError> {
        let place = (TaskKey::new(owner, task), id.clone());
        let mut tables = self.tables();
        if tables
            .pushes
            .get(&place)
            .is_some_and(|push| push.owner == *owner)
        {
            tables.pushes.remove(&place);
        }
        Ok(())
    }
}

#[async_trait]
impl DeliverPushes for MemoryStore {
    async fn lease_push(
        &self,
        push: &PushRecord,
        lease: &PushLease,
        now: Timestamp,
        clean_at: Timestamp,
    ) -> Result<bool, StoreError> {
        let mut tables = self.tables();
        let stored = tables.same_push(push).filter(|stored| {
            let (stored, seen) = (&stored.delivery, &push.delivery);
            let other = stored.lease.as_ref().filter(|other| other.until > now);
            let unmoved = stored.cursor == seen.cursor && stored.attempts == seen.attempts;
            holds(stored, &lease.holder) || other.is_none() && unmoved
        });
        Ok(stored
            .map(|stored| {
                stored.delivery.lease = Some(lease.clone());
                stored.clean_at = clean_at;
            })
            .is_some())
    }

    async fn note_delivery(
        &self,
        push: &PushRecord,
        holder: &WriteId,
        delivery: &Delivery,
    ) -> Result<bool, StoreError> {
        let mut tables = self.tables();
        let stored = tables.same_push(push);
        let stored = stored.filter(|stored| holds(&stored.delivery, holder));
        Ok(stored
            .map(|stored| stored.delivery = delivery.clone())
            .is_some())
    }

    async fn confirm_pushes(&self, record: &TaskRecord) -> Result<bool, StoreError> {
        let mut tables = self.tables();
        let key = record.key();
        let current = tables.tasks.get(&key).is_some_and(|stored| {
            stored.version() == record.version() && stored.incarnation() == record.incarnation()
        });
        let confirmed = current && record.state().is_at_rest();
        if confirmed {
            tables.confirmed.insert(key, record.version());
        }
        Ok(confirmed)
    }
}

fn holds(delivery: &Delivery, holder: &WriteId) -> bool {
    let lease = delivery.lease.as_ref();
    lease.is_some_and(|lease| lease.holder == *holder)
}
