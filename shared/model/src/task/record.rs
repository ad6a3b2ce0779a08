//! The stored task and the one way to change it.
//!
//! A record changes by [`TaskRecord::next`] only. It applies the changes of one
//! commit and returns the whole next record, with the events that streams show. It
//! has no I/O, clock or randomness, so the changes can be applied again to a fresh
//! record after a lost race.

mod read;

use super::{
    Artifact, BuildId, Change, ContextId, EventId, Generation, KeyHash, Layout, LoggedEvent,
    Message, Metadata, OutputCounts, Owner, Part, PushId, SavePlace, Sealed, SessionRead,
    SessionReads, SkillId, SkillRoute, Status, StepResult, StepTries, TaskId, TaskState, Timestamp,
    TransitionError, Used, WriteId, is_below, is_default, media_types_meet,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

/// How many write ids a task keeps to recognise repeated writes.
const WRITE_IDS: usize = 8;
/// How many idempotency keys a task keeps.
const KEYS: usize = 32;

/// One change of state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transition {
    /// The state entered.
    pub state: TaskState,
    /// When it was entered.
    pub at: Timestamp,
}

/// The slot of an open question, with the version of its type.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SavedSlot {
    /// `SkillSlot::VERSION` when it was saved.
    pub version: u32,
    /// The slot as JSON.
    pub value: Value,
}

/// What a turn that runs again starts from: the output at the start of the turn, or
/// at its last checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[serde(default)]
pub struct Base {
    /// The number of parts of each artifact, by id.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub artifacts: BTreeMap<String, usize>,
    /// The number of messages in the history.
    pub history: usize,
    /// The number of messages in the history when the turn began.
    pub turn_start: usize,
    /// How many outputs its skill has said in this turn. A turn that runs again says them no
    /// second time.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub outputs: OutputCounts,
    /// Where its skill saved each value of this turn, by key.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub saves: BTreeMap<String, SavePlace>,
    /// What its skill has loaded outside of steps.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub reads: SessionReads,
    /// The tries of the steps that a release or a hand-over interrupted, by path.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tries: BTreeMap<String, StepTries>,
    /// The build that stored the last result of the turn; `None` if it has none, or the build has
    /// no identity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub build: Option<BuildId>,
    /// When the turn began; `None` for the first one, which began with its task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub began_at: Option<Timestamp>,
}

/// The data a skill keeps between its turns.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Saved {
    /// The slot of the open question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slot: Option<SavedSlot>,
    /// Values by key.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub data: BTreeMap<String, Value>,
    /// Results of completed steps, by path.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub steps: BTreeMap<String, StepResult>,
    /// Members of the stored form that a later version of this program added. They
    /// stay with the rest.
    #[serde(flatten)]
    pub unknown: Metadata,
}

impl Saved {
    /// Keeps the result of a step. No turn asks for the steps inside it any more.
    pub fn complete_step(&mut self, key: String, result: StepResult) {
        self.steps.retain(|path, _| !is_below(path, &key));
        self.steps.insert(key, result);
    }
}

impl Base {
    /// Keeps what the turn has loaded, for its next run.
    pub(crate) fn keep_reads(&mut self, reads: Vec<SessionRead>) {
        for SessionRead { scope, key, value } in reads {
            let loads = self.reads.entry(scope).or_default().entry(key).or_default();
            match loads.last_mut() {
                Some((count, last)) if *last == value => *count += 1,
                _ => loads.push((1, value)),
            }
        }
    }
}

/// The parts of a request that its turn needs, so that it runs the same way on any
/// worker.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnRequest {
    /// The caller's rate tier.
    pub tier: String,
    /// The scopes the caller was granted.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub scopes: BTreeSet<String>,
    /// Media types the client can read; empty = any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accepted_output_modes: Vec<String>,
    /// The trace of the request (W3C Trace Context `traceparent`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_parent: Option<String>,
    /// The digest of the question whose consent its message gives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consent: Option<String>,
}

/// The questions of a task whether skills may run with what a model wrote.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Consents {
    /// How many it has asked. One that is repeated counts once.
    pub count: u32,
    /// The digest of the newest one; empty before the first.
    pub digest: String,
}

/// A stored task. All read its fields; it changes in [`TaskRecord::next`].
///
/// A turn moves and clones its record through many futures and results. So the clones of a
/// record share their fields until one of them changes.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskRecord(Arc<TaskFields>);

