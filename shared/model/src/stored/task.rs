//! The stored form of a task: facts and body.
//!
//! The facts are attributes of its item, because keys, conditions, indexes and filters read them.
//! The body is the rest. It says no fact again, and leaves defaults out.

use super::place::{self, OwnIds};
use super::schema::{SCHEMA, corrupt};
use crate::store::StoreError;
use crate::task::{
    Artifact, ContextId, Layout, LoggedEvent, Message, Metadata, Owner, PushId, Saved, Sealed,
    Status, StatusBody, StoredValue, Subject, TaskContent, TaskFields, TaskId, TaskRecord,
    TaskState, TenantId, Timestamp, WriteId, first_attempt, is_default,
};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The facts of a task that its body does not say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskFacts {
    /// The version of the stored form.
    pub schema: u32,
    /// Its id.
    pub id: TaskId,
    /// The tenant of its owner.
    pub tenant: TenantId,
    /// The subject of its owner.
    pub subject: Subject,
    /// Its context.
    pub context_id: ContextId,
    /// The id of its creating write.
    pub incarnation: WriteId,
    /// Its state.
    pub state: TaskState,
    /// Its version.
    pub version: u64,
    /// Its epoch.
    pub epoch: u64,
    /// The number of its turn.
    pub turn: u32,
    /// Until when no other worker may take the running turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_until: Option<Timestamp>,
    /// No worker begins the turn before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Timestamp>,
    /// When it expires; only at rest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// The ids of its push configs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub push_configs: Vec<PushId>,
}

impl TaskFacts {
    /// The facts of `record`.
    #[must_use]
    pub fn of(record: &TaskRecord) -> Self {
        let at_rest = record.state().is_at_rest();
        Self {
            schema: SCHEMA,
            id: record.id.clone(),
            tenant: record.owner.tenant.clone(),
            subject: record.owner.subject.clone(),
            context_id: record.context_id.clone(),
            incarnation: record.incarnation.clone(),
            state: record.state(),
            version: record.version,
            epoch: record.epoch,
            turn: record.turn,
            lease_until: record.lease_until,
            not_before: record.not_before,
            expires_at: at_rest.then_some(record.expires_at),
            push_configs: record.push_ids.clone(),
        }
    }
}

/// Values that each change replaces: in `STATE`, or the body.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct StateContent<'a> {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) saved: Option<Cow<'a, Saved>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) metadata: Option<Cow<'a, Metadata>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) secret: Option<Cow<'a, Sealed>>,
}

impl<'a> StateContent<'a> {
    /// Those of the values that `has` accepts, without defaults.
    pub(super) fn of(record: &'a TaskFields, has: impl Fn(StoredValue) -> bool) -> Self {
        let saved = Some(&record.saved).filter(|it| has(StoredValue::Saved) && !is_default(*it));
        let metadata = Some(&record.metadata);
        let metadata = metadata.filter(|it| has(StoredValue::Metadata) && !it.is_empty());
        let secret = record.secret.as_ref();
        Self {
            saved: saved.map(Cow::Borrowed),
            metadata: metadata.map(Cow::Borrowed),
            secret: secret
                .filter(|_| has(StoredValue::Secret))
                .map(Cow::Borrowed),
        }
    }
}

/// The body of a task: its content, of which the members named here depend on the facts or the
/// layout.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TaskBody<'a> {
    #[serde(flatten, serialize_with = "TaskContent::serialize")]
    content: &'a TaskContent,
    /// The values that are not in `STATE`.
    #[serde(flatten)]
    values: StateContent<'a>,
    #[serde(skip_serializing_if = "is_default", with = "StatusBody")]
    status: Status,
    #[serde(skip_serializing_if = "is_default")]
    attempt: Option<u32>,
    /// Left out if only the creating write is known.
    #[serde(skip_serializing_if = "is_default")]
    write_ids: Option<&'a [WriteId]>,
    #[serde(skip_serializing_if = "is_default")]
    history: Vec<Cow<'a, Message>>,
    #[serde(skip_serializing_if = "is_default")]
    artifacts: Vec<Cow<'a, Artifact>>,
    #[serde(skip_serializing_if = "is_default")]
    pub(super) log: Vec<Cow<'a, LoggedEvent>>,
    #[serde(skip_serializing_if = "is_default")]
    replaced: Vec<Cow<'a, Artifact>>,
    /// Left out at rest: then it is a fact.
    #[serde(skip_serializing_if = "is_default")]
    expires_at: Option<Timestamp>,
}

