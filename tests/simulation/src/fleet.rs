//! A fleet of two releases, as while one follows the other, or is taken back.
//!
//! Each process is of one of them. What it commits goes through the form which
//! its release writes, and is stored as it reads from there. The release to come
//! is invented: it adds a member to every task and conversation that it writes,
//! and nobody else knows what that is.

use crate::hub::Hub;
use crate::mutant::Mutant;
use crate::store::SimStore;
use a2a_lambda::store::stored::{self, Form};
use a2a_lambda::store::{
    Committed, Keyed, ReadTasks, ReadThreads, RecordPage, RecordQuery, StoreError, TaskWrite,
    ThreadRecord, ThreadWrite, WriteTasks, WriteThreads,
};
use a2a_lambda::task::{ContextId, KeyHash, Owner, TaskId, TaskRecord, Timestamp, WriteId};
use async_trait::async_trait;
use serde_json::{Value, json};
use std::sync::Arc;

/// The member that the release to come adds.
const LATER: &str = "later";

/// Which program a process runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Release {
    /// The one before: it writes the form before, and reads today's.
    Before,
    /// Today's.
    Today,
    /// The one to come.
    After,
}

impl Release {
    /// The two releases of a history: every fourth is mixed.
    pub(crate) const fn of_history(seed: u64) -> &'static [Self] {
        match seed % 8 {
            3 => &[Self::Before, Self::Today],
            7 => &[Self::Today, Self::After],
            _ => &[],
        }
    }
}

/// What the release to come has added to a task.
pub(crate) fn added_to_task(record: &TaskRecord) -> Option<Value> {
    stored::encode(record).get(LATER).cloned()
}

/// What the release to come has added to a conversation.
pub(crate) fn added_to_thread(record: &ThreadRecord) -> Option<Value> {
    record.unknown.get(LATER).cloned()
}

/// Whether this may follow that: it is the same, or of this very write.
pub(crate) fn follows(
    before: Option<&Value>,
    now: Option<&Value>,
    write: Option<&WriteId>,
) -> bool {
    let by = now.and_then(|now| now.get("by")).and_then(Value::as_str);
    let new = by.is_some() && by == write.map(WriteId::as_str);
    new || before == now
}

/// The store as the processes of one release have it.
pub(crate) struct Released {
    pub(crate) store: Arc<SimStore>,
    pub(crate) hub: Arc<Hub>,
    pub(crate) release: Release,
}

impl Released {
    /// A task as it is stored by this release.
    fn task(&self, record: &TaskRecord, write: Option<&WriteId>) -> Result<TaskRecord, StoreError> {
        let form = match self.release {
            Release::Before => Form::First,
            Release::Today | Release::After => Form::Short,
        };
        let mut value = stored::encode_as(record, form);
        if let Some(members) = value.as_object_mut() {
            if self.release == Release::After {
                let by = write.map(WriteId::as_str);
                let added = json!({"at": record.version(), "by": by, "share": 0.1});
                members.insert(LATER.to_owned(), added);
            } else if self.hub.world().is(Mutant::UnknownDropped) {
                members.remove(LATER);
            }
        }
        stored::decode(value)
    }

    fn thread(&self, write: &ThreadWrite) -> Result<ThreadWrite, StoreError> {
        let mut value = stored::encode_thread(&write.record);
        if self.release == Release::After
            && let Some(members) = value.as_object_mut()
        {
            let added = json!({"at": write.record.version, "by": write.write.as_str()});
            members.insert(LATER.to_owned(), added);
        }
        Ok(ThreadWrite {
            record: stored::decode_thread(value)?,
            ..write.clone()
        })
    }
}

#[async_trait]
impl ReadTasks for Released {
    async fn load(
        &self,
        owner: &Owner,
        id: &TaskId,
        now: Timestamp,
    ) -> Result<Option<TaskRecord>, StoreError> {
        self.store.load(owner, id, now).await
    }

    async fn list(&self, owner: &Owner, query: &RecordQuery) -> Result<RecordPage, StoreError> {
        self.store.list(owner, query).await
    }

    async fn load_key(
        &self,
        owner: &Owner,
        key: &KeyHash,
        now: Timestamp,
    ) -> Result<Option<Keyed>, StoreError> {
        self.store.load_key(owner, key, now).await
    }
}

#[async_trait]
impl WriteTasks for Released {
    async fn commit(&self, write: &TaskWrite) -> Result<Committed, StoreError> {
        let thread = write.thread.as_ref().map(|thread| self.thread(thread));
        let write = TaskWrite {
            record: self.task(&write.record, write.id())?,
            thread: thread.transpose()?,
            ..write.clone()
        };
        self.store.commit(&write).await
    }

    async fn heartbeat(
        &self,
        owner: &Owner,
        id: &TaskId,
        epoch: u64,
        lease_until: Timestamp,
    ) -> Result<bool, StoreError> {
        self.store.heartbeat(owner, id, epoch, lease_until).await
    }
}

#[async_trait]
impl ReadThreads for Released {
    async fn load_thread(
        &self,
        owner: &Owner,
        id: &ContextId,
    ) -> Result<Option<ThreadRecord>, StoreError> {
        self.store.load_thread(owner, id).await
    }
}

#[async_trait]
impl WriteThreads for Released {
    async fn put_thread(&self, write: &ThreadWrite) -> Result<bool, StoreError> {
        self.store.put_thread(&self.thread(write)?).await
    }
}
