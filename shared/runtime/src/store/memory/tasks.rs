//! Tasks in memory.

use super::MemoryStore;
use super::tables::ThreadCheck;
use crate::store::queue::SweepObjects as _;
use crate::store::{
    Committed, IN_CONTEXT, Keyed, ListPosition, ReadTasks, RecordPage, RecordQuery, StoreError,
    TaskWrite, WriteTasks, stored,
};
use crate::task::{ContextId, KeyHash, Owner, TaskId, TaskKey, TaskRecord, TaskState, Timestamp};
use async_trait::async_trait;
use std::cmp::Reverse;

#[async_trait]
impl ReadTasks for MemoryStore {
    async fn load(
        &self,
        owner: &Owner,
        id: &TaskId,
        now: Timestamp,
    ) -> Result<Option<TaskRecord>, StoreError> {
        let tables = self.tables();
        let stored = tables.tasks.get(&TaskKey::new(owner, id));
        Ok(stored
            .filter(|record| record.owner() == owner && !record.expired(now))
            .cloned())
    }

    async fn list(&self, owner: &Owner, query: &RecordQuery) -> Result<RecordPage, StoreError> {
        let tables = self.tables();
        if let Some(context) = &query.context_id {
            let inner = tables.tasks.values().filter(|it| is_in(it, owner, context));
            let inner: Vec<TaskRecord> = inner.take(IN_CONTEXT + 1).cloned().collect();
            if inner.len() <= IN_CONTEXT {
                return Ok(RecordPage::of_all(inner, owner, query));
            }
        }
        let index = tables.lagging.as_ref().unwrap_or(&tables.tasks);
        let mut found: Vec<ListPosition> = index
            .values()
            .filter(|record| query.matches(owner, record))
            .map(ListPosition::of)
            .collect();
        found.sort_by(|a, b| b.cmp(a));
        let matching = found.len().min(query.count_limit);
        found.retain(|place| query.after.as_ref().is_none_or(|after| place < after));
        let more = found.len() > query.limit;
        found.truncate(query.limit);
        let records = found
            .iter()
            .filter_map(|place| tables.tasks.get(&TaskKey::new(owner, &place.task)))
            .filter(|record| query.matches(owner, record))
            .cloned()
            .collect();
        Ok(RecordPage {
            records,
            next: if more { found.pop() } else { None },
            matching,
        })
    }

    async fn load_key(
        &self,
        owner: &Owner,
        key: &KeyHash,
        now: Timestamp,
    ) -> Result<Option<Keyed>, StoreError> {
        Ok(self.tables().keyed(owner, key, now))
    }
}

fn is_in(task: &TaskRecord, owner: &Owner, context: &ContextId) -> bool {
    task.owner() == owner && task.context_id() == context
}

/// The order within a context: newest creation time first, then id.
fn made(task: &TaskRecord) -> Reverse<ListPosition> {
    Reverse(ListPosition {
        at: task.created_at(),
        task: task.id().clone(),
    })
}

#[async_trait]
impl WriteTasks for MemoryStore {
    async fn commit(&self, write: &TaskWrite) -> Result<Committed, StoreError> {
        let id = write.checked_id()?;
        a2a_lambda_model::stored::pieces(&write.record)?;
        if let Some(thread) = &write.thread {
            stored::encode_state(&thread.record.state)?;
        }
        let mut tables = self.tables();
        // The key decides before the task's condition: a repeated send gets the task of
        // its key, not a conflict.
        let refused = tables.key_refuses(write, id);
        if let Some(answer) = refused.or_else(|| tables.refuse(write, id)) {
            return Ok(answer);
        }
        if let Some(thread) = &write.thread {
            match tables.thread_accepts(thread) {
                ThreadCheck::Now => tables.keep_thread(thread),
                ThreadCheck::Already | ThreadCheck::No => return Ok(Committed::ThreadConflict),
            }
        }
        tables.keep_key(write, id);
        let key = write.record.key();
        for push in &write.pushes {
            tables.keep_push(&key, push);
        }
        tables.tasks.insert(key, write.record.clone());
        Ok(Committed::Done)
    }

    async fn ended_task(
        &self,
        owner: &Owner,
        id: &TaskId,
        now: Timestamp,
    ) -> Result<Option<TaskRecord>, StoreError> {
        let found = self.load_by_key(&TaskKey::new(owner, id)).await?;
        Ok(found.filter(|record| record.owner() == owner && record.expired(now)))
    }

    async fn tasks_in(
        &self,
        owner: &Owner,
        context: &ContextId,
        after: Option<String>,
        limit: usize,
    ) -> Result<(Vec<TaskRecord>, Option<String>), StoreError> {
        let after = after.as_deref().map(ListPosition::parse).transpose()?;
        let after = after.map(Reverse);
        let tables = self.tables();
        let found = tables.tasks.values().filter(|it| is_in(it, owner, context));
        let (named, mut found): (Vec<_>, Vec<_>) = found.partition(|it| it.names_its_context());
        found.retain(|it| after.as_ref().is_none_or(|after| made(it) > *after));
        found.sort_by_key(|it| made(it));
        let more = found.len() > limit;
        found.truncate(limit);
        let last = found.last().filter(|_| more);
        let next = last.map(|it| made(it).0.to_string());
        if !more {
            found.extend(named);
        }
        Ok((found.into_iter().cloned().collect(), next))
    }

    async fn remove_task(&self, record: &TaskRecord) -> Result<bool, StoreError> {
        let mut tables = self.tables();
        let key = record.key();
        let Some(stored) = tables.tasks.get(&key) else {
            return Ok(true);
        };
        let same = stored.owner() == record.owner()
            && stored.version() == record.version()
            && stored.incarnation() == record.incarnation();
        if same {
            tables.tasks.remove(&key);
            tables.pushes.retain(|(of, _), _| *of != key);
            tables.keys.retain(|_, stored| {
                stored.task != key || stored.incarnation != *record.incarnation()
            });
        }
        Ok(same)
    }

    async fn heartbeat(
        &self,
        beating: &TaskRecord,
        lease_until: Timestamp,
    ) -> Result<bool, StoreError> {
        let mut tables = self.tables();
        let stored = tables.tasks.get_mut(&beating.key());
        let running = stored.filter(|record| {
            record.owner() == beating.owner()
                && record.state() == TaskState::Working
                && record.is_same_turn(beating)
                && record.lease_until().is_some()
        });
        Ok(running
            .map(|record| record.set_lease(Some(lease_until)))
            .is_some())
    }
}