impl Deref for TaskRecord {
    type Target = TaskFields;

    fn deref(&self) -> &TaskFields {
        &self.0
    }
}

/// The fields of a [`TaskRecord`]: the facts, which keys, conditions and indexes of a store read,
/// and the content.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskFields {
    /// Its id.
    pub id: TaskId,
    /// The owner.
    pub owner: Owner,
    /// Its context.
    pub context_id: ContextId,
    /// The id of the creating write. It distinguishes the task from every other task
    /// that has had its id.
    pub incarnation: WriteId,
    /// Its version, incremented by each commit.
    pub version: u64,
    /// Its epoch, incremented by a start, an answer, a claim or a cancel.
    pub epoch: u64,
    /// The number of its turn, incremented by each message of the client.
    pub turn: u32,
    /// Until when no other worker may take the running turn.
    pub lease_until: Option<Timestamp>,
    /// No worker begins the turn before: an outage ended its last run.
    pub not_before: Option<Timestamp>,
    /// The ids of its push configs; a removed one may be listed.
    pub push_ids: Vec<PushId>,
    /// Whether parts in children were not read. Such a record is enough to judge and
    /// show the task, but a store refuses a commit on top of it.
    pub is_partial: bool,
    pub(crate) content: TaskContent,
}

impl Deref for TaskFields {
    type Target = TaskContent;

    fn deref(&self) -> &TaskContent {
        &self.content
    }
}

/// Outside of this crate and tests, the fields are only reachable through a [`TaskRecord`], which
/// lends them for reading.
impl DerefMut for TaskFields {
    fn deref_mut(&mut self) -> &mut TaskContent {
        &mut self.content
    }
}

/// The content of a [`TaskRecord`]: the members of its stored body, which leaves defaults out.
/// `stored` writes those that depend on the facts or the layout, and fills them in again.
///
/// It implements no trait of serde (`remote`), so that no request can contain one.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", remote = "Self")]
pub struct TaskContent {
    /// When it was created.
    pub created_at: Timestamp,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) generation: Generation,
    /// Metadata of the request that created it.
    #[serde(default, skip_serializing)]
    pub metadata: Metadata,
    /// Its status.
    #[serde(
        default,
        skip_serializing,
        deserialize_with = "StatusBody::deserialize"
    )]
    pub status: Status,
    /// The skill that it is pinned to; `None` while the router asks.
    #[serde(default, skip_serializing_if = "is_default")]
    pub skill: Option<SkillId>,
    /// Why it has its skill. `None` while the router asks, when the client named the skill,
    /// and when the agent has one skill.
    #[serde(default, skip_serializing_if = "is_default")]
    pub route: Option<SkillRoute>,
    /// Its questions whether skills may run with what a model wrote.
    #[serde(default, skip_serializing_if = "is_default")]
    pub consents: Consents,
    /// The number of the attempt that runs, or that runs next. A run that an outage ended
    /// is no attempt.
    #[serde(default = "first_attempt", skip_serializing)]
    pub attempt: u32,
    /// The last version that dispatched the turn, also after its claim; 0 if none has.
    #[serde(default, skip_serializing_if = "is_default")]
    pub last_dispatch: u64,
    /// When the version in `last_dispatch` was committed.
    #[serde(default, skip_serializing_if = "is_default")]
    pub dispatched_at: Option<Timestamp>,
    /// The ids of the last commits, newest last.
    #[serde(default, skip_serializing)]
    pub write_ids: Vec<WriteId>,
    /// The write that opened the current turn; `None` if the creating one did.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) turn_write: Option<WriteId>,
    /// Its messages, oldest first.
    #[serde(default, skip_serializing)]
    pub history: Vec<Message>,
    /// Its artifacts.
    #[serde(default, skip_serializing)]
    pub artifacts: Vec<Artifact>,
    /// The event log, oldest first. The numbers increase without a gap.
    #[serde(default, skip_serializing)]
    pub log: Vec<LoggedEvent>,
    /// The number of the last logged event.
    #[serde(default, skip_serializing_if = "is_default")]
    pub last_seq: u64,
    /// The id of the last logged event.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) last_event: Option<EventId>,
    /// The last state changes, oldest first.
    pub transitions: Vec<Transition>,
    /// The data that its skill keeps between turns.
    #[serde(default, skip_serializing)]
    pub saved: Saved,
    /// What its running turn starts from if it runs again.
    #[serde(default, skip_serializing_if = "is_default")]
    pub base: Base,
    /// Artifacts of the base that the turn has replaced since.
    #[serde(default, skip_serializing)]
    pub(crate) replaced: Vec<Artifact>,
    /// An answer that stays out of the history (credentials).
    #[serde(default, skip_serializing)]
    pub secret: Option<Sealed>,
    /// The keyed hash of the client's last message, if that was an answer that stays out of
    /// the history.
    #[serde(default, skip_serializing_if = "is_default")]
    pub fingerprint: Option<String>,
    /// The request of the running turn; kept until the turn has ended.
    #[serde(default, skip_serializing_if = "is_default")]
    pub request: Option<TurnRequest>,
    /// Whether the client of the last send reads text and no data.
    #[serde(default, skip_serializing_if = "is_default")]
    pub reads_text_alone: bool,
    /// What its turns have used.
    #[serde(default, skip_serializing_if = "is_default")]
    pub used: Used,
    /// How many commits only registered a push config.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) registrations: u64,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// When a task at rest expires.
    #[serde(default, skip_serializing)]
    pub expires_at: Timestamp,
    /// Until when the table keeps all items beside it at least: its pointer, children,
    /// idempotency keys and push configs. It is never before the expiry.
    pub kept_until: Timestamp,
    /// The hashed idempotency keys of its sends that it keeps (the newest 32).
    #[serde(default, skip_serializing_if = "is_default")]
    pub keys: Vec<KeyHash>,
    /// Which parts of it are in children.
    #[serde(default, skip_serializing_if = "is_default")]
    pub layout: Layout,
    /// Members of the stored form that a later version of this program added. Every
    /// commit keeps them.
    #[serde(flatten)]
    pub unknown: Metadata,
}

