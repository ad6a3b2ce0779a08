//! Webhooks as children of their task's partition.
//!
//! What a client registered is one text; what deliveries write are attributes
//! beside it. A delivery names the registration it works for by the text's
//! hash, so that it moves no cursor of one that replaced it.

use super::calls;
use super::item::{self, Attributes, Item};
use super::statement::Statement;
use super::{DynamoStore, key};
use crate::store::push::{DeliverPushes, ReadPushes, WritePushes};
use crate::store::{StoreError, stored};
use crate::task::{Owner, PushId, PushRecord, TaskId, TaskKey, TaskRecord, Timestamp};
use async_trait::async_trait;

const CURSOR: &str = "cursor";
const ATTEMPTS: &str = "attempts";
const RETRY_AT: &str = "retry_at";
/// Which registration it is.
pub(super) const MARK: &str = "mark";

/// The whole item of a webhook.
///
/// # Errors
/// [`StoreError::Refused`], never.
pub(super) fn item_of(push: &PushRecord) -> Result<Item, StoreError> {
    let (partition, sort) = place(push);
    let body = stored::push_text(push)?;
    let mut item = item::key_of(&partition, &sort);
    for (name, value) in [
        (item::SUBJECT, item::subject(&push.owner)),
        (MARK, item::text(mark(push)?)),
        (CURSOR, item::number(push.cursor)),
        (ATTEMPTS, item::number(push.attempts)),
        (RETRY_AT, item::number(push.retry_at.as_millis())),
        (item::TTL, item::number(push.clean_at.ttl_seconds())),
        (item::BODY, item::text(body)),
    ] {
        item.insert(name.to_owned(), value);
    }
    Ok(item)
}

/// # Errors
/// [`StoreError::Corrupt`].
fn push_of(item: &Item) -> Result<PushRecord, StoreError> {
    let mut push = stored::push_of_text(item::string(item, item::BODY)?)?;
    push.cursor = item::integer(item, CURSOR)?;
    push.attempts = item::integer(item, ATTEMPTS)?;
    push.retry_at = Timestamp::from_millis(item::integer(item, RETRY_AT)?);
    push.clean_at = Timestamp::from_millis(item::integer::<i64>(item, item::TTL)? * 1000);
    Ok(push)
}

fn place(push: &PushRecord) -> (String, String) {
    let task = TaskKey::new(&push.owner, &push.task);
    (key::task(&task), key::push(&push.listener.id))
}

fn mark(push: &PushRecord) -> Result<String, StoreError> {
    use sha2::{Digest as _, Sha256};
    Ok(hex::encode(Sha256::digest(stored::push_identity(push)?)))
}

/// A change of a webhook which is still the same registration.
fn update(push: &PushRecord, set: Attributes) -> Result<Statement, StoreError> {
    let (partition, sort) = place(push);
    let mut update = Statement::update_at(item::key_of(&partition, &sort), set, &[]);
    update.name(MARK);
    update.value(":same", item::text(mark(push)?));
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
            .map_err(|error| calls::read_error(&error))?;
        let pushes: Result<Vec<_>, _> = found.items().iter().map(push_of).collect();
        Ok(pushes?
            .into_iter()
            .filter(|push| push.owner == *owner)
            .collect())
    }
}

#[async_trait]
impl WritePushes for DynamoStore {
    async fn put_push(&self, push: &PushRecord) -> Result<(), StoreError> {
        self.settle(Statement::push(push)?).await.map(|_| ())
    }

    async fn delete_push(
        &self,
        owner: &Owner,
        task: &TaskId,
        id: &PushId,
    ) -> Result<(), StoreError> {
        let partition = key::task(&TaskKey::new(owner, task));
        let mut gone = Statement::gone(item::key_of(&partition, &key::push(id)));
        gone.name(item::SUBJECT);
        gone.value(":owner", item::subject(owner));
        // Refused: it is not there, or not theirs to remove.
        self.settle(gone.when("#subject = :owner"))
            .await
            .map(|_| ())
    }
}

#[async_trait]
impl DeliverPushes for DynamoStore {
    async fn advance_push(
        &self,
        push: &PushRecord,
        to: u64,
        clean_at: Timestamp,
    ) -> Result<bool, StoreError> {
        let moved = Attributes::from([
            (CURSOR, item::number(to)),
            (ATTEMPTS, item::number(0)),
            (RETRY_AT, item::number(0)),
            (item::TTL, item::number(clean_at.ttl_seconds())),
        ]);
        let statement = update(push, moved)?.when("#mark = :same AND #cursor < :cursor");
        self.settle(statement).await
    }

    async fn attempt_push(
        &self,
        push: &PushRecord,
        retry_at: Timestamp,
    ) -> Result<bool, StoreError> {
        let tried = Attributes::from([
            (ATTEMPTS, item::number(push.attempts.saturating_add(1))),
            (RETRY_AT, item::number(retry_at.as_millis())),
        ]);
        let mut statement = update(push, tried)?;
        statement.value(":before", item::number(push.attempts));
        self.settle(statement.when("#mark = :same AND #attempts = :before"))
            .await
    }

    async fn confirm_pushes(&self, record: &TaskRecord) -> Result<bool, StoreError> {
        if !record.state().is_at_rest() {
            return Ok(false);
        }
        self.settle(Statement::confirmed(record)).await
    }
}
