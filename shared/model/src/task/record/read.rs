//! What a record says: its fields, and what follows from them.

use super::{Task, TaskFields};
use crate::task::{
    Artifact, Event, LoggedEvent, Message, Part, PartContent, SkillId, TaskKey, TaskState,
    Timestamp, WriteId,
};
use std::time::Duration;

/// After how many deaths a turn ends, whatever progress it makes.
const DEATHS_MAX: u32 = 50;

impl TaskFields {
    /// The state.
    #[must_use]
    pub fn state(&self) -> TaskState {
        self.status.state
    }

    /// The name of its skill, if it has one.
    #[must_use]
    pub fn skill_name(&self) -> Option<&str> {
        self.skill.as_ref().map(SkillId::as_str)
    }

    /// Until when the items beside it are kept at first: two `lifetime`s from its creation.
    #[must_use]
    pub fn first_kept_until(&self, lifetime: Duration) -> Timestamp {
        self.created_at.plus(lifetime).plus(lifetime)
    }

    /// The open question, if it is one of them and has not moved to another item.
    #[must_use]
    pub fn consent_question(&self) -> Option<&Message> {
        let message = self.status.message.as_ref();
        message.filter(|it| self.state().is_interrupted() && it.consent_digest().is_some())
    }

    /// Whether a turn whose lease has run out, or that has none, has used up its `most`
    /// attempts, or has died 50 times although it made progress.
    #[must_use]
    pub fn is_spent(&self, most: u32) -> bool {
        match self.lease_until {
            Some(_) => self.attempt >= most || self.used.deaths + 1 >= DEATHS_MAX,
            None => self.attempt > most || self.used.deaths >= DEATHS_MAX,
        }
    }

    /// The version that dispatched the turn, while it waits for a worker.
    #[must_use]
    pub fn dispatch(&self) -> Option<u64> {
        match (self.lease_until, self.last_dispatch) {
            (Some(_), _) | (_, 0) => None,
            (None, version) => Some(version),
        }
    }

    /// When the current turn last stored progress: its opening, a step or a saved value.
    #[must_use]
    pub fn progress_at(&self) -> Timestamp {
        self.used.progress_at.unwrap_or(self.created_at)
    }

    /// Its address in a store.
    #[must_use]
    pub fn key(&self) -> TaskKey {
        TaskKey::new(&self.owner, &self.id)
    }

    /// Whether its context is named after it. Then the context id gives the id of
    /// this task.
    #[must_use]
    pub fn names_its_context(&self) -> bool {
        self.context_id.first_task().as_ref() == Some(&self.id)
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
        self.write_ids.contains(write)
            || self.turn_write.as_ref() == Some(write)
            || self.incarnation == *write
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
