//! Stores idempotency keys as items.
//!
//! A commit writes the item of its key in its own transaction, and the item holds the
//! commit's write id. The item alone does not show whether the key is free. The key is free
//! if the task that it names is gone. A commit replaces a free key on the condition that the
//! item is still the one that was read.

use super::{RecordReader, task_item};
use crate::item::{self, INCARNATION, SCHEMA, TTL, corrupt};
use crate::keys::{self, PK};
use crate::table::{Comparison, Condition, ConditionCheck, Item, Statement};
use a2a_lambda_model::store::{CommitResult, IdempotencyEntry, KeyWrite, StoreError, TaskWrite};
use a2a_lambda_model::stored;
use a2a_lambda_model::task::{KeyHash, Owner, TaskId, TaskKey, TaskRecord, Timestamp, WriteId};

const CONTENT: &str = "content";
const TASK: &str = "task";
const WRITE: &str = "write";

/// Why a commit with an idempotency key failed, as far as the key decides it.
pub(super) enum KeyConflict {
    /// The condition of the key held; another condition failed.
    Free,
    /// This same commit has written the key, or it belongs to a live task.
    WriteResult(CommitResult),
    /// The task of the key is gone, or the item is. Holds the write id that may be
    /// replaced.
    Dead(Option<String>),
}

/// Writes a key as part of `write`. `dead` is the write id of the key item that it may
/// replace.
pub(super) fn key(write: &TaskWrite, key: &KeyWrite, dead: Option<&str>) -> Statement {
    let record = &write.record;
    let id = write.id().map(WriteId::as_str).unwrap_or_default();
    let attributes = item::of(vec![
        (SCHEMA, Some(i64::from(stored::SCHEMA).into())),
        (CONTENT, Some(key.content.as_str().into())),
        (TASK, Some(record.id.as_str().into())),
        (INCARNATION, Some(record.incarnation.as_str().into())),
        (WRITE, Some(id.into())),
        (TTL, Some(item::seconds(record.kept_until))),
    ]);
    let key = keys::idempotency(&record.owner.tenant, &key.key);
    let mut free = vec![Condition::absent(PK)];
    free.extend(dead.map(|dead| Condition::is(WRITE, Comparison::Equal, dead)));
    Statement::put(key, attributes).when(Condition::Any(free))
}

/// Removes a key that still belongs to `record`.
pub(super) fn no_key(record: &TaskRecord, key: &KeyHash) -> Statement {
    let key = keys::idempotency(&record.owner.tenant, key);
    Statement::delete(key).when(Condition::All(vec![
        Condition::is(TASK, Comparison::Equal, record.id.as_str()),
        task_item::is_same(&record.incarnation),
    ]))
}

impl RecordReader {
    /// Why the key of a failed commit is not free, or [`KeyConflict::Free`]. The key is the second
    /// statement of the transaction.
    pub(super) async fn key_conflict(
        &self,
        write: &TaskWrite,
        checks: &[ConditionCheck],
    ) -> Result<KeyConflict, StoreError> {
        let (Some(_), Some(ConditionCheck::Failed(item))) = (&write.key, checks.get(1)) else {
            return Ok(KeyConflict::Free);
        };
        let Some(item) = item else {
            return Ok(KeyConflict::Dead(None));
        };
        let by = item::text(item, WRITE)?;
        if write.id().is_some_and(|id| id.as_str() == by) {
            return Ok(KeyConflict::WriteResult(CommitResult::Done));
        }
        let owner = &write.record.owner;
        Ok(match self.task_of_key(owner, item, write.now).await? {
            Some(holder) => KeyConflict::WriteResult(CommitResult::KeyTaken(Box::new(holder))),
            None => KeyConflict::Dead(Some(by.to_owned())),
        })
    }

    /// Whether the key of a commit is stored, and therefore the commit too.
    pub(super) async fn has_key(&self, write: &TaskWrite) -> Result<bool, StoreError> {
        let (Some(key), Some(id)) = (&write.key, write.id()) else {
            return Ok(false);
        };
        let tenant = &write.record.owner.tenant;
        let item = self.item(keys::idempotency(tenant, &key.key)).await?;
        Ok(item.is_some_and(|item| item::text(&item, WRITE).is_ok_and(|by| by == id.as_str())))
    }

    /// The task that the first send with an idempotency key made, and the hash of what it sent,
    /// from the item of the key. `None` if the task has expired, or an earlier one had its id.
    pub(super) async fn task_of_key(
        &self,
        owner: &Owner,
        item: &Item,
        now: Timestamp,
    ) -> Result<Option<IdempotencyEntry>, StoreError> {
        item::form(item)?;
        let id = TaskId::parse(item::text(item, TASK)?).map_err(corrupt)?;
        let incarnation = item::text(item, INCARNATION)?;
        let content = item::text(item, CONTENT)?.to_owned();
        let is_same =
            |task: &TaskRecord| task.incarnation.as_str() == incarnation && !task.is_expired(now);
        let task = TaskKey::new(owner, &id);
        let live = self.stored_task(Some(owner), &task, is_same).await?;
        Ok(live.map(|record| IdempotencyEntry { content, record }))
    }
}
