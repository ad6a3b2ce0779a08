//! Finds the tasks of a context in the context's own partition.
//!
//! A pointer to a task is there before the task: in the transaction of the task's first write,
//! or in an earlier request. The one task that its context is named after needs no pointer. A
//! pointer alone proves nothing; the task's `META` item decides. A reader skips a pointer if
//! its task is gone or has another incarnation.

use super::{RecordReader, Records, threads};
use crate::item::{self, TTL};
use crate::keys::{self, Key, PK, SK};
use crate::table::{Position, Query, Range, Statement};
use a2a_lambda_model::store::{
    Expect, Expiring, IN_CONTEXT, RecordPage, RecordQuery, StoreError, TaskWrite, ThreadRecord,
};
use a2a_lambda_model::task::{ContextId, Owner, TaskId, TaskKey, TaskRecord, ThreadKey, Timestamp};
use std::collections::BTreeMap;

/// Pointers that one read returns for removal.
const REMOVED: usize = 1000;

/// Writes the pointer to a task; `None` if its context is named after it.
pub(super) fn pointer(record: &TaskRecord, until: Timestamp) -> Option<Statement> {
    let item = item::of(vec![(TTL, Some(item::seconds(until)))]);
    (!record.names_its_context()).then(|| Statement::put(keys::pointer(record), item))
}

/// Writes the pointer to a task that `write` creates, if the context does not have it.
pub(super) fn missing(write: &TaskWrite) -> Option<Statement> {
    let is_missing = write.expect == Expect::Absent && !write.has_pointer;
    let until = write.record.kept_until;
    pointer(&write.record, until).filter(|_| is_missing)
}

/// Removes the pointer to a task, if it has one. No other task ever has the same pointer.
pub(super) fn no_pointer(record: &TaskRecord) -> Option<Statement> {
    (!record.names_its_context()).then(|| Statement::delete(keys::pointer(record)))
}

impl RecordReader {
    /// Up to `limit` pointers of a context after `start`, newest first. If there are more, also
    /// the position of the last of them.
    async fn pointers(
        &self,
        thread: &ThreadKey,
        range: Range,
        start: Option<Position>,
        limit: usize,
    ) -> Result<(Vec<Key>, Option<Position>), StoreError> {
        let mut query = Query {
            range,
            newest_first: true,
            start,
            only: [PK, SK].map(str::to_owned).into(),
            ..keys::thread_items(thread).into()
        };
        let mut keys = Vec::new();
        // The query asks for one more than `limit`, to see whether there are more.
        while keys.len() <= limit {
            query.limit = Some(limit + 1 - keys.len());
            let page = self.table.query(&query).await?;
            for item in &page.items {
                keys.push(Key::of(item)?);
            }
            query.start = page.next;
            if query.start.is_none() {
                break;
            }
        }
        let more = keys.len() > limit;
        keys.truncate(limit);
        let last = keys.last().filter(|_| more).map(|key| Position(key.item()));
        Ok((keys, last))
    }

    /// The heads of the tasks that these pointers name, in their order. With `end`, the task
    /// that the context is named after follows. `except` is left out.
    async fn heads_at(
        &self,
        owner: &Owner,
        context: &ContextId,
        pointers: &[Key],
        end: bool,
        except: Option<&TaskId>,
    ) -> Result<Vec<TaskRecord>, StoreError> {
        let mut targets: Vec<(TaskId, Option<_>)> = Vec::new();
        for pointer in pointers {
            let target = keys::parse_pointer(pointer.sort());
            targets.extend(target.map(|(task, incarnation)| (task, Some(incarnation))));
        }
        targets.extend(context.first_task().filter(|_| end).map(|it| (it, None)));
        targets.retain(|(task, _)| Some(task) != except);
        let tasks = targets.iter().map(|(task, _)| TaskKey::new(owner, task));
        let mut heads = BTreeMap::new();
        for head in self.heads_of(tasks).await? {
            if &head.owner == owner && &head.context_id == context {
                heads.insert(head.id.clone(), head);
            }
        }
        let existing = targets.iter().filter_map(|(task, incarnation)| {
            let incarnation = incarnation.as_ref();
            let is_same = |head: &TaskRecord| incarnation.is_none_or(|it| &head.incarnation == it);
            let is_stored = heads.get(task).is_some_and(is_same);
            is_stored.then(|| heads.remove(task)).flatten()
        });
        Ok(existing.collect())
    }

    /// A page of everything stored in a context of `owner`, read consistently: up to
    /// `limit` heads after the position `after`, newest creation first, expired
    /// tasks included. The task that the context is named after comes last. The task
    /// `except` is not read: its pointer may be there before it.
    /// The second value is the position of the next page, `None` at the end. A page
    /// may be short.
    ///
    /// # Errors
    /// [`StoreError`] when the store does not answer; [`StoreError::Refused`] for a
    /// position in another context.
    pub async fn tasks_in(
        &self,
        owner: &Owner,
        context: &ContextId,
        except: Option<&TaskId>,
        after: Option<Position>,
        limit: usize,
    ) -> Result<(Vec<TaskRecord>, Option<Position>), StoreError> {
        let thread = ThreadKey::new(owner, context);
        let pointers = self.pointers(&thread, keys::pointers(), after, limit);
        let (pointers, next) = pointers.await?;
        let heads = self.heads_at(owner, context, &pointers, next.is_none(), except);
        Ok((heads.await?, next))
    }

    /// A page of the task list of a context that is small enough for one read of all its heads;
    /// `None` if it is larger.
    pub(super) async fn page_in(
        &self,
        owner: &Owner,
        context: &ContextId,
        query: &RecordQuery,
    ) -> Result<Option<RecordPage>, StoreError> {
        let thread = ThreadKey::new(owner, context);
        let pointers = self.pointers(&thread, keys::pointers(), None, IN_CONTEXT);
        let (pointers, more) = pointers.await?;
        if more.is_some() {
            return Ok(None);
        }
        let heads = self.heads_at(owner, context, &pointers, true, None).await?;
        Ok(Some(RecordPage::of_all(heads, owner, query)))
    }
}

impl Records {
    /// Removes the pointers of a deleted context, but no pointer of a later context with the
    /// same id.
    pub(super) async fn remove_pointers(&self, record: &ThreadRecord) -> Result<(), StoreError> {
        let thread = threads::key(record);
        let deletion = record.swept_at(Expiring::Deleted);
        let by = keys::pointers_by(deletion.unwrap_or(record.expires_at));
        loop {
            let (pointers, more) = self.pointers(&thread, by.clone(), None, REMOVED).await?;
            for pointer in pointers {
                self.table.try_write(Statement::delete(pointer)).await?;
            }
            if more.is_none() {
                return Ok(());
            }
        }
    }
}
