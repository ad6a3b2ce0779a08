//! A store for tasks, threads and bytes in memory: the reference implementation of
//! the store contract.
//!
//! It has no clock, ids or background work of its own, so that a simulation can drive
//! it. Nothing outlives the process.

mod blobs;
mod pushes;
#[cfg(test)]
mod tests;
mod threads;

use self::blobs::StoredBlob;
use super::queue::{ObjectsPlace, OpenTask, SweepObjects, SweepTasks};
use super::{
    Committed, Expect, IN_CONTEXT, KeyWrite, Keyed, ListPosition, ReadTasks, RecordPage,
    RecordQuery, StoreError, TaskWrite, ThreadRecord, ThreadWrite, WriteTasks, stored,
};
use crate::task::{
    ContextId, KeyHash, Owner, PushId, PushRecord, TaskId, TaskKey, TaskRecord, TaskState,
    TenantId, ThreadKey, Timestamp, WriteId,
};
use async_trait::async_trait;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How many write ids a thread remembers to recognise repeated writes; a task has its
/// own list.
const THREAD_WRITES: usize = 4;

/// A store in memory.
#[derive(Debug, Default)]
pub struct MemoryStore {
    tables: Mutex<Tables>,
}

#[derive(Debug, Default)]
struct Tables {
    tasks: BTreeMap<TaskKey, TaskRecord>,
    /// The tasks as the list index sees them while it lags.
    lagging: Option<BTreeMap<TaskKey, TaskRecord>>,
    threads: BTreeMap<(Owner, ContextId), ThreadEntry>,
    keys: BTreeMap<(TenantId, KeyHash), KeyEntry>,
    blobs: BTreeMap<String, StoredBlob>,
    pushes: BTreeMap<(TaskKey, PushId), PushRecord>,
    /// Tasks at rest whose pushes are confirmed, with the version of the
    /// confirmation.
    confirmed: BTreeMap<TaskKey, u64>,
    objects_place: Option<ObjectsPlace>,
}

#[derive(Debug)]
struct ThreadEntry {
    record: ThreadRecord,
    /// Newest last.
    writes: Vec<WriteId>,
}

#[derive(Debug)]
struct KeyEntry {
    content: String,
    task: TaskKey,
    incarnation: WriteId,
    write: WriteId,
    kept_until: Timestamp,
}

impl MemoryStore {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Freezes the list index, as if it lagged, until
    /// [`MemoryStore::catch_up_index`].
    pub fn lag_index(&self) {
        let mut tables = self.tables();
        tables.lagging = Some(tables.tasks.clone());
    }

    /// Lets the list index see every task again.
    pub fn catch_up_index(&self) {
        self.tables().lagging = None;
    }

