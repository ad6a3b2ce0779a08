//! Stores push configs in the partition of their task.
//!
//! One item holds what the client registered. A second, small item holds the progress of the
//! deliveries, so that a delivery writes one unit. Both are written together and hold a hash
//! of the registration. So a delivery for an old registration cannot change the progress of
//! the one that replaced it.

use super::conditional_write::ConditionalWrite;
use super::item::{self, Attributes, Item};
use super::key;
use super::outcome;
use super::push_item::{
    ATTEMPTS, CURSOR, HOLDER, LEASE_UNTIL, MARK, delivery_attributes, lease_attributes, mark,
    partition, push_of,
};
use super::store::DynamoStore;
use a2a_lambda_model::store::StoreError;
use a2a_lambda_model::store::push::{DeliverPushes, ReadPushes, WritePushes};
use a2a_lambda_model::task::{
    Delivery, Owner, PushId, PushLease, PushRecord, TaskId, TaskKey, TaskRecord, Timestamp, WriteId,
};
use async_trait::async_trait;
use std::collections::BTreeMap;

/// A change of the delivery item, with the values for its condition: the registration
/// (`:same`) and the holder of the lease (`:mine`).
fn update(
    push: &PushRecord,
    holder: &WriteId,
    set: Attributes,
    gone: &[&str],
) -> Result<ConditionalWrite, StoreError> {
    let sort = key::delivery(&push.listener.id);
    let mut update = ConditionalWrite::update_at(item::key_of(&partition(push), &sort), set, gone);
    update.name(MARK);
    update.value(":same", item::text(mark(push)?));
    update.name(HOLDER);
    update.value(":mine", item::text(holder.as_str()));
    Ok(update)
}

#[async_trait]
impl ReadPushes for DynamoStore {
    async fn pushes(&self, owner: &Owner, task: &TaskId) -> Result<Vec<PushRecord>, StoreError> {
        let partition = key::task(&TaskKey::new(owner, task));
        let found = self
            .client
            .query()
            .table_name(&self.table)
            .consistent_read(true)
            .key_condition_expression("PK = :pk AND begins_with(SK, :push)")
            .expression_attribute_values(":pk", item::text(partition))
            .expression_attribute_values(":push", item::text(key::PUSH))
            .send()
            .await
            .map_err(|error| outcome::read_error(&error))?;
        let sorts = found.items().iter();
        let sorts = sorts.map(|item| Ok((item::string(item, key::SK)?, item)));
        let sorts: BTreeMap<&str, &Item> = sorts.collect::<Result<_, StoreError>>()?;
        let registered = sorts.iter().filter(|(sort, _)| !key::is_delivery(sort));
        let pushes = registered.map(|(sort, item)| {
            let delivered = sorts.get(key::delivery_beside(sort).as_str());
            push_of(item, delivered)
        });
        let mut pushes = pushes.collect::<Result<Vec<_>, _>>()?;
        pushes.retain(|push| push.owner == *owner);
        Ok(pushes)
    }
}

#[async_trait]
impl WritePushes for DynamoStore {
    async fn put_push(&self, push: &PushRecord) -> Result<(), StoreError> {
        self.write_all(ConditionalWrite::push(push)?.into())
            .await
            .map(|_| ())
    }

    async fn delete_push(
        &self,
        owner: &Owner,
        task: &TaskId,
        id: &PushId,
    ) -> Result<(), StoreError> {
        let partition = key::task(&TaskKey::new(owner, task));
        let mut gone = ConditionalWrite::gone(item::key_of(&partition, &key::push(id)));
        gone.name(item::SUBJECT);
        gone.value(":owner", item::subject(owner));
        let delivered = ConditionalWrite::gone(item::key_of(&partition, &key::delivery(id)));
        // The condition fails if the config does not exist or belongs to another owner. Either
        // way there is nothing to remove for this owner.
        self.write_all(vec![gone.when("#subject = :owner"), delivered])
            .await
            .map(|_| ())
    }
}

#[async_trait]
impl DeliverPushes for DynamoStore {
    async fn lease_push(
        &self,
        push: &PushRecord,
        lease: &PushLease,
        now: Timestamp,
        clean_at: Timestamp,
    ) -> Result<bool, StoreError> {
        let until = clean_at.ttl_seconds();
        let mut taken = lease_attributes(lease);
        taken.insert(item::TTL, item::number(until));
        let mut statement = update(push, &lease.holder, taken, &[])?;
        statement.name(CURSOR);
        statement.name(ATTEMPTS);
        statement.value(":now", item::number(now.as_millis()));
        statement.value(":cursor", item::number(push.delivery.cursor));
        statement.value(":attempts", item::number(push.delivery.attempts));
        // If the SDK repeats the write, it finds its own lease and succeeds.
        let statement = statement.when(
            "#mark = :same AND (#holder = :mine OR \
             (attribute_not_exists(#lease_until) OR #lease_until <= :now) \
             AND #cursor = :cursor AND #attempts = :attempts)",
        );
        let leased = self.write_once(statement).await?;
        if leased && clean_at > push.clean_at {
            let sort = key::push(&push.listener.id);
            let kept = ConditionalWrite::keep(&partition(push), &sort, until);
            self.write_once(kept).await?;
        }
        Ok(leased)
    }

    async fn note_delivery(
        &self,
        push: &PushRecord,
        holder: &WriteId,
        delivery: &Delivery,
    ) -> Result<bool, StoreError> {
        let dropped = [HOLDER, LEASE_UNTIL];
        let gone = dropped.as_slice();
        let gone = if delivery.lease.is_some() { &[] } else { gone };
        let statement = update(push, holder, delivery_attributes(delivery), gone)?;
        self.write_once(statement.when("#mark = :same AND #holder = :mine"))
            .await
    }

    async fn confirm_pushes(&self, record: &TaskRecord) -> Result<bool, StoreError> {
        if !record.state().is_at_rest() {
            return Ok(false);
        }
        self.write_once(ConditionalWrite::confirmed(record)).await
    }
}
