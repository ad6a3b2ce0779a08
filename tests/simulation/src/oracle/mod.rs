//! What has to be true: every commit, answer and frame passes here.
//!
//! A task is a [`Life`]: clients delete tasks and use their ids again, and what is
//! of one life is never of another. Every version of each is kept, so that an
//! answer has to be one that was stored while its call was on its way.

mod answer;
mod commit;
mod hooks;
mod skill;
mod talk;

use crate::oracle::hooks::Brought;
use crate::oracle::skill::Run;
use crate::oracle::talk::Talk;
use a2a_lambda::task::{Event, EventId, LoggedEvent, Refusal, TaskId, TaskRecord, TaskState};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

/// A place in the order of what happens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment(u64);

impl Moment {
    /// Behind all that happens.
    pub(crate) const LAST: Self = Self(u64::MAX);
}

/// A task, of those that have one id after the other.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Life {
    pub(crate) task: TaskId,
    incarnation: String,
}

impl Life {
    pub(crate) fn of(record: &TaskRecord) -> Self {
        Self {
            task: record.id().clone(),
            incarnation: record.incarnation().as_str().to_owned(),
        }
    }
}

impl fmt::Display for Life {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let short = self.incarnation.trim_start_matches('0');
        write!(f, "{}/{short}", self.task)
    }
}

/// What became of one task.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) record: Arc<TaskRecord>,
    /// Every version, and when it was stored.
    stored: Vec<(Moment, Arc<TaskRecord>)>,
    /// The versions that each write made.
    writes: BTreeMap<String, Vec<u64>>,
    /// Every event ever stored; a record may forget.
    log: Vec<LoggedEvent>,
    /// The messages of its client, by id.
    users: Vec<String>,
    turn: u32,
    /// Whether a worker was ever asked for in this turn.
    pub(crate) dispatched: bool,
    pub(crate) acknowledged: bool,
    /// Whether its life has ended by a deletion.
    pub(crate) ended: bool,
    /// When somebody was told that it is deleted.
    pub(crate) deleted: Option<Moment>,
    /// When somebody was told that its conversation is deleted.
    cleared: Option<Moment>,
}

impl Seen {
    /// When it was made.
    fn began(&self) -> Moment {
        self.stored.first().map_or(Moment(0), |(at, _)| *at)
    }

    /// When it was written last.
    fn changed(&self) -> Moment {
        self.stored.last().map_or(Moment(0), |(at, _)| *at)
    }

    fn is_gone(&self, since: Moment) -> bool {
        self.deleted.is_some_and(|at| at < since)
    }
}

/// A message somebody sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Said {
    /// No answer was heard.
    Unheard,
    /// It was taken.
    Taken,
    /// It was refused.
    Refused,
}

/// What a send was answered with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// A task.
    Task(Life),
    /// A reply, by its id.
    Reply(String),
}

/// Where a reader stands.
#[derive(Debug, Clone)]
pub(crate) struct Position {
    pub(crate) life: Life,
    pub(crate) last: Option<EventId>,
    pub(crate) seq: u64,
    pub(crate) ended: bool,
}

/// The memory of a history.
#[derive(Debug, Default)]
pub(crate) struct Oracle {
    pub(crate) violations: Vec<String>,
    /// Whether nothing can be said of what follows.
    pub(crate) abandoned: bool,
    moment: u64,
    /// When the call began whose process is polled.
    pub(crate) begun: Moment,
    pub(crate) tasks: BTreeMap<Life, Seen>,
    /// The last life of each id.
    current: BTreeMap<TaskId, Life>,
    /// The lives that hold a message of a client.
    said_in: BTreeMap<String, Vec<Life>>,
    /// The task that each call has deleted, by when the call began.
    deletes: BTreeMap<(Moment, TaskId), Life>,
    /// Ids of tasks and conversations that somebody wants deleted.
    unwanted: BTreeSet<String>,
    threads: BTreeMap<String, Talk>,
    runs: BTreeMap<u64, Run>,
    effects: u64,
    results: BTreeMap<(String, u32), u64>,
    starts: BTreeMap<String, u32>,
    pub(crate) said: BTreeMap<String, Said>,
    /// What a keyed message was answered with.
    answers: BTreeMap<String, Answer>,
    pub(crate) positions: Vec<Position>,
    /// What each webhook was told.
    brought: BTreeMap<String, Brought>,
    pub(crate) trace: Option<Vec<String>>,
    /// Whether processes of two releases run.
    pub(crate) mixed: bool,
    /// Until when the list index lagged behind.
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

    /// What happens now has a place behind all that was.
    pub(crate) const fn passes(&mut self) -> Moment {
        self.moment += 1;
        Moment(self.moment)
    }

    /// The tasks whose life goes on.
    pub(crate) fn living(&self) -> impl Iterator<Item = (&Life, &Seen)> {
        self.tasks.iter().filter(|(_, seen)| !seen.ended)
    }

    /// Whether the life of a task goes on.
    pub(crate) fn lives(&self, life: &Life) -> bool {
        self.tasks.get(life).is_some_and(|seen| !seen.ended)
    }

    /// Whether a message is only in tasks that were known to be deleted at `since`.
    fn is_gone(&self, message: &str, since: Moment) -> bool {
        let lives = self.said_in.get(message).map_or(&[][..], Vec::as_slice);
        let gone = |life| self.tasks.get(life).is_some_and(|it| it.is_gone(since));
        !lives.is_empty() && lives.iter().all(gone)
    }

    /// Somebody wants a task or a conversation deleted.
    pub(crate) fn unwanted(&mut self, id: &str) {
        self.unwanted.insert(id.to_owned());
    }

    /// Somebody was told that the task is deleted.
    pub(crate) fn deleted(&mut self, id: &TaskId) {
        self.note(|| format!("deleted {id}"));
        let now = self.passes();
        for (life, seen) in &mut self.tasks {
            if life.task == *id && seen.ended {
                seen.deleted.get_or_insert(now);
            }
        }
    }

    /// Somebody was told that the conversation is deleted. What is worked on at that
    /// time goes later.
    pub(crate) fn cleared(&mut self, context: &str) {
        self.note(|| format!("cleared {context}"));
        let now = self.passes();
        let (begun, lagged) = (self.begun, self.lagged);
        let mut left = Vec::new();
        for (life, seen) in &mut self.tasks {
            if seen.record.context_id().to_string() != context || seen.began() > begun {
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
                "G19: conversation {context} is deleted, and its task {life} is not"
            ));
        }
    }

    /// A call was refused. Our own mistakes are never the answer.
    pub(crate) fn refused(&mut self, refusal: &Refusal) {
        self.note(|| format!("refused {refusal:?}"));
        if matches!(refusal, Refusal::Internal | Refusal::InvalidAgentResponse) {
            self.broken("G11: an internal error was answered".to_owned());
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
