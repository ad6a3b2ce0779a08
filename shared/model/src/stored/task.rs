//! The stored form of a task: facts and body.
//!
//! The facts are attributes of its item, because keys, conditions, indexes and filters read them.
//! The body is the rest. It says no fact again, and leaves defaults out.

use super::place::{self, OwnIds, into_owned};
use super::schema::{SCHEMA, corrupt};
use crate::store::StoreError;
use crate::task::{
    Artifact, Base, Consents, ContextId, EventId, Generation, KeyHash, Layout, LoggedEvent,
    Message, Metadata, NewTask, Owner, PushId, Saved, Sealed, SkillId, SkillRoute, Status,
    StoredValue, Subject, TaskFields, TaskId, TaskRecord, TaskState, TenantId, Timestamp,
    Transition, TurnRequest, Used, WriteId,
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

/// The body of a task. A member that has its default is left out.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TaskBody<'a> {
    created_at: Timestamp,
    #[serde(default, skip_serializing_if = "is_default")]
    generation: Generation,
    #[serde(default, skip_serializing_if = "is_default")]
    metadata: Cow<'a, Metadata>,
    #[serde(default, skip_serializing_if = "is_default")]
    status: StatusBody<'a>,
    #[serde(default, skip_serializing_if = "is_default")]
    skill: Option<SkillId>,
    #[serde(default, skip_serializing_if = "is_default")]
    route: Option<SkillRoute>,
    #[serde(default, skip_serializing_if = "is_default")]
    consents: Consents,
    /// Left out for the first one.
    #[serde(default, skip_serializing_if = "is_default")]
    attempt: Option<u32>,
    #[serde(default, skip_serializing_if = "is_default")]
    last_dispatch: u64,
    #[serde(default, skip_serializing_if = "is_default")]
    dispatched_at: Option<Timestamp>,
    /// Left out if only the creating write is known.
    #[serde(default, skip_serializing_if = "is_default")]
    write_ids: Option<Cow<'a, [WriteId]>>,
    /// Left out if the creating write opened the turn.
    #[serde(default, skip_serializing_if = "is_default")]
    turn_write: Option<WriteId>,
    #[serde(default, skip_serializing_if = "is_default")]
    history: Vec<Cow<'a, Message>>,
    #[serde(default, skip_serializing_if = "is_default")]
    artifacts: Vec<Cow<'a, Artifact>>,
    #[serde(default, skip_serializing_if = "is_default")]
    log: Vec<Cow<'a, LoggedEvent>>,
    #[serde(default, skip_serializing_if = "is_default")]
    last_seq: u64,
    #[serde(default, skip_serializing_if = "is_default")]
    last_event: Option<EventId>,
    transitions: Cow<'a, [Transition]>,
    #[serde(default, skip_serializing_if = "is_default")]
    saved: Cow<'a, Saved>,
    #[serde(default, skip_serializing_if = "is_default")]
    base: Cow<'a, Base>,
    #[serde(default, skip_serializing_if = "is_default")]
    replaced: Vec<Cow<'a, Artifact>>,
    #[serde(default, skip_serializing_if = "is_default")]
    secret: Option<Cow<'a, Sealed>>,
    #[serde(default, skip_serializing_if = "is_default")]
    fingerprint: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "is_default")]
    request: Option<Cow<'a, TurnRequest>>,
    #[serde(default, skip_serializing_if = "is_default")]
    reads_text_alone: bool,
    #[serde(default, skip_serializing_if = "is_default")]
    used: Used,
    #[serde(default, skip_serializing_if = "is_default")]
    registrations: u64,
    updated_at: Timestamp,
    /// Left out at rest: then it is a fact.
    #[serde(default, skip_serializing_if = "is_default")]
    expires_at: Option<Timestamp>,
    kept_until: Timestamp,
    #[serde(default, skip_serializing_if = "is_default")]
    keys: Cow<'a, [KeyHash]>,
    #[serde(default, skip_serializing_if = "is_default")]
    layout: Cow<'a, Layout>,
    /// Members that a later version of this program added.
    #[serde(flatten)]
    unknown: Cow<'a, Metadata>,
}

/// A status without its state, which is a fact.
#[derive(Default, PartialEq, Serialize, Deserialize)]
struct StatusBody<'a> {
    #[serde(default, skip_serializing_if = "is_default")]
    message: Option<Cow<'a, Message>>,
    /// Left out if it is the time of the last transition.
    #[serde(default, skip_serializing_if = "is_default")]
    timestamp: Option<Timestamp>,
}

/// Facts and body as one JSON object.
#[derive(Serialize, Deserialize)]
pub(super) struct WholeTask<'a> {
    #[serde(flatten)]
    pub(super) facts: TaskFacts,
    #[serde(flatten)]
    pub(super) body: TaskBody<'a>,
}

fn is_default<T: Default + PartialEq>(member: &T) -> bool {
    *member == T::default()
}

impl<'a> TaskBody<'a> {
    /// The events that have not moved.
    pub(super) fn log(&self) -> &[Cow<'a, LoggedEvent>] {
        &self.log
    }