/// A status without its state, which is a fact.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Status")]
pub(crate) struct StatusBody {
    #[serde(skip)]
    state: TaskState,
    #[serde(default, skip_serializing_if = "is_default")]
    message: Option<Message>,
    /// Left out if it is the time of the last transition.
    #[serde(default, skip_serializing_if = "is_default")]
    timestamp: Timestamp,
}

/// The attempt that a stored form leaves out.
pub(crate) const fn first_attempt() -> u32 {
    1
}

/// The view of a task that a response shows.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    /// Its id.
    pub id: TaskId,
    /// Its context.
    pub context_id: ContextId,
    /// The generation it was created with.
    pub generation: Generation,
    /// Its status.
    pub status: Status,
    /// Its artifacts; `None` leaves the member out.
    pub artifacts: Option<Vec<Artifact>>,
    /// Its history, oldest first; `None` leaves the member out.
    pub history: Option<Vec<Message>>,
    /// Metadata of the task.
    pub metadata: Metadata,
    /// The last state changes, oldest first.
    pub transitions: Vec<Transition>,
    /// The last event that the view includes.
    pub last_event: Option<EventId>,
}

impl Task {
    /// All its parts, in the order in which they use the budget of a response.
    pub fn parts_mut(&mut self) -> impl Iterator<Item = &mut Part> {
        let artifacts = self.artifacts.iter_mut().flatten();
        let status = self.status.message.iter_mut();
        let messages = status.chain(self.history.iter_mut().flatten());
        artifacts
            .flat_map(|artifact| artifact.parts.iter_mut())
            .chain(messages.flat_map(|message| message.parts.iter_mut()))
    }
}

impl TurnRequest {
    /// Whether the client reads text, and does not read data.
    #[must_use]
    pub fn reads_text_alone(&self) -> bool {
        let reads = |media_type| {
            let mut modes = self.accepted_output_modes.iter();
            modes.any(|mode| media_types_meet(mode, media_type))
        };
        reads("text/plain") && !reads("application/json")
    }
}

impl TaskFields {
    /// Keeps the items beside the task for two `lifetime`s from its creation, and again for one
    /// lifetime beyond its expiry by the first commit that would outlive them.
    fn keep(&mut self, is_new: bool, lifetime: Duration) {
        if is_new {
            self.kept_until = self.first_kept_until(lifetime);
        }
        if self.kept_until < self.expires_at {
            self.kept_until = self.expires_at.plus(lifetime);
        }
    }

