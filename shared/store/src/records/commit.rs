//! The writes of one commit, and what their failed conditions mean.
//!
//! A commit also keeps the items beside its task as long as the task. Pointer, children,
//! idempotency keys and push configs are written with the `kept_until` of their task, which is
//! one lifetime ahead. The first commit that would pass it moves it, and prolongs all of them
//! before.

use super::idempotency::KeyConflict;
use super::task_item::{self, to_task};
use super::{Records, TRIES, changes, idempotency, pushes, task_pointers};
use crate::item::{self, EXPIRES_AT, TTL};
use crate::keys::{self, Key, PK};
use crate::table::{Comparison, Condition, ConditionCheck, ItemChange, Statement, WriteResult};
use a2a_lambda_model::store::{CommitResult, Expect, StoreError, TaskWrite};
use a2a_lambda_model::stored::{self, Encoded};
use a2a_lambda_model::task::TaskRecord;

/// Writes the `META` item of a task with the content `head`.
fn task(write: &TaskWrite, head: Encoded<'static>) -> Statement {
    let record = &write.record;
    let key = keys::task(&record.key());
    let attributes = task_item::attributes(record, head);
    match &write.expect {
        Expect::Absent => {
            // This create, sent again after its task was deleted, must not bring the task back.
            let is_over = Condition::All(vec![
                Condition::is(EXPIRES_AT, Comparison::AtMost, write.now.as_millis()),
                task_item::is_another(&record.incarnation),
            ]);
            Statement::put(key, item::of(attributes))
                .when(Condition::Any(vec![Condition::absent(PK), is_over]))
        }
        // An update keeps the attributes that other versions of this program wrote.
        Expect::Version {
            version,
            incarnation,
            ..
        } => Statement::update(key, changes(attributes)).when(Condition::All(vec![
            task_item::has_version(*version),
            task_item::is_same(incarnation),
            task_item::is_owned_by(&record.owner),
            item::is_live(write.now),
        ])),
    }
}

impl Records {
    /// The statements of a commit, in this order: the task, its key, its thread, its push
    /// configs, its new children. `refused` and `key_conflict` find the results by position.
    /// `dead` is the write id of the key item that the commit may replace.
    pub(super) async fn statements(
        &self,
        write: &TaskWrite,
        dead: Option<&str>,
    ) -> Result<Vec<Statement>, StoreError> {
        let pieces = stored::pieces(&write.record)?;
        let children = match pieces.children {
            none if none.is_empty() => Vec::new(),
            children => Box::pin(self.child_statements(write, children)).await?,
        };
        let mut statements = vec![task(write, pieces.head)];
        if let Some(key) = &write.key {
            statements.push(idempotency::key(write, key, dead));
        }
        if let Some(thread) = &write.thread {
            statements.extend(self.thread_statements(thread).await?);
        }
        for push in &write.pushes {
            statements.extend(pushes::push(push, write.record.kept_until)?);
        }
        statements.extend(children);
        // A task alone has no transaction: `commit` writes its pointer before it.
        if statements.len() > 1 {
            statements.extend(task_pointers::missing(write));
        }
        Ok(statements)
    }

    /// Sets a later time for the table's TTL on the items beside a task. An item that is gone,
    /// or has a later one, stays as it is. This happens outside of a commit: if the commit
    /// fails, a longer TTL does no harm, and an item that expires too early would.
    ///
    /// # Errors
    /// [`StoreError`] when the table does not answer; then the commit must not be made.
    pub(super) async fn prolong(&self, record: &TaskRecord) -> Result<(), StoreError> {
        let until = record.kept_until.ttl_seconds();
        for key in self.keys_beside(record).await? {
            let later = Statement::update(key, [ItemChange::set(TTL, until)]);
            let is_below = Condition::is(TTL, Comparison::Below, until);
            self.table.try_write(later.when(is_below)).await?;
        }
        Ok(())
    }

    /// The keys of the items beside a task. Some may be gone.
    async fn keys_beside(&self, record: &TaskRecord) -> Result<Vec<Key>, StoreError> {
        let (task, tenant) = (record.key(), &record.owner.tenant);
        let mut keys = Vec::new();
        if !record.names_its_context() {
            keys.push(keys::pointer(record));
        }
        if stored::has_older_children(record) {
            let children = self.child_keys(record).await?.into_keys();
            keys.extend(children.map(|name| keys::child(&task, name)));
        }
        for id in &record.push_ids {
            keys.extend([keys::push(&task, id), keys::delivery(&task, id)]);
        }
        let of_sends = record.keys.iter();
        keys.extend(of_sends.map(|key| keys::idempotency(tenant, key)));
        Ok(keys)
    }

