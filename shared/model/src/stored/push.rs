//! The stored form of a push config, without what deliveries write.

use super::schema::{SCHEMA, known};
use crate::store::StoreError;
use crate::task::{
    Delivery, Generation, Owner, PushId, PushRecord, PushRegistration, Sealed, Subject, TaskId,
    TenantId, Timestamp, WriteId,
};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
pub(super) struct StoredPush {
    schema: u32,
    id: PushId,
    tenant: TenantId,
    subject: Subject,
    task: TaskId,
    inc: WriteId,
    #[serde(rename = "gen")]
    generation: Generation,
    url: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    sch: Vec<String>,
    /// Sealed (encrypted).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tok: Option<Sealed>,
    /// Sealed (encrypted).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cred: Option<Sealed>,
    /// Whether the token signs deliveries.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    sig: bool,
    at: Timestamp,
    /// The `traceparent` of the call that registered it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tp: Option<String>,
}

impl From<&PushRecord> for StoredPush {
    fn from(push: &PushRecord) -> Self {
        let Owner { tenant, subject } = &push.owner;
        let listener = &push.listener;
        Self {
            schema: SCHEMA,
            id: listener.id.clone(),
            tenant: tenant.clone(),
            subject: subject.clone(),
            task: push.task.clone(),
            inc: push.incarnation.clone(),
            generation: listener.generation,
            url: listener.url.clone(),
            sch: listener.schemes.clone(),
            tok: listener.token.clone(),
            cred: listener.credentials.clone(),
            sig: listener.signs,
            at: push.created_at,
            tp: listener.trace_parent.clone(),
        }
    }
}

impl StoredPush {
    pub(super) fn into_record(self) -> Result<PushRecord, StoreError> {
        known(self.schema)?;
        Ok(PushRecord {
            owner: Owner {
                tenant: self.tenant,
                subject: self.subject,
            },
            task: self.task,
            incarnation: self.inc,
            listener: PushRegistration {
                id: self.id,
                generation: self.generation,
                url: self.url,
                schemes: self.sch,
                token: self.tok,
                credentials: self.cred,
                signs: self.sig,
                trace_parent: self.tp,
            },
            created_at: self.at,
            clean_at: Timestamp::default(),
            delivery: Delivery::default(),
        })
    }
}