    /// Removes what the TTL of a table would remove at `now`: expired tasks and keys,
    /// and threads past their time. A thread of a client-made id stays for
    /// `tombstone` after its expiry.
    pub fn clean_up(&self, now: Timestamp, tombstone: Duration) {
        let mut tables = self.tables();
        tables.tasks.retain(|_, task| !task.expired(now));
        tables.keys.retain(|_, key| now < key.kept_until);
        tables
            .threads
            .retain(|_, thread| now < thread.record.kept_until(tombstone));
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        // Nothing between the changes of one commit can panic, so the data behind a
        // poisoned lock is complete.
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tables {
    /// The outcome if the task's condition does not hold; `None` if it holds.
    fn refuse(&self, write: &TaskWrite, id: &WriteId) -> Option<Committed> {
        let record = &write.record;
        let Some(stored) = self.tasks.get(&record.key()) else {
            return match write.expect {
                Expect::Absent => None,
                Expect::Version { .. } => Some(Committed::Conflict(None)),
            };
        };
        let mine = stored.owner() == record.owner();
        // Checked before the expiry: a repeated write is `Done` even after its task has
        // expired.
        if mine && stored.was_written_by(id) {
            return Some(Committed::Done);
        }
        let expired = stored.expired(write.now);
        let holds = match &write.expect {
            Expect::Absent => expired,
            Expect::Version {
                version,
                incarnation,
            } => {
                mine && !expired
                    && stored.version() == *version
                    && stored.incarnation() == incarnation
            }
        };
        if holds {
            return None;
        }
        // A conflict does not show the task of another owner.
        let current = (mine && !expired).then(|| Box::new(stored.clone()));
        Some(Committed::Conflict(current))
    }

    /// The send and the task of a key of `owner`, unless the task is gone.
    fn keyed(&self, owner: &Owner, key: &KeyHash, now: Timestamp) -> Option<Keyed> {
        let stored = self.keys.get(&(owner.tenant.clone(), key.clone()))?;
        let record = self.tasks.get(&stored.task).filter(|record| {
            record.owner() == owner
                && *record.incarnation() == stored.incarnation
                && !record.expired(now)
        })?;
        Some(Keyed {
            content: stored.content.clone(),
            record: record.clone(),
        })
    }

    /// The outcome if there is a key and its condition does not hold.
    fn key_refuses(&self, write: &TaskWrite, id: &WriteId) -> Option<Committed> {
        let owner = write.record.owner();
        let key = &write.key.as_ref()?.key;
        let stored = self.keys.get(&(owner.tenant.clone(), key.clone()))?;
        if stored.write == *id {
            return Some(Committed::Done);
        }
        let keyed = self.keyed(owner, key, write.now)?;
        Some(Committed::KeyTaken(Box::new(keyed)))
    }

    fn keep_key(&mut self, write: &TaskWrite, id: &WriteId) {
        let record = &write.record;
        let tenant = &record.owner().tenant;
        for key in record.prolonged_keys() {
            if let Some(stored) = self.keys.get_mut(&(tenant.clone(), key.clone())) {
                stored.kept_until = stored.kept_until.max(record.keys().until);
            }
        }
        let Some(KeyWrite {
            key,
            content,
            kept_until,
        }) = &write.key
        else {
            return;
        };
        let stored = KeyEntry {
            content: content.clone(),
            task: record.key(),
            incarnation: record.incarnation().clone(),
            write: id.clone(),
            kept_until: *kept_until,
        };
        self.keys.insert((tenant.clone(), key.clone()), stored);
    }

    fn thread_accepts(&self, write: &ThreadWrite) -> ThreadCheck {
        let stored = self.threads.get(&thread_key(&write.record));
        if stored.is_some_and(|stored| stored.writes.contains(&write.write)) {
            return ThreadCheck::Already;
        }
        let version = stored.map_or(0, |stored| stored.record.version);
        if version == write.expect {
            ThreadCheck::Now
        } else {
            ThreadCheck::No
        }
    }

    /// Whether the index of open tasks contains the task.
    fn is_open(&self, key: &TaskKey, record: &TaskRecord) -> bool {
        let reported = self.confirmed.get(key) == Some(&record.version());
        !record.state().is_at_rest() || !record.listeners().is_empty() && !reported
    }

    fn keep_push(&mut self, key: &TaskKey, push: &PushRecord) {
        let id = push.listener.id.clone();
        self.pushes.insert((key.clone(), id), push.clone());
    }

    /// The stored push config, if it is still the same registration.
    fn same_push(&mut self, push: &PushRecord) -> Option<&mut PushRecord> {
        let key = TaskKey::new(&push.owner, &push.task);
        let stored = self.pushes.get_mut(&(key, push.listener.id.clone()))?;
        let same = stored.owner == push.owner
            && stored.incarnation == push.incarnation
            && stored.created_at == push.created_at
            && stored.listener == push.listener;
        same.then_some(stored)
    }

    fn keep_thread(&mut self, write: &ThreadWrite) {
        let key = thread_key(&write.record);
        let before = self.threads.remove(&key);
        let (mut writes, before_state) = before.map_or_else(Default::default, |stored| {
            (stored.writes, Some(stored.record.state))
        });
        writes.push(write.write.clone());
        let surplus = writes.len().saturating_sub(THREAD_WRITES);
        writes.drain(..surplus);
        let mut record = write.record.clone();
        if !record.replaces_state() {
            let kept = before_state.filter(|_| record.state_version > 0);
            record.state = kept.unwrap_or_default();
        }
        self.threads.insert(key, ThreadEntry { record, writes });
    }
}

enum ThreadCheck {
    Now,
    Already,
    No,
}

fn thread_key(record: &ThreadRecord) -> (Owner, ContextId) {
    (record.owner.clone(), record.context_id.clone())
}

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

#[async_trait]
impl SweepObjects for MemoryStore {
    async fn load_by_key(&self, key: &TaskKey) -> Result<Option<TaskRecord>, StoreError> {
        Ok(self.tables().tasks.get(key).cloned())
    }

    async fn head_by_key(&self, key: &TaskKey) -> Result<Option<TaskRecord>, StoreError> {
        self.load_by_key(key).await
    }

    async fn state_object(&self, _: &ThreadKey) -> Result<Option<String>, StoreError> {
        // This store keeps a thread in one piece.
        Ok(None)
    }

    async fn content_objects(&self, _: &TaskKey) -> Result<Vec<String>, StoreError> {
        Ok(Vec::new())
    }

    async fn objects_place(&self) -> Result<Option<ObjectsPlace>, StoreError> {
        Ok(self.tables().objects_place.clone())
    }

    async fn note_objects_place(&self, place: &ObjectsPlace) -> Result<(), StoreError> {
        self.tables().objects_place = Some(place.clone());
        Ok(())
    }
}

#[async_trait]
impl SweepTasks for MemoryStore {
    async fn open_tasks(
        &self,
        _: u32,
        after: Option<String>,
        limit: usize,
    ) -> Result<(Vec<OpenTask>, Option<String>), StoreError> {
        let after = after.as_deref().map(open_place).transpose()?;
        let tables = self.tables();
        let index = tables.lagging.as_ref().unwrap_or(&tables.tasks);
        let mut found: Vec<_> = index
            .iter()
            .filter(|(key, record)| tables.is_open(key, record))
            .map(|(key, record)| {
                let at = record.created_at().as_millis();
                ((at, key.tenant().as_str(), key.local()), record)
            })
            .filter(|(place, _)| after.is_none_or(|after| *place > after))
            .collect();
        found.sort_by_key(|(place, _)| *place);
        let more = found.len() > limit.max(1);
        found.truncate(limit.max(1));
        let next = found.last().filter(|_| more);
        let next = next.map(|((at, tenant, local), _)| format!("{at}#{tenant}#{local}"));
        let tasks = found.into_iter().map(|(_, record)| OpenTask {
            owner: record.owner().clone(),
            task: record.id().clone(),
        });
        Ok((tasks.collect(), next))
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

/// Parses a position in the open tasks: creation time, tenant, local name.
fn open_place(text: &str) -> Result<(i64, &str, &str), StoreError> {
    text.split_once('#')
        .and_then(|(at, key)| Some((at.parse().ok()?, key.split_once('#')?)))
        .map(|(at, (tenant, local))| (at, tenant, local))
        .ok_or_else(|| {
            StoreError::Refused(format!(
                "position `{text}` in the open tasks is not `<ms>#<tenant>#<name>`"
            ))
        })
}

#[async_trait]
impl WriteTasks for MemoryStore {
    async fn commit(&self, write: &TaskWrite) -> Result<Committed, StoreError> {
        let id = write.checked_id()?;
        stored::pieces(&write.record)?;
        if let Some(thread) = &write.thread {
            stored::state_text(&thread.record.state)?;
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
