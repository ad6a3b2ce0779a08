//! The stored form of a thread.

use super::message::{StoredMessage, all};
use super::schema::{SCHEMA, corrupt, known};
use super::task::owner;
use crate::store::StoreError;
use crate::store::{ThreadRecord, ThreadState, ThreadStatus};
use crate::task::{ContextId, Metadata, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

#[derive(Serialize, Deserialize)]
pub(super) struct StoredThread<'a> {
    schema: u32,
    tenant: String,
    subject: String,
    ctx: String,
    v: u64,
    at: i64,
    up: i64,
    exp: i64,
    sexp: i64,
    sv: u64,
    /// Whether the context has been deleted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    gone: bool,
    st: StoredState<'a>,
    /// Members that a later version of this program added.
    #[serde(flatten)]
    more: Metadata,
}

#[derive(Serialize, Deserialize)]
pub(super) struct StoredState<'a> {
    schema: u32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    e: Vec<StoredMessage<'a>>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    s: BTreeMap<String, Value>,
    /// Members that a later version of this program added.
    #[serde(flatten)]
    more: Metadata,
}

impl<'a> From<&'a ThreadState> for StoredState<'a> {
    fn from(state: &'a ThreadState) -> Self {
        Self {
            schema: SCHEMA,
            e: state.events.iter().map(StoredMessage::from).collect(),
            s: state.session.clone(),
            more: state.unknown.clone(),
        }
    }
}

impl StoredState<'_> {
    pub(super) fn into_state(self) -> Result<ThreadState, StoreError> {
        known(self.schema)?;
        Ok(ThreadState {
            events: all(self.e, StoredMessage::into_message)?,
            session: self.s,
            unknown: self.more,
        })
    }
}

impl<'a> From<&'a ThreadRecord> for StoredThread<'a> {
    fn from(record: &'a ThreadRecord) -> Self {
        Self {
            schema: SCHEMA,
            tenant: record.owner.tenant.to_string(),
            subject: record.owner.subject.to_string(),
            ctx: record.context_id.to_string(),
            v: record.version,
            at: record.created_at.as_millis(),
            up: record.updated_at.as_millis(),
            exp: record.expires_at.as_millis(),
            sexp: record.state_expires_at.as_millis(),
            sv: record.state_version,
            gone: record.is_cleared(),
            st: StoredState::from(&record.state),
            more: record.unknown.clone(),
        }
    }
}

impl StoredThread<'_> {
    pub(super) fn into_record(self) -> Result<ThreadRecord, StoreError> {
        known(self.schema)?;
        Ok(ThreadRecord {
            owner: owner(self.tenant, self.subject)?,
            context_id: ContextId::parse(self.ctx).map_err(corrupt)?,
            version: self.v,
            status: if self.gone {
                ThreadStatus::Cleared
            } else {
                ThreadStatus::Active
            },
            created_at: Timestamp::from_millis(self.at),
            updated_at: Timestamp::from_millis(self.up),
            expires_at: Timestamp::from_millis(self.exp),
            state_expires_at: Timestamp::from_millis(self.sexp),
            state_version: self.sv,
            state: self.st.into_state()?,
            unknown: self.more,
        })
    }
}