/// A body as it is read. A member that it leaves out has its default.
#[derive(Deserialize)]
#[serde(transparent)]
pub(super) struct FoundBody(#[serde(with = "TaskContent")] TaskContent);

/// Facts and body as one JSON object.
#[derive(Serialize, Deserialize)]
pub(super) struct WholeTask<B> {
    #[serde(flatten)]
    pub(super) facts: TaskFacts,
    #[serde(flatten)]
    pub(super) body: B,
}

impl<'a> TaskBody<'a> {
    /// The body without the content that `layout` says is in children.
    pub(super) fn of(record: &'a TaskFields, layout: &Layout) -> Self {
        let own_ids = OwnIds::of(record);
        let mut status = Status::default();
        if let Some(message) = record.status.message.as_ref().filter(|_| !layout.status) {
            status.message = Some(own_ids.leave(message).into_owned());
        }
        if record.transitions.last().map(|it| it.at) != Some(record.status.timestamp) {
            status.timestamp = record.status.timestamp;
        }
        let history = messages_left(record, layout).iter();
        let log = record.events_after(layout.events_moved());
        Self {
            content: &record.content,
            values: StateContent::of(record, |value| !layout.has_value(value)),
            status,
            attempt: Some(record.attempt).filter(|it| *it != first_attempt()),
            write_ids: Some(record.write_ids.as_slice())
                .filter(|ids| *ids != std::slice::from_ref(&record.incarnation)),
            history: history.map(|it| own_ids.leave(it)).collect(),
            artifacts: rests(&record.artifacts, |id| layout.parts_moved(id)),
            log: log.map(|it| own_ids.leave_in(it)).collect(),
            replaced: rests(&record.replaced, |id| layout.replaced_moved(id)),
            expires_at: Some(record.expires_at).filter(|_| !record.state().is_at_rest()),
        }
    }
}

impl FoundBody {
    /// The record of these facts and this body.
    pub(super) fn into_record(self, facts: TaskFacts) -> Result<TaskRecord, StoreError> {
        let Self(mut content) = self;
        content.status.state = facts.state;
        if is_default(&content.status.timestamp) {
            let last = content.transitions.last();
            content.status.timestamp = last.map_or(content.created_at, |it| it.at);
        }
        // A task that is not stored yet has no write.
        if content.write_ids.is_empty() && facts.version > 0 {
            content.write_ids.push(facts.incarnation.clone());
        }
        let expiry = Some(content.expires_at).filter(|it| !is_default(it));
        let ends = facts.expires_at.or(expiry);
        content.expires_at = ends.ok_or_else(|| corrupt("no `expiresAt`"))?;
        let mut fields = TaskFields {
            id: facts.id,
            owner: Owner {
                tenant: facts.tenant,
                subject: facts.subject,
            },
            context_id: facts.context_id,
            incarnation: facts.incarnation,
            version: facts.version,
            epoch: facts.epoch,
            turn: facts.turn,
            lease_until: facts.lease_until,
            not_before: facts.not_before,
            push_ids: facts.push_configs,
            is_partial: false,
            content,
        };
        place::fill_record(&mut fields);
        Ok(TaskRecord::of(fields))
    }
}

/// The messages of the history that have not moved.
pub(super) fn messages_left<'a>(record: &'a TaskFields, layout: &Layout) -> &'a [Message] {
    let history = record.history.get(layout.messages_moved()..);
    history.unwrap_or_default()
}

/// The artifacts, each with the parts that have not moved.
fn rests(artifacts: &[Artifact], start_of: impl Fn(&str) -> usize) -> Vec<Cow<'_, Artifact>> {
    let artifacts = artifacts.iter();
    artifacts.map(|it| rest(it, start_of(&it.id))).collect()
}

fn rest(artifact: &Artifact, start: usize) -> Cow<'_, Artifact> {
    if start == 0 {
        return Cow::Borrowed(artifact);
    }
    Cow::Owned(Artifact {
        parts: artifact.parts.get(start..).unwrap_or_default().to_vec(),
        ..artifact.without_parts()
    })
}
