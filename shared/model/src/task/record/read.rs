//! What a record says: its fields, and what follows from them.

use super::{Base, Consents, Saved, Task, TaskFields, Transition, TurnRequest};
use crate::task::{
    Artifact, ContextId, Event, KeyHash, Layout, LoggedEvent, Message, Metadata, Owner, Part,
    PartContent, PushId, Sealed, SkillId, SkillRoute, Status, TaskId, TaskKey, TaskState,
    Timestamp, Used, WriteId,
};
use std::time::Duration;

/// After how many deaths a turn ends, whatever progress it makes.
const DEATHS_MAX: u32 = 50;

impl TaskFields {
    /// The status. It has no setter; only [`next`](super::TaskRecord::next) changes it.
    #[must_use]
    pub const fn status(&self) -> &Status {
        &self.status
    }

    /// Which parts of it are in children.
    #[must_use]
    pub const fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Whether parts in children were not read. Such a record is enough to judge and
    /// show the task, but a store refuses a commit on top of it.
    #[must_use]
    pub const fn is_partial(&self) -> bool {
        self.partial
    }

    /// The state.
    #[must_use]
    pub const fn state(&self) -> TaskState {
        self.status.state
    }

    /// The hashed idempotency keys of its sends that it keeps (the newest 32).
    pub fn held_keys(&self) -> &[KeyHash] {
        &self.keys
    }

    /// Until when the table keeps all items beside it at least: its pointer, children,
    /// idempotency keys and push configs. It is never before the expiry.
    #[must_use]
    pub const fn kept_until(&self) -> Timestamp {
        self.kept_until
    }

    /// Until when the items beside it are kept at first: two `lifetime`s from its creation.
    #[must_use]
    pub fn first_kept_until(&self, lifetime: Duration) -> Timestamp {
        self.created_at.plus(lifetime).plus(lifetime)
    }

    /// Metadata of the request that created it.
    #[must_use]
    pub const fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// When it was created.
    #[must_use]
    pub const fn created_at(&self) -> Timestamp {
        self.created_at
    }

    /// Why it has its skill. `None` while the router asks, when the client named the skill,
    /// and when the agent has one skill.
    #[must_use]
    pub const fn route(&self) -> Option<&SkillRoute> {
        self.route.as_ref()
    }

    /// Its questions whether skills may run with what a model wrote.
    #[must_use]
    pub const fn consents(&self) -> &Consents {
        &self.consents
    }

    /// The open question, if it is one of them and has not moved to another item.
    #[must_use]
    pub fn consent_question(&self) -> Option<&Message> {
        let message = self.status().message.as_ref();
        message.filter(|it| self.state().is_interrupted() && it.consent_digest().is_some())
    }

    /// The skill that it is pinned to; `None` while the router asks.
    #[must_use]
    pub const fn skill(&self) -> Option<&SkillId> {
        self.skill.as_ref()
    }

    /// The number of its turn, incremented by each message of the client.
    #[must_use]
    pub const fn turn(&self) -> u32 {
        self.turn
    }

    /// The number of the attempt that runs, or that runs next. A run that an outage ended
    /// is no attempt.
    #[must_use]
    pub const fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Whether a turn whose lease has run out, or that has none, has used up its `most`
    /// attempts, or has died 50 times although it made progress.
    #[must_use]
    pub const fn is_spent(&self, most: u32) -> bool {
        match self.lease_until {
            Some(_) => self.attempt >= most || self.used.deaths + 1 >= DEATHS_MAX,
            None => self.attempt > most || self.used.deaths >= DEATHS_MAX,
        }
    }

    /// When its current turn began.
    #[must_use]
    pub fn turn_began_at(&self) -> Timestamp {
        self.base.began_at.unwrap_or(self.created_at)
    }

    /// Until when no other worker may take the running turn.
    #[must_use]
    pub const fn lease_until(&self) -> Option<Timestamp> {
        self.lease_until
    }

    /// The version that dispatched the turn, while it waits for a worker.
    #[must_use]
    pub const fn dispatch(&self) -> Option<u64> {
        match (self.lease_until, self.last_dispatch) {
            (Some(_), _) | (_, 0) => None,
            (None, version) => Some(version),
        }
    }

    /// The last version that dispatched the turn, also after its claim; 0 if none has.
    #[must_use]
    pub const fn last_dispatch(&self) -> u64 {
        self.last_dispatch
    }

    /// When the version in [`last_dispatch`](Self::last_dispatch) was committed.
    #[must_use]
    pub const fn dispatched_at(&self) -> Option<Timestamp> {
        self.dispatched_at
    }