    /// Counts the commit, and notes its id in place of the oldest one.
    fn note_write(&mut self, write: WriteId) {
        self.version += 1;
        self.write_ids.push(write);
        let surplus = self.write_ids.len().saturating_sub(WRITE_IDS);
        self.write_ids.drain(..surplus);
    }
}

impl TaskRecord {
    /// Its fields, for this crate to change.
    pub(crate) fn fields_mut(&mut self) -> &mut TaskFields {
        Arc::make_mut(&mut self.0)
    }

    /// Its fields, for tests of records that no commit makes.
    #[cfg(any(test, feature = "contract-tests"))]
    pub fn fields(&mut self) -> &mut TaskFields {
        self.fields_mut()
    }

    pub(crate) fn of(fields: TaskFields) -> Self {
        Self(Arc::new(fields))
    }

    /// A task that is not stored yet: submitted, version 0.
    ///
    /// `incarnation` is the id of the creating write, `generation` and `metadata` are those of the
    /// request.
    #[must_use]
    pub fn create(
        id: TaskId,
        owner: Owner,
        context_id: ContextId,
        incarnation: WriteId,
        generation: Generation,
        metadata: Metadata,
        at: Timestamp,
    ) -> Self {
        let state = TaskState::Submitted;
        let content = TaskContent {
            created_at: at,
            generation,
            metadata,
            status: Status {
                state,
                message: None,
                timestamp: at,
            },
            transitions: vec![Transition { state, at }],
            updated_at: at,
            expires_at: at,
            kept_until: at,
            ..TaskContent::default()
        };
        Self::of(TaskFields {
            id,
            owner,
            context_id,
            incarnation,
            version: 0,
            epoch: 0,
            turn: 1,
            lease_until: None,
            not_before: None,
            push_ids: Vec::new(),
            is_partial: false,
            content,
        })
    }

    /// The record after one commit: all `changes`, one version, one write id.
    ///
    /// `expires_at` is the expiry, counted from this write. A write that only
    /// registers push configs does not change the expiry of a task at rest.
    ///
    /// # Errors
    /// [`TransitionError`] when the record does not accept one of the changes;
    /// `self` never changes.
    pub fn next(
        &self,
        changes: impl IntoIterator<Item = Change>,
        write: WriteId,
        at: Timestamp,
        expires_at: Timestamp,
    ) -> Result<Self, TransitionError> {
        let mut record = self.clone();
        let next = record.fields_mut();
        next.note_write(write);
        next.updated_at = at;
        let mut n = 0;
        let mut only_listens = false;
        for (index, change) in changes.into_iter().enumerate() {
            let listens = matches!(change, Change::RegisterPush(_));
            only_listens = listens && (only_listens || index == 0);
            if let Some(event) = next.apply(change, at)? {
                n += 1;
                next.log_event(event, n);
            }
        }
        next.registrations += u64::from(only_listens);
        // The expiry counts from the start of the rest, which a registration does not
        // move.
        if !(only_listens && self.state().is_at_rest()) {
            next.expires_at = expires_at;
        }
        next.keep(self.version == 0, expires_at.since(at));
        Ok(record)
    }

    /// Drops the event log of a task that one write creates and ends. No client can
    /// have seen its events.
    pub fn forget_log(&mut self) {
        self.fields_mut().log.clear();
    }

    /// Adds the key of this commit. Of more than 32 keys the oldest are dropped: they are kept
    /// until the time they have, and no longer. A finished task keeps its list too, because its
    /// removal deletes the keys.
    pub fn hold_key(&mut self, key: KeyHash) {
        let keys = &mut self.fields_mut().keys;
        keys.push(key);
        let surplus = keys.len().saturating_sub(KEYS);
        keys.drain(..surplus);
    }

    /// Sets the lease. A heartbeat extends it without a commit, so the lease is not a
    /// [`Change`].
    pub fn set_lease(&mut self, lease_until: Option<Timestamp>) {
        self.fields_mut().lease_until = lease_until;
    }

    /// The record of a task at rest that expires at `at`, whatever its expiry was.
    /// Nothing else changes.
    #[must_use]
    pub fn with_expiry(&self, write: WriteId, at: Timestamp) -> Self {
        let mut record = self.clone();
        let fields = record.fields_mut();
        fields.note_write(write);
        fields.expires_at = at;
        record
    }
}