    /// Stores one commit if its conditions hold: all of it or nothing.
    ///
    /// Before it returns [`CommitResult::Conflict`], it looks for the write id in the
    /// stored record. A write that was applied but whose response was lost is
    /// [`CommitResult::Done`].
    ///
    /// # Errors
    /// [`StoreError`]; after `Unavailable` the write may or may not be stored.
    pub async fn commit(&self, write: &TaskWrite) -> Result<CommitResult, StoreError> {
        write.checked_id()?;
        let mut statements = self.statements(write, None).await?;
        if write.prolongs() {
            Box::pin(self.prolong(&write.record)).await?;
        }
        // A transaction has the pointer. A task alone gets it before, not beside it: a read of
        // the context would miss a task without a pointer. A transaction of the two would cost
        // twice the write units (decision 0007).
        if statements.len() == 1
            && let Some(pointer) = task_pointers::missing(write)
        {
            self.table.try_write(pointer).await?;
        }
        // If the key has become free, the statements are built again. What follows a failed
        // condition is boxed: else each commit would move the room for it.
        for _ in 0..TRIES {
            let checks = match self.table.write(statements.into()).await? {
                WriteResult::Done(_) => return Ok(CommitResult::Done),
                WriteResult::Unknown(why) => return Box::pin(self.look_for(write, why)).await,
                WriteResult::Refused(checks) => checks,
            };
            match Box::pin(self.key_conflict(write, &checks)).await? {
                KeyConflict::Free => return Box::pin(self.resolve_conflict(write, checks)).await,
                KeyConflict::WriteResult(outcome) => return Ok(outcome),
                KeyConflict::Dead(by) => {
                    let again = self.statements(write, by.as_deref());
                    statements = Box::pin(again).await?;
                }
            }
        }
        let why = "the idempotency key changed during every attempt to write it";
        Err(StoreError::Unavailable(why.to_owned()))
    }

    /// The result of a commit that failed a condition.
    async fn resolve_conflict(
        &self,
        write: &TaskWrite,
        checks: Vec<ConditionCheck>,
    ) -> Result<CommitResult, StoreError> {
        let record = &write.record;
        let mut checks = checks.into_iter();
        let item = match checks.next() {
            Some(ConditionCheck::Failed(item)) => item,
            Some(ConditionCheck::Held) | None => {
                // `key_conflict` has already looked at the condition of the key.
                let at = usize::from(write.key.is_some());
                let thread = matches!(checks.nth(at), Some(ConditionCheck::Failed(_)));
                if write.thread.is_some() && thread {
                    return Ok(CommitResult::ThreadConflict);
                }
                let why = "task has a child item of a later version";
                return Err(StoreError::Corrupt(why.to_owned()));
            }
        };
        let head = item.as_ref().map(to_task).transpose()?;
        let is_enough = |head: &TaskRecord| {
            let ours = write.id().is_some_and(|id| head.was_written_by(id));
            ours || head.layout.is_empty()
        };
        let task = match head {
            Some(head) if !is_enough(&head) => {
                self.stored_task(None, &record.key(), |_| true).await?
            }
            head => head,
        };
        let mine = task.filter(|task| task.owner == record.owner);
        if let (Some(task), Some(id)) = (&mine, write.id())
            && task.was_written_by(id)
        {
            return Ok(CommitResult::Done);
        }
        let live = mine.filter(|task| !task.is_expired(write.now));
        Ok(CommitResult::Conflict(live))
    }

    /// Looks up whether a write with an unknown result is stored.
    async fn look_for(&self, write: &TaskWrite, why: String) -> Result<CommitResult, StoreError> {
        let id = write.checked_id()?;
        let task = self.own_item(&write.record.key()).await?;
        match task {
            Some(task) if task.was_written_by(id) => Ok(CommitResult::Done),
            _ if self.has_key(write).await? => Ok(CommitResult::Done),
            _ => Err(StoreError::Unavailable(why)),
        }
    }
}