    /// No worker begins the turn before: an outage ended its last run.
    #[must_use]
    pub const fn not_before(&self) -> Option<Timestamp> {
        self.not_before
    }

    /// When the current turn last stored progress: its opening, a step or a saved value.
    #[must_use]
    pub fn progress_at(&self) -> Timestamp {
        self.used.progress_at.unwrap_or(self.created_at)
    }

    /// What its turns have used.
    #[must_use]
    pub const fn used(&self) -> Used {
        self.used
    }

    /// The ids of the last commits, newest last.
    #[must_use]
    pub fn write_ids(&self) -> &[WriteId] {
        &self.write_ids
    }

    /// Its messages, oldest first.
    #[must_use]
    pub fn history(&self) -> &[Message] {
        &self.history
    }

    /// Its artifacts.
    #[must_use]
    pub fn artifacts(&self) -> &[Artifact] {
        &self.artifacts
    }

    /// The event log, oldest first. The numbers increase without a gap.
    #[must_use]
    pub fn log(&self) -> &[LoggedEvent] {
        &self.log
    }

    /// The number of the last logged event.
    #[must_use]
    pub const fn last_seq(&self) -> u64 {
        self.last_seq
    }

    /// The last state changes, oldest first.
    #[must_use]
    pub fn transitions(&self) -> &[Transition] {
        &self.transitions
    }

    /// The data that its skill keeps between turns.
    #[must_use]
    pub const fn saved(&self) -> &Saved {
        &self.saved
    }

    /// What its running turn starts from if it runs again.
    #[must_use]
    pub const fn base(&self) -> &Base {
        &self.base
    }

    /// An answer that stays out of the history (credentials).
    #[must_use]
    pub const fn secret(&self) -> Option<&Sealed> {
        self.secret.as_ref()
    }

    /// The keyed hash of the client's last message, if that was an answer that stays out of
    /// the history.
    #[must_use]
    pub fn fingerprint(&self) -> Option<&str> {
        self.fingerprint.as_deref()
    }

    /// Whether the client of the last send reads text and no data.
    #[must_use]
    pub const fn reads_text_alone(&self) -> bool {
        self.reads_text_alone
    }

    /// The request of the running turn; kept until the turn has ended.
    #[must_use]
    pub const fn request(&self) -> Option<&TurnRequest> {
        self.request.as_ref()
    }

    /// When it last changed.
    #[must_use]
    pub const fn updated_at(&self) -> Timestamp {
        self.updated_at
    }

    /// When a task at rest expires.
    #[must_use]
    pub const fn expires_at(&self) -> Timestamp {
        self.expires_at
    }

    /// Its address in a store.
    #[must_use]
    pub fn key(&self) -> TaskKey {
        TaskKey::new(&self.owner, &self.id)
    }

    /// Its id.
    #[must_use]
    pub const fn id(&self) -> &TaskId {
        &self.id
    }

    /// The owner.
    #[must_use]
    pub const fn owner(&self) -> &Owner {
        &self.owner
    }

    /// Whether its context is named after it. Then the context id gives the id of
    /// this task.
    #[must_use]
    pub fn names_its_context(&self) -> bool {
        self.context_id.first_task().as_ref() == Some(&self.id)
    }

    /// Its context.
    #[must_use]
    pub const fn context_id(&self) -> &ContextId {
        &self.context_id
    }

    /// Its version, incremented by each commit.
    #[must_use]
    pub const fn version(&self) -> u64 {
        self.version
    }

    /// Its epoch, incremented by a start, an answer, a claim or a cancel.
    #[must_use]
    pub const fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The id of the creating write. It distinguishes the task from every other task
    /// that has had its id.
    #[must_use]
    pub const fn incarnation(&self) -> &WriteId {
        &self.incarnation
    }

    /// The last activity; of a task at rest, the end of its last turn. Canceling an
    /// open question and registering a push config do not count.
    #[must_use]
    pub fn active_at(&self) -> Timestamp {
        match self.transitions.as_slice() {
            [.., question, _]
                if self.state() == TaskState::Canceled && question.state.is_interrupted() =>
            {
                question.at
            }
            _ if self.state().is_at_rest() => self.status.timestamp,
            _ => self.updated_at,
        }
    }

