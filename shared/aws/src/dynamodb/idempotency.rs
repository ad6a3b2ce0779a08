//! Stores idempotency keys as items.
//!
//! A commit writes the item of its key in its own transaction, and the item holds the
//! commit's write id. The item alone does not show whether the key is free. The key is free
//! if the task that it names is gone. A commit replaces a free key on the condition that the
//! item is still the one that was read.

use super::conditional_write::ConditionalWrite;
use super::item::{self, Attributes, Item};
use super::key;
use super::outcome::Check;
use super::store::DynamoStore;
use a2a_lambda_model::store::{KeyWrite, Keyed, StoreError, TaskWrite};
use a2a_lambda_model::stored;
use a2a_lambda_model::task::{KeyHash, Owner, TaskId, TaskKey, TaskRecord, Timestamp};

const CONTENT: &str = "content";
const TASK: &str = "task";
const WRITE: &str = "write";

/// Why a commit with an idempotency key failed, as far as the key decides it.
pub(super) enum KeyConflict {
    /// The condition of the key held; another condition failed.
    Free,
    /// This same commit has written the key.
    Mine,
    /// The key belongs to a live task.
    For(Box<Keyed>),
    /// The task of the key is gone, or the item is. Holds the write id that may be
    /// replaced.
    Dead(Option<String>),
}

impl ConditionalWrite {
    /// Writes a key as part of `write`. `dead` is the write id of the key item that it may
    /// replace.
    pub(super) fn key(write: &TaskWrite, key: &KeyWrite, dead: Option<&str>) -> Self {
        let record = &write.record;
        let id = write.id().map(ToString::to_string).unwrap_or_default();
        let attributes = Attributes::from([
            (item::SCHEMA, item::number(stored::SCHEMA)),
            (CONTENT, item::text(&*key.content)),
            (TASK, item::text(record.id().as_str())),
            (item::INCARNATION, item::text(record.incarnation().as_str())),
            (WRITE, item::text(id)),
            (item::TTL, item::number(key.kept_until.ttl_seconds())),
        ]);
        let partition = key::idempotency(&record.owner().tenant, &key.key);
        let put = Self::put_at(&partition, key::IDEM, attributes);
        match dead {
            None => put.when("attribute_not_exists(PK)"),
            Some(dead) => put.when_written_by(WRITE, dead),
        }
    }

    /// Removes a key that still belongs to `record`.
    pub(super) fn no_key(record: &TaskRecord, key: &KeyHash) -> Self {
        let partition = key::idempotency(&record.owner().tenant, key);
        let mut gone = Self::gone(item::key_of(&partition, key::IDEM));
        gone.name(TASK);
        gone.value(":task", item::text(record.id().as_str()));
        gone.name(item::INCARNATION);
        gone.value(":same", item::text(record.incarnation().as_str()));
        gone.when("#task = :task AND #incarnation = :same")
    }
}

impl DynamoStore {
    /// The task of a key, unless that task is gone.
    pub(super) async fn keyed(
        &self,
        owner: &Owner,
        key: &KeyHash,
        now: Timestamp,
    ) -> Result<Option<Keyed>, StoreError> {
        match self.key_item(owner, key).await? {
            None => Ok(None),
            Some(item) => self.task_of_key(owner, &item, now).await,
        }
    }

    /// Why the key of a failed commit is not free, or [`KeyConflict::Free`]. The key is the second
    /// statement of the transaction.
    pub(super) async fn key_stands(
        &self,
        write: &TaskWrite,
        checks: &[Check],
    ) -> Result<KeyConflict, StoreError> {
        let (Some(key), Some(Check::Failed(shown))) = (&write.key, checks.get(1)) else {
            return Ok(KeyConflict::Free);
        };
        let owner = write.record.owner();
        let item = match shown {
            Some(item) => Some(item.clone()),
            // Some emulators do not return the item of a failed condition.
            None => self.key_item(owner, &key.key).await?,
        };
        let Some(item) = item else {
            return Ok(KeyConflict::Dead(None));
        };
        let by = item::string(&item, WRITE)?;
        if write.id().is_some_and(|id| id.as_str() == by) {
            return Ok(KeyConflict::Mine);
        }
        Ok(match self.task_of_key(owner, &item, write.now).await? {
            Some(keyed) => KeyConflict::For(Box::new(keyed)),
            None => KeyConflict::Dead(Some(by.to_owned())),
        })
    }

    /// Whether the key of a commit is stored, and therefore the commit too.
    pub(super) async fn key_has(&self, write: &TaskWrite) -> Result<bool, StoreError> {
        let (Some(key), Some(id)) = (&write.key, write.id()) else {
            return Ok(false);
        };
        let item = self.key_item(write.record.owner(), &key.key).await?;
        Ok(item.is_some_and(|item| item::string(&item, WRITE).is_ok_and(|by| by == id.as_str())))
    }

    /// Extends the TTL of a task's keys to the time that this commit demands. This happens
    /// outside of the commit: if the commit fails, a longer TTL does no harm.
    ///
    /// # Errors
    /// [`StoreError`] when the table does not answer.
    pub(super) async fn keep_keys(&self, record: &TaskRecord) -> Result<(), StoreError> {
        let until = record.keys().until.ttl_seconds();
        for key in record.prolonged_keys() {
            let partition = key::idempotency(&record.owner().tenant, key);
            // A key that is gone, or has a later TTL, needs no write.
            self.write_once(ConditionalWrite::keep(&partition, key::IDEM, until))
                .await?;
        }
        Ok(())
    }

    async fn key_item(&self, owner: &Owner, key: &KeyHash) -> Result<Option<Item>, StoreError> {
        let partition = key::idempotency(&owner.tenant, key);
        self.item(&partition, key::IDEM).await
    }

    async fn task_of_key(
        &self,
        owner: &Owner,
        item: &Item,
        now: Timestamp,
    ) -> Result<Option<Keyed>, StoreError> {
        let id = TaskId::parse(item::string(item, TASK)?)
            .map_err(|error| StoreError::Corrupt(error.to_string()))?;
        let incarnation = item::string(item, item::INCARNATION)?;
        let content = item::string(item, CONTENT)?.to_owned();
        let named =
            |task: &TaskRecord| task.incarnation().as_str() == incarnation && !task.expired(now);
        let task = TaskKey::new(owner, &id);
        let live = self.stored_task(Some(owner), &task, named).await?;
        Ok(live.map(|record| Keyed { content, record }))
    }
}
