//! The oracle: checks every commit, response and frame of a history.
//!
//! A [`Life`] is one of the tasks that had the same id: clients delete tasks and reuse
//! their ids, and content of one life must not appear in another. The oracle keeps every
//! version of each. A response must show a version that was stored during its call.

mod answer;
mod commit;
mod skill;
mod threads;
mod webhooks;

use crate::oracle::skill::Run;
use crate::oracle::threads::Talk;
use crate::oracle::webhooks::Deliveries;
use a2a_lambda::task::{A2aError, Event, EventId, LoggedEvent, TaskId, TaskRecord, TaskState};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

/// A position in the order of all occurrences of a history.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment(u64);

impl Moment {
    /// Later than every other moment.
    pub(crate) const LAST: Self = Self(u64::MAX);
}

/// One of the tasks that have the same id one after the other.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Life {
    pub(crate) task: TaskId,
    incarnation: String,
}

impl Life {
    pub(crate) fn of(record: &TaskRecord) -> Self {
        Self {
            task: record.id.clone(),
            incarnation: record.incarnation.as_str().to_owned(),
        }
    }
}

impl fmt::Display for Life {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let short = self.incarnation.trim_start_matches('0');
        write!(f, "{}/{short}", self.task)
    }
}

/// The recorded history of one task.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) record: Arc<TaskRecord>,
    /// Every version, and when it was stored.
    stored: Vec<(Moment, Arc<TaskRecord>)>,
    /// The versions that each write made.
    writes: BTreeMap<String, Vec<u64>>,
    /// Every event ever stored; a record may drop old ones.
    log: Vec<LoggedEvent>,
    /// The ids of its client's messages.
    users: Vec<String>,
    turn: u32,
    /// When the process began that has raised its epoch last: it has the lease, if there is one.
    pub(crate) runner: Moment,
    /// How often it was handed over.
    pub(crate) hand_overs: u32,
    /// Whether a worker was ever requested in this turn.
    pub(crate) dispatched: bool,
    pub(crate) acknowledged: bool,
    /// Whether its life has ended by a deletion.
    pub(crate) ended: bool,
    /// When a client first received the confirmation that it is deleted.
    pub(crate) deleted: Option<Moment>,
    /// When a client first received the confirmation that its context is deleted.
    cleared: Option<Moment>,
}

impl Seen {
    /// When it was created.
    fn began(&self) -> Moment {
        self.stored.first().map_or(Moment(0), |(at, _)| *at)
    }

    /// When it was last written.
    fn changed(&self) -> Moment {
        self.stored.last().map_or(Moment(0), |(at, _)| *at)
    }

    fn is_gone(&self, since: Moment) -> bool {
        self.deleted.is_some_and(|at| at < since)
    }
}

/// The outcome of a message, as its sender knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Said {
    /// No response was received.
    Unheard,
    /// It was accepted.
    Taken,
    /// It was refused.
    Refused,
}

/// The position of a reader.
#[derive(Debug, Clone)]
pub(crate) struct Position {
    pub(crate) life: Life,
    pub(crate) last: Option<EventId>,
    pub(crate) seq: u64,
    pub(crate) ended: bool,
}

/// The records of a history.
#[derive(Debug, Default)]
pub(crate) struct Oracle {
    pub(crate) violations: Vec<String>,
    /// Whether no property can be checked from here on.
    pub(crate) abandoned: bool,
    moment: u64,
    /// When the call of the polled process began.
    pub(crate) begun: Moment,
    pub(crate) tasks: BTreeMap<Life, Seen>,
    /// The latest life of each id.
    current: BTreeMap<TaskId, Life>,
    /// The lives that contain a message of a client.
    said_in: BTreeMap<String, Vec<Life>>,
    /// The task that each call has deleted, by the moment the call began.
    deletes: BTreeMap<(Moment, TaskId), Life>,
    /// Ids of tasks and contexts that a client has asked to delete.
    unwanted: BTreeSet<String>,
    threads: BTreeMap<String, Talk>,
    runs: BTreeMap<u64, Run>,
    /// The first run of each turn, by its task, its number and its message.
    marks: BTreeMap<(String, u32, String), u64>,
    effects: u64,
    results: BTreeMap<(String, u32), u64>,
    starts: BTreeMap<String, u32>,
    /// How often the turn of each message was released.
    released: BTreeMap<String, u32>,
    pub(crate) said: BTreeMap<String, Said>,
    /// The response to each keyed message.
    answers: BTreeMap<String, Life>,
    pub(crate) positions: Vec<Position>,
    /// The events that each webhook received.
    brought: BTreeMap<String, Deliveries>,
    pub(crate) trace: Option<Vec<String>>,
    /// Whether processes of two releases run.
    pub(crate) mixed: bool,
    /// Until when the list index lagged.
    pub(crate) lagged: Moment,
}

