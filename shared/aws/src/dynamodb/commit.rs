//! The writes of one commit, and what their failed conditions mean.

use super::conditional_write::ConditionalWrite;
use super::idempotency::KeyConflict;
use super::item;
use super::outcome::{Check, TRIES};
use super::store::DynamoStore;
use super::write::WriteResult;
use a2a_lambda_model::store::{Committed, StoreError, TaskWrite};
use a2a_lambda_model::stored;
use a2a_lambda_model::task::TaskRecord;

impl DynamoStore {
    /// The result of a commit that failed a condition.
    pub(super) async fn refused(
        &self,
        write: &TaskWrite,
        checks: Vec<Check>,
    ) -> Result<Committed, StoreError> {
        let record = &write.record;
        let mut checks = checks.into_iter();
        let shown = match checks.next() {
            Some(Check::Failed(Some(item))) => Some(item::to_task(&item)?),
            // Some emulators do not return the item of a failed condition.
            Some(Check::Failed(None)) => None,
            Some(Check::Held) | None => {
                // `key_stands` has already looked at the condition of the key.
                let at = usize::from(write.key.is_some());
                let thread = matches!(checks.nth(at), Some(Check::Failed(_)));
                if write.thread.is_some() && thread {
                    return Ok(Committed::ThreadConflict);
                }
                return Err(StoreError::Corrupt(
                    "task has a child item of a later version".to_owned(),
                ));
            }
        };
        let known = |shown: &TaskRecord| {
            let ours = write.id().is_some_and(|id| shown.was_written_by(id));
            ours || shown.layout().is_empty()
        };
        let stored = match shown.filter(known) {
            Some(shown) => Some(shown),
            None => self.stored_task(None, &record.key(), |_| true).await?,
        };
        let mine = stored.filter(|stored| stored.owner() == record.owner());
        if let (Some(stored), Some(id)) = (&mine, write.id())
            && stored.was_written_by(id)
        {
            return Ok(Committed::Done);
        }
        let live = mine.filter(|stored| !stored.expired(write.now));
        Ok(Committed::Conflict(live))
    }

    /// Looks up whether a write with an unknown result is stored.
    pub(super) async fn look_for(
        &self,
        write: &TaskWrite,
        why: String,
    ) -> Result<Committed, StoreError> {
        let id = write.checked_id()?;
        let stored = self.own_item(&write.record.key()).await?;
        match stored {
            Some(stored) if stored.was_written_by(id) => Ok(Committed::Done),
            _ if self.key_has(write).await? => Ok(Committed::Done),
            _ => Err(StoreError::Unavailable(why)),
        }
    }

    /// The statements of a commit, in this order: the task, its key, its thread, its push
    /// configs, its new children. `refused` and `key_stands` find the results by position.
    /// `dead` is the write id of the key item that the commit may replace.
    pub(super) async fn statements(
        &self,
        write: &TaskWrite,
        dead: Option<&str>,
    ) -> Result<Vec<ConditionalWrite>, StoreError> {
        let pieces = stored::pieces(&write.record)?;
        let children = match pieces.children {
            none if none.is_empty() => Vec::new(),
            children => Box::pin(self.child_statements(write, children)).await?,
        };
        let mut statements = vec![ConditionalWrite::task(write, pieces.head)];
        if let Some(key) = &write.key {
            statements.push(ConditionalWrite::key(write, key, dead));
        }
        if let Some(thread) = &write.thread {
            statements.extend(self.thread_statements(thread).await?);
        }
        for push in &write.pushes {
            statements.extend(ConditionalWrite::push(push)?);
        }
        statements.extend(children);
        // A task alone has no transaction: `commit` writes its pointer before it.
        if statements.len() > 1 {
            statements.extend(ConditionalWrite::missing_pointer(write));
        }
        Ok(statements)
    }

    /// Stores a commit, or returns the reason why not. If the key has become free, it builds
    /// the statements again. What follows a failed condition is boxed: else each commit would
    /// move the room for it.
    pub(super) async fn put_all(
        &self,
        write: &TaskWrite,
        mut statements: Vec<ConditionalWrite>,
    ) -> Result<Committed, StoreError> {
        for _ in 0..TRIES {
            let checks = match self.write(statements).await? {
                WriteResult::Done => return Ok(Committed::Done),
                WriteResult::Unknown(why) => return Box::pin(self.look_for(write, why)).await,
                WriteResult::Refused(checks) => checks,
            };
            match Box::pin(self.key_stands(write, &checks)).await? {
                KeyConflict::Free => return Box::pin(self.refused(write, checks)).await,
                KeyConflict::Mine => return Ok(Committed::Done),
                KeyConflict::For(keyed) => return Ok(Committed::KeyTaken(keyed)),
                KeyConflict::Dead(by) => {
                    let again = self.statements(write, by.as_deref());
                    statements = Box::pin(again).await?;
                }
            }
        }
        Err(moving_key())
    }
}

fn moving_key() -> StoreError {
    StoreError::Unavailable(
        "the idempotency key changed during every attempt to write it".to_owned(),
    )
}
