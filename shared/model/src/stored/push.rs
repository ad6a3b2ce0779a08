//! The stored form of a push config, without what deliveries write.

use super::schema::{SCHEMA, corrupt, known};
use super::task;
use crate::store::StoreError;
use crate::task::{
    Delivery, Owner, PushId, PushRecord, PushRegistration, Sealed, TaskId, Timestamp, WriteId,
};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
pub(super) struct StoredPush {
    schema: u32,
    id: String,
    tenant: String,
    subject: String,
    task: String,
    inc: String,
    #[serde(rename = "gen")]
    generation: String,
    url: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    sch: Vec<String>,
    /// Sealed (encrypted).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tok: Option<String>,
    /// Sealed (encrypted).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cred: Option<String>,
    /// Whether the token signs deliveries.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    sig: bool,
    at: i64,
    /// The `traceparent` of the call that registered it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tp: Option<String>,
}

impl From<&PushRecord> for StoredPush {
    fn from(push: &PushRecord) -> Self {
        let Owner { tenant, subject } = &push.owner;
        let listener = &push.listener;
        let sealed = |it: &Option<Sealed>| it.as_ref().map(|it| it.as_str().to_owned());
        Self {
            schema: SCHEMA,
            id: listener.id.to_string(),
            tenant: tenant.to_string(),
            subject: subject.to_string(),
            task: push.task.to_string(),
            inc: push.incarnation.to_string(),
            generation: task::generation_name(listener.generation).to_owned(),
            url: listener.url.clone(),
            sch: listener.schemes.clone(),
            tok: sealed(&listener.token),
            cred: sealed(&listener.credentials),
            sig: listener.signs,
            at: push.created_at.as_millis(),
            tp: listener.trace_parent.clone(),
        }
    }
}

impl StoredPush {
    pub(super) fn into_record(self) -> Result<PushRecord, StoreError> {
        known(self.schema)?;
        Ok(PushRecord {
            owner: task::owner(self.tenant, self.subject)?,
            task: TaskId::parse(self.task).map_err(corrupt)?,
            incarnation: WriteId::stored(self.inc),
            listener: PushRegistration {
                id: PushId::parse(self.id).map_err(corrupt)?,
                generation: task::generation(&self.generation)?,
                url: self.url,
                schemes: self.sch,
                token: self.tok.map(Sealed::stored),
                credentials: self.cred.map(Sealed::stored),
                signs: self.sig,
                trace_parent: self.tp,
            },
            created_at: Timestamp::from_millis(self.at),
            clean_at: Timestamp::default(),
            delivery: Delivery::default(),
        })
    }
}