    /// The body without the content that `layout` says is in children.
    pub(super) fn of(record: &'a TaskFields, layout: &Layout) -> Self {
        let own_ids = OwnIds::of(record);
        let here = |value| !layout.has_value(value);
        let first = &record.incarnation;
        let status = &record.status;
        let last = record.transitions.last().map(|it| it.at);
        Self {
            created_at: record.created_at,
            generation: record.generation,
            metadata: borrow_if(here(StoredValue::Metadata), &record.metadata),
            status: StatusBody {
                message: status
                    .message
                    .as_ref()
                    .filter(|_| !layout.status)
                    .map(|it| own_ids.leave(it)),
                timestamp: Some(status.timestamp).filter(|at| Some(*at) != last),
            },
            skill: record.skill.clone(),
            route: record.route.clone(),
            consents: record.consents.clone(),
            attempt: Some(record.attempt).filter(|it| *it != 1),
            last_dispatch: record.last_dispatch,
            dispatched_at: record.dispatched_at,
            write_ids: Some(record.write_ids.as_slice())
                .filter(|ids| *ids != [first.clone()])
                .map(Cow::Borrowed),
            turn_write: Some(&record.turn_write).filter(|id| *id != first).cloned(),
            history: messages_left(record, layout)
                .iter()
                .map(|it| own_ids.leave(it))
                .collect(),
            artifacts: rests(&record.artifacts, |id| layout.parts_moved(id)),
            log: record
                .events_after(layout.events_moved())
                .map(|it| own_ids.leave_in(it))
                .collect(),
            last_seq: record.last_seq,
            last_event: record.last_event,
            transitions: Cow::Borrowed(&record.transitions),
            saved: borrow_if(here(StoredValue::Saved), &record.saved),
            base: Cow::Borrowed(&record.base),
            replaced: rests(&record.replaced, |id| layout.replaced_moved(id)),
            secret: record
                .secret
                .as_ref()
                .filter(|_| here(StoredValue::Secret))
                .map(Cow::Borrowed),
            fingerprint: record.fingerprint.as_deref().map(Cow::Borrowed),
            request: record.request.as_ref().map(Cow::Borrowed),
            reads_text_alone: record.reads_text_alone,
            used: record.used,
            registrations: record.registrations,
            updated_at: record.updated_at,
            expires_at: Some(record.expires_at).filter(|_| !record.state().is_at_rest()),
            kept_until: record.kept_until,
            keys: Cow::Borrowed(&record.keys),
            layout: Cow::Borrowed(&record.layout),
            unknown: Cow::Borrowed(&record.unknown),
        }
    }

    /// The record of these facts and this body.
    pub(super) fn into_record(self, facts: TaskFacts) -> Result<TaskRecord, StoreError> {
        let incarnation = facts.incarnation;
        let mut record = TaskRecord::create(NewTask {
            id: facts.id,
            owner: Owner {
                tenant: facts.tenant,
                subject: facts.subject,
            },
            context_id: facts.context_id,
            generation: self.generation,
            incarnation: incarnation.clone(),
            metadata: self.metadata.into_owned(),
            created_at: self.created_at,
        });
        let fields = record.fields_mut();
        let last = self.transitions.last().map_or(self.created_at, |it| it.at);
        fields.status = Status {
            state: facts.state,
            message: self.status.message.map(Cow::into_owned),
            timestamp: self.status.timestamp.unwrap_or(last),
        };
        fields.skill = self.skill;
        fields.route = self.route;
        fields.consents = self.consents;
        fields.version = facts.version;
        fields.epoch = facts.epoch;
        fields.turn = facts.turn;
        fields.attempt = self.attempt.unwrap_or(1);
        fields.lease_until = facts.lease_until;
        fields.last_dispatch = self.last_dispatch;
        fields.dispatched_at = self.dispatched_at;
        fields.not_before = facts.not_before;
        let first = || Cow::Owned(vec![incarnation.clone()]);
        fields.write_ids = self.write_ids.unwrap_or_else(first).into_owned();
        fields.turn_write = self.turn_write.unwrap_or(incarnation);
        fields.history = into_owned(self.history);
        fields.artifacts = into_owned(self.artifacts);
        fields.log = into_owned(self.log);
        fields.last_seq = self.last_seq;
        fields.last_event = self.last_event;
        fields.transitions = self.transitions.into_owned();
        fields.saved = self.saved.into_owned();
        fields.base = self.base.into_owned();
        fields.replaced = into_owned(self.replaced);
        fields.secret = self.secret.map(Cow::into_owned);
        fields.fingerprint = self.fingerprint.map(Cow::into_owned);
        fields.request = self.request.map(Cow::into_owned);
        fields.reads_text_alone = self.reads_text_alone;
        fields.used = self.used;
        fields.push_ids = facts.push_configs;
        fields.registrations = self.registrations;
        fields.updated_at = self.updated_at;
        let ends = facts.expires_at.or(self.expires_at);
        fields.expires_at = ends.ok_or_else(|| corrupt("no `expiresAt`"))?;
        fields.kept_until = self.kept_until;
        fields.keys = self.keys.into_owned();
        fields.layout = self.layout.into_owned();
        fields.unknown = self.unknown.into_owned();
        place::fill_record(fields);
        Ok(record)
    }
}

fn borrow_if<T: Clone + Default>(here: bool, value: &T) -> Cow<'_, T> {
    if here {
        Cow::Borrowed(value)
    } else {
        Cow::default()
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