    /// Whether the task is gone for every reader: at rest and past its expiry. A
    /// submitted or working task does not expire.
    #[must_use]
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.state().is_at_rest() && self.expires_at <= now
    }

    /// Whether it still runs or waits for its client, and its readers find it.
    #[must_use]
    pub fn is_open(&self, now: Timestamp) -> bool {
        !self.state().is_terminal() && !self.is_expired(now)
    }

    /// Whether `other` is the same task, and not another one of the same id.
    #[must_use]
    pub fn is_same_task(&self, other: &Self) -> bool {
        self.incarnation == other.incarnation
    }

    /// Whether the turn that wrote `base` may still write.
    #[must_use]
    pub fn is_same_turn(&self, base: &Self) -> bool {
        self.is_same_task(base) && self.epoch == base.epoch && !self.state().is_at_rest()
    }

    /// Whether `write` made one of the last commits, opened the turn, or created the
    /// task.
    #[must_use]
    pub fn was_written_by(&self, write: &WriteId) -> bool {
        self.write_ids.contains(write) || self.turn_write == *write || self.incarnation == *write
    }

    /// Whether the commits between `base` and this record only registered push
    /// configs, so that a decision based on `base` still holds.
    #[must_use]
    pub fn differs_in_push_ids_only(&self, base: &Self) -> bool {
        let substance = |record: &Self| record.version.saturating_sub(record.registrations);
        self.incarnation == base.incarnation
            && self.epoch == base.epoch
            && self.version > base.version
            && substance(self) == substance(base)
    }

    /// The number of the last event, if the last commit logged it and the task has
    /// push configs.
    #[must_use]
    pub fn notify(&self) -> Option<u64> {
        let has_event = self.last_event.is_some_and(|id| id.version == self.version);
        (has_event && !self.push_ids.is_empty()).then_some(self.last_seq)
    }

    /// The ids of its push configs; a removed one may be listed.
    #[must_use]
    pub fn push_ids(&self) -> &[PushId] {
        &self.push_ids
    }

    /// The events after the one with number `seq`.
    pub fn events_after(&self, seq: u64) -> impl Iterator<Item = &LoggedEvent> {
        self.log.iter().filter(move |event| event.seq > seq)
    }

    /// The keys of all objects that the record names.
    pub fn object_keys(&self) -> impl Iterator<Item = &str> {
        let messages = self.history.iter().chain(&self.status.message);
        let artifacts = self.artifacts.iter().chain(&self.replaced);
        let log_parts = self.log.iter().flat_map(|entry| match &entry.event {
            Event::Artifact(update) => update.artifact.parts.as_slice(),
            Event::Status(update) => match &update.status.message {
                Some(message) => message.parts.as_slice(),
                None => &[],
            },
        });
        messages
            .flat_map(|message| &message.parts)
            .chain(artifacts.flat_map(|artifact| &artifact.parts))
            .chain(log_parts)
            .filter_map(|part| match &part.content {
                PartContent::Stored(blob) => Some(blob.key.as_str()),
                _ => None,
            })
    }

    /// The ids of the uploads that its messages name.
    pub fn uploads(&self) -> impl Iterator<Item = &str> {
        let parts = self.history.iter().flat_map(|message| &message.parts);
        parts.filter_map(|part| match &part.content {
            PartContent::Stored(blob) => blob.upload.as_deref(),
            _ => None,
        })
    }

    /// The view that a response shows: the `history_length` newest messages (0 leaves
    /// the member out), and the artifacts if `include_artifacts`.
    ///
    /// The status message of an ended task is the last message of its history (A2A 1.0 §3.7
    /// leaves this to the agent). Clients show it when there is no artifact. It is stored once.
    /// The chunks of a text are one text. A client that reads text alone gets data as text.
    #[must_use]
    pub fn view(&self, history_length: usize, include_artifacts: bool) -> Task {
        let mut task = self.content(history_length, include_artifacts);
        if self.reads_text_alone {
            task.parts_mut().for_each(Part::show_as_text);
        }
        task
    }

    /// The task as skills get it: as [`Self::view`], but data stays data for a client that
    /// reads text alone. The last status message joins the history when the task has ended:
    /// before that it is a question or a note, which the next status replaces.
    #[must_use]
    pub fn content(&self, history_length: usize, include_artifacts: bool) -> Task {
        let is_ended = self.status.state.is_terminal();
        let last = self.status.message.iter().filter(|_| is_ended);
        let last = last.filter(|it| self.history.iter().all(|message| message.id != it.id));
        let messages: Vec<&Message> = self.history.iter().chain(last).collect();
        let skip = messages.len().saturating_sub(history_length);
        let mut task = Task {
            id: self.id.clone(),
            context_id: self.context_id.clone(),
            generation: self.generation,
            status: self.status.clone(),
            artifacts: include_artifacts.then(|| self.artifacts.clone()),
            history: (history_length > 0)
                .then(|| messages.into_iter().skip(skip).cloned().collect()),
            metadata: self.metadata.clone(),
            transitions: self.transitions.clone(),
            last_event: self.last_event,
        };
        task.artifacts
            .iter_mut()
            .flatten()
            .for_each(Artifact::join_chunks);
        task
    }
}
