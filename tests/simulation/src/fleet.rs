//! A fleet of two releases, as during an upgrade or a rollback.
//!
//! Each process runs one of them. A commit is encoded in the form of its release and
//! stored as that form decodes. The next release is invented: it adds a member to every
//! task and thread that it writes, and the current release does not know the member.

use crate::hub::Hub;
use crate::mutant::Mutant;
use crate::store::SimStore;
use a2a_lambda::store::stored;
use a2a_lambda::store::{Committed, StoreError, TaskWrite, ThreadRecord, ThreadWrite};
use a2a_lambda::task::{TaskRecord, WriteId};
use async_trait::async_trait;
use serde_json::{Value, json};
use std::sync::Arc;

/// The member that the next release adds.
const LATER: &str = "later";

/// The program that a process runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Release {
    /// The current release.
    Today,
    /// The next release.
    After,
}

impl Release {
    /// The two releases of a history; every fourth history is mixed.
    pub(crate) const fn of_history(seed: u64) -> &'static [Self] {
        match seed % 4 {
            3 => &[Self::Today, Self::After],
            _ => &[],
        }
    }
}

/// The member that the next release has added to a task.
pub(crate) fn added_to_task(record: &TaskRecord) -> Option<Value> {
    stored::encode(record).get(LATER).cloned()
}

/// The member that the next release has added to a thread.
pub(crate) fn added_to_thread(record: &ThreadRecord) -> Option<Value> {
    record.unknown.get(LATER).cloned()
}

/// Whether `now` may follow `before`: it is equal, or this very write added it.
pub(crate) fn follows(
    before: Option<&Value>,
    now: Option<&Value>,
    write: Option<&WriteId>,
) -> bool {
    let by = now.and_then(|now| now.get("by")).and_then(Value::as_str);
    let new = by.is_some() && by == write.map(WriteId::as_str);
    new || before == now
}

/// The store as the processes of one release use it.
pub(crate) struct Released {
    pub(crate) store: Arc<SimStore>,
    pub(crate) hub: Arc<Hub>,
    pub(crate) release: Release,
}

impl Released {
    /// A task in the form in which this release stores it.
    fn task(&self, record: &TaskRecord, write: Option<&WriteId>) -> Result<TaskRecord, StoreError> {
        let mut value = stored::encode(record);
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
impl WrapTasks for Released {
    fn tasks(&self) -> &dyn WriteTasks {
        &*self.store
    }

    async fn commit(&self, write: &TaskWrite) -> Result<Committed, StoreError> {
        let thread = write.thread.as_ref().map(|thread| self.thread(thread));
        let write = TaskWrite {
            record: self.task(&write.record, write.id())?,
            thread: thread.transpose()?,
            ..write.clone()
        };
        self.store.commit(&write).await
    }
}

#[async_trait]
impl WrapThreads for Released {
    fn threads(&self) -> &dyn WriteThreads {
        &*self.store
    }

    async fn put_thread(&self, write: &ThreadWrite) -> Result<bool, StoreError> {
        self.store.put_thread(&self.thread(write)?).await
    }
}
