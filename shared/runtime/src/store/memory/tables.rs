//! The tables: what the store keeps, and the condition of each write.

use crate::store::queue::ObjectsPlace;
use crate::store::{Committed, Expect, KeyWrite, Keyed, TaskWrite, ThreadRecord, ThreadWrite};
use crate::task::{
    ContextId, KeyHash, Owner, PushId, PushRecord, TaskKey, TaskRecord, TenantId, ThreadKey,
    Timestamp, WriteId,
};
use bytes::Bytes;
use std::collections::BTreeMap;

/// How many write ids a thread remembers to recognise repeated writes; a task has its
/// own list.
const THREAD_WRITES: usize = 4;

#[derive(Debug, Default)]
pub(super) struct Tables {
    pub(super) tasks: BTreeMap<TaskKey, TaskRecord>,
    /// The tasks as the list index sees them while it lags.
    pub(super) lagging: Option<BTreeMap<TaskKey, TaskRecord>>,
    pub(super) threads: BTreeMap<(Owner, ContextId), ThreadEntry>,
    pub(super) keys: BTreeMap<(TenantId, KeyHash), KeyEntry>,
    pub(super) blobs: BTreeMap<String, StoredBlob>,
    pub(super) pushes: BTreeMap<(TaskKey, PushId), PushRecord>,
    /// Tasks at rest whose pushes are confirmed, with the version of the
    /// confirmation.
    pub(super) confirmed: BTreeMap<TaskKey, u64>,
    pub(super) objects_place: Option<ObjectsPlace>,
}

#[derive(Debug)]
pub(super) struct ThreadEntry {
    pub(super) record: ThreadRecord,
    /// Newest last.
    writes: Vec<WriteId>,
}

#[derive(Debug)]
pub(super) struct KeyEntry {
    content: String,
    pub(super) task: TaskKey,
    pub(super) incarnation: WriteId,
    write: WriteId,
    pub(super) kept_until: Timestamp,
}

/// Stored bytes, and the task or thread they belong to.
#[derive(Debug)]
pub(super) struct StoredBlob {
    pub(super) bytes: Bytes,
    pub(super) task: Option<TaskKey>,
    pub(super) thread: Option<ThreadKey>,
}

impl StoredBlob {
    pub(super) const fn of(bytes: Bytes) -> Self {
        Self {
            bytes,
            task: None,
            thread: None,
        }
    }
}

impl Tables {
    /// The outcome if the task's condition does not hold; `None` if it holds.
    pub(super) fn refuse(&self, write: &TaskWrite, id: &WriteId) -> Option<Committed> {
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
        let current = (mine && !expired).then(|| stored.clone());
        Some(Committed::Conflict(current))
    }

    /// The send and the task of a key of `owner`, unless the task is gone.
    pub(super) fn keyed(&self, owner: &Owner, key: &KeyHash, now: Timestamp) -> Option<Keyed> {
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
    pub(super) fn key_refuses(&self, write: &TaskWrite, id: &WriteId) -> Option<Committed> {
        let owner = write.record.owner();
        let key = &write.key.as_ref()?.key;
        let stored = self.keys.get(&(owner.tenant.clone(), key.clone()))?;
        if stored.write == *id {
            return Some(Committed::Done);
        }
        let keyed = self.keyed(owner, key, write.now)?;
        Some(Committed::KeyTaken(Box::new(keyed)))
    }

    pub(super) fn keep_key(&mut self, write: &TaskWrite, id: &WriteId) {
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

    pub(super) fn thread_accepts(&self, write: &ThreadWrite) -> ThreadCheck {
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
    pub(super) fn is_open(&self, key: &TaskKey, record: &TaskRecord) -> bool {
        let reported = self.confirmed.get(key) == Some(&record.version());
        !record.state().is_at_rest() || !record.listeners().is_empty() && !reported
    }

    pub(super) fn keep_push(&mut self, key: &TaskKey, push: &PushRecord) {
        let id = push.listener.id.clone();
        self.pushes.insert((key.clone(), id), push.clone());
    }

    /// The stored push config, if it is still the same registration.
    pub(super) fn same_push(&mut self, push: &PushRecord) -> Option<&mut PushRecord> {
        let key = TaskKey::new(&push.owner, &push.task);
        let stored = self.pushes.get_mut(&(key, push.listener.id.clone()))?;
        let same = stored.owner == push.owner
            && stored.incarnation == push.incarnation
            && stored.created_at == push.created_at
            && stored.listener == push.listener;
        same.then_some(stored)
    }

    pub(super) fn keep_thread(&mut self, write: &ThreadWrite) {
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

pub(super) enum ThreadCheck {
    Now,
    Already,
    No,
}

pub(super) fn thread_key(record: &ThreadRecord) -> (Owner, ContextId) {
    (record.owner.clone(), record.context_id.clone())
}