impl Oracle {
    pub(crate) fn note(&mut self, text: impl FnOnce() -> String) {
        if let Some(trace) = &mut self.trace {
            trace.push(text());
        }
    }

    pub(crate) fn broken(&mut self, text: String) {
        self.note(|| format!("VIOLATION {text}"));
        self.violations.push(text);
    }

    /// A new moment, later than all earlier ones.
    pub(crate) const fn passes(&mut self) -> Moment {
        self.moment += 1;
        Moment(self.moment)
    }

    /// The tasks that are alive.
    pub(crate) fn living(&self) -> impl Iterator<Item = (&Life, &Seen)> {
        self.tasks.iter().filter(|(_, seen)| !seen.ended)
    }

    /// Whether a task is alive.
    pub(crate) fn lives(&self, life: &Life) -> bool {
        self.tasks.get(life).is_some_and(|seen| !seen.ended)
    }

    /// Whether a message is only in tasks that were known to be deleted at `since`.
    fn is_gone(&self, message: &str, since: Moment) -> bool {
        let lives = self.said_in.get(message).map_or(&[][..], Vec::as_slice);
        let gone = |life| self.tasks.get(life).is_some_and(|it| it.is_gone(since));
        !lives.is_empty() && lives.iter().all(gone)
    }

    /// A client asks to delete a task or a context.
    pub(crate) fn unwanted(&mut self, id: &str) {
        self.unwanted.insert(id.to_owned());
    }

    /// The tasks that have had this id until now.
    pub(crate) fn lives_of(&self, id: &TaskId) -> Vec<Life> {
        let lives = self.tasks.keys().filter(|life| life.task == *id);
        lives.cloned().collect()
    }

    /// A client received the confirmation that the task is deleted. `lives` had its id when the
    /// call began: a later one may be of another deletion, which nobody has confirmed.
    pub(crate) fn deleted(&mut self, id: &TaskId, lives: &[Life]) {
        self.note(|| format!("deleted {id}"));
        let now = self.passes();
        for (life, seen) in &mut self.tasks {
            if lives.contains(life) && seen.ended {
                seen.deleted.get_or_insert(now);
            }
        }
    }

    /// A client received the confirmation that the context is deleted. A task that runs at
    /// that time is deleted later.
    pub(crate) fn cleared(&mut self, context: &str) {
        self.note(|| format!("cleared {context}"));
        let now = self.passes();
        let (begun, lagged) = (self.begun, self.lagged);
        let mut left = Vec::new();
        for (life, seen) in &mut self.tasks {
            if seen.record.context_id.to_string() != context || seen.began() > begun {
                continue;
            }
            if seen.ended {
                seen.deleted.get_or_insert(now);
                seen.cleared.get_or_insert(now);
            } else if seen.changed() < begun && lagged <= begun && seen.record.state().is_at_rest()
            {
                left.push(life.clone());
            }
        }
        for life in left {
            self.broken(format!(
                "G19: context {context} is deleted, and its task {life} is not"
            ));
        }
    }

    /// A call was refused. An internal error is never a valid response.
    pub(crate) fn refused(&mut self, refusal: &A2aError) {
        self.note(|| format!("refused {refusal:?}"));
        if matches!(refusal, A2aError::Internal | A2aError::InvalidAgentResponse) {
            self.broken("G11: a client got an internal error".to_owned());
        }
    }

    pub(crate) fn seq_of(&self, life: &Life, id: EventId) -> Option<u64> {
        let seen = self.tasks.get(life)?;
        let event = seen.log.iter().find(|event| event.id == id);
        event.map(|event| event.seq)
    }

    /// The state as of an event.
    pub(crate) fn state_at(&self, life: &Life, seq: u64) -> Option<TaskState> {
        let log = &self.tasks.get(life)?.log;
        let seen = log.iter().rev().filter(|event| event.seq <= seq);
        let mut states = seen.filter_map(|event| match &event.event {
            Event::Status(update) => Some(update.status.state),
            Event::Artifact(_) => None,
        });
        states.next()
    }

    pub(crate) fn last_seq(&self, life: &Life) -> u64 {
        let last = self.tasks.get(life).and_then(|seen| seen.log.last());
        last.map_or(0, |event| event.seq)
    }
}
