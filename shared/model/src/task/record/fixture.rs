//! Mutable fields of a record, for tests of records that no commit makes.

use super::{TaskFields, TaskRecord};
use crate::task::{
    Artifact, ContextId, Layout, Message, Metadata, Owner, PushId, Status, TaskId, Timestamp,
    WriteId,
};
use std::sync::Arc;

/// The fields of a record that tests set.
#[derive(Debug)]
pub struct RecordFields<'a> {
    /// Its id.
    pub id: &'a mut TaskId,
    /// Its context.
    pub context_id: &'a mut ContextId,
    /// The id of the creating write.
    pub incarnation: &'a mut WriteId,
    /// Its version.
    pub version: &'a mut u64,
    /// Its epoch.
    pub epoch: &'a mut u64,
    /// When it was created.
    pub created_at: &'a mut Timestamp,
    /// When it expires.
    pub expires_at: &'a mut Timestamp,
    /// The last version that dispatched its turn.
    pub last_dispatch: &'a mut u64,
    /// When its turn was dispatched.
    pub dispatched_at: &'a mut Option<Timestamp>,
    /// Its messages.
    pub history: &'a mut Vec<Message>,
    /// Its artifacts.
    pub artifacts: &'a mut Vec<Artifact>,
    /// The ids of its push configs.
    pub push_ids: &'a mut Vec<PushId>,
    /// Which parts of it are in children.
    pub layout: &'a mut Layout,
    /// Its owner.
    pub owner: &'a mut Owner,
    /// Its status.
    pub status: &'a mut Status,
    /// Its metadata.
    pub metadata: &'a mut Metadata,
    /// Until when its turn has a lease.
    pub lease_until: &'a mut Option<Timestamp>,
    /// The ids of its last writes.
    pub write_ids: &'a mut Vec<WriteId>,
    /// Members that this program does not know.
    pub unknown: &'a mut Metadata,
}

impl TaskRecord {
    /// A record with these fields.
    pub(in crate::task) fn of(fields: TaskFields) -> Self {
        Self(Arc::new(fields))
    }
}

impl TaskFields {
    /// The fields that a test sets. Production code has no such access: the feature
    /// `contract-tests` is for tests only.
    pub const fn fields(&mut self) -> RecordFields<'_> {
        RecordFields {
            id: &mut self.id,
            context_id: &mut self.context_id,
            incarnation: &mut self.incarnation,
            version: &mut self.version,
            epoch: &mut self.epoch,
            created_at: &mut self.created_at,
            expires_at: &mut self.expires_at,
            last_dispatch: &mut self.last_dispatch,
            dispatched_at: &mut self.dispatched_at,
            history: &mut self.history,
            artifacts: &mut self.artifacts,
            push_ids: &mut self.push_ids,
            layout: &mut self.layout,
            owner: &mut self.owner,
            status: &mut self.status,
            metadata: &mut self.metadata,
            lease_until: &mut self.lease_until,
            write_ids: &mut self.write_ids,
            unknown: &mut self.unknown,
        }
    }
}
