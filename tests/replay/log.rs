//! What the skills of a run note beside the engine: effects, output and loaded values.

use a2a_lambda::skill::Thread;
use a2a_lambda::task::{Message, PartContent};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// The most steps of a run that wait in their work.
const HAND_OVERS_MAX: usize = 50;

/// The effects with one key.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Effect {
    /// How many times it occurred.
    pub(super) runs: u64,
    /// The most times in one run.
    pub(super) tries: u64,
    /// The values it occurred with.
    pub(super) values: BTreeSet<String>,
}

/// The effects of a run.
#[derive(Debug, Default, Clone)]
pub(super) struct Effects {
    pub(super) by_key: BTreeMap<String, Effect>,
    /// The keys of each branch, by their first occurrence.
    pub(super) order: BTreeMap<String, Vec<String>>,
}

/// A wait at one of the places where a program can wait.
#[derive(Debug, Clone, Copy)]
pub(super) enum Wait {
    Never,
    At(u64, Duration),
    /// In each step without steps in it, the first time.
    InSteps(Duration),
}

/// The log of one run of a program.
#[derive(Debug)]
pub(super) struct Log {
    notes: Mutex<Notes>,
    wait: Wait,
    /// What this run has to meet; else it meets what comes.
    chosen: Option<Arc<Facts>>,
}

/// What a skill met: how its steps ended, what it loaded, which branch was first. By place.
pub(super) type Facts = BTreeMap<String, String>;

/// How much a run had done.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Mark {
    said: usize,
    met: usize,
    ended: usize,
}

#[derive(Debug, Default)]
pub(super) struct Notes {
    pub(super) effects: Effects,
    /// The texts that were said before something was stored, with the times they had been said:
    /// no later run says them again.
    pub(super) sealed: BTreeMap<String, usize>,
    said: Vec<String>,
    times: BTreeMap<String, usize>,
    /// What the skill met last at each place.
    pub(super) facts: Facts,
    /// The branches that were dropped at each place.
    pub(super) dropped: BTreeMap<String, Vec<String>>,
    /// What was dropped before its end, in this run.
    abandoned: BTreeSet<String>,
    met: Vec<(String, String)>,
    /// What it met before something was stored: each later run meets the same.
    stored_facts: Facts,
    /// What has ended without waiting until that is stored.
    ended: Vec<String>,
    /// What is stored before the next effect.
    unstored: Option<Mark>,
    /// How often this run has had each effect.
    in_run: BTreeMap<String, u64>,
    /// What is stored: no effect of it or below it occurs again.
    closed: BTreeSet<String>,
    pub(super) session_keys: BTreeSet<String>,
    /// What the next message of the context sees: session values, and the thread.
    pub(super) session: BTreeMap<String, String>,
    pub(super) thread: Vec<String>,
    /// How many places to wait at have passed.
    pub(super) places: u64,
    /// The places before a step.
    pub(super) before_steps: BTreeSet<u64>,
    waited: BTreeSet<String>,
    /// How many times the skill began a turn.
    pub(super) begun: u64,
    pub(super) violations: Vec<String>,
}

impl Log {
    pub(super) fn new(wait: Wait, chosen: Option<Arc<Facts>>) -> Self {
        Self {
            notes: Mutex::default(),
            wait,
            chosen,
        }
    }

    /// What this run has to meet at a place.
    pub(super) fn chosen(&self, place: &str) -> Option<&str> {
        self.chosen.as_ref()?.get(place).map(String::as_str)
    }

    pub(super) fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap()
    }

    /// Notes an effect; returns how often it has occurred. All that ended before is stored.
    pub(super) fn effect(&self, branch: &str, key: &str, value: &str) -> u64 {
        let notes = &mut *self.notes();
        if let Some(mark) = notes.unstored.take() {
            notes.seal(mark);
        }
        let effect = notes.effects.by_key.entry(key.to_owned()).or_default();
        effect.runs += 1;
        effect.values.insert(value.to_owned());
        let runs = effect.runs;
        let in_run = notes.in_run.entry(key.to_owned()).or_default();
        *in_run += 1;
        effect.tries = effect.tries.max(*in_run);
        if let Some(closed) = notes.closed.iter().find(|closed| is_within(key, closed)) {
            let text = format!("the effect `{key}` occurs again: `{closed}` is stored");
            notes.violations.push(text);
        }
        if runs == 1 {
            let order = notes.effects.order.entry(branch.to_owned()).or_default();
            order.push(key.to_owned());
        }
        runs
    }

    /// Notes that a result is stored, with all that was done before the mark.
    pub(super) fn stored(&self, key: &str, mark: Mark) {
        let notes = &mut *self.notes();
        notes.closed.insert(key.to_owned());
        notes.seal(mark);
    }

    /// Notes that something ended which is stored before the next effect, with what was said before
    /// `end`.
    pub(super) fn ended(&self, key: &str, end: Mark) {
        let notes = &mut *self.notes();
        notes.ended.push(key.to_owned());
        let count = notes.unstored.map_or(0, |before| before.said);
        notes.unstored = Some(Mark {
            said: count.max(end.said),
            ..notes.mark()
        });
    }

    /// Notes what the skill met at a place; returns it, or what it has to meet.
    pub(super) fn met(&self, place: &str, value: String) -> String {
        let notes = &mut *self.notes();
        let value = self.chosen(place).map_or(value, str::to_owned);
        notes.meet(place, value.clone());
        notes.facts.insert(place.to_owned(), value.clone());
        value
    }

    /// As [`Log::met`], for what is different in an undisturbed run.
    pub(super) fn met_now(&self, place: &str, value: String) {
        self.notes().meet(place, value);
    }

    /// Notes which branches of a place are dropped. That is stored if something was open in them.
    pub(super) fn dropped(&self, place: &str, branches: Vec<String>) {
        for branch in &branches {
            let notes = self.notes();
            let mut abandoned = notes.abandoned.iter();
            if abandoned.any(|key| is_within(key, branch)) {
                let end = notes.mark();
                drop(notes);
                self.ended(branch, end);
            }
        }
        self.notes().dropped.insert(place.to_owned(), branches);
    }

    /// Notes that something begins which is stored as abandoned if it is dropped.
    pub(super) fn open<'a>(&'a self, key: &'a str) -> Open<'a> {
        Open {
            log: self,
            key: Some(key),
        }
    }

    /// How much this run has done.
    pub(super) fn mark(&self) -> Mark {
        self.notes().mark()
    }

    /// Notes that what was done before the mark is stored.
    pub(super) fn seal(&self, mark: Mark) {
        self.notes().seal(mark);
    }

    /// Notes that a text is about to be said.
    pub(super) fn says(&self, text: &str) {
        *self.notes().times.entry(text.to_owned()).or_default() += 1;
    }

    /// Notes that the engine has a text.
    pub(super) fn said(&self, text: String) {
        self.notes().said.push(text);
    }

    pub(super) fn session_key(&self, key: &str) {
        self.notes().session_keys.insert(key.to_owned());
    }

    /// A place where the program can wait. `before_step` tells whether a step begins after it.
    pub(super) async fn place(&self, before_step: bool) {
        let place = {
            let mut notes = self.notes();
            notes.places += 1;
            let place = notes.places;
            if before_step {
                notes.before_steps.insert(place);
            }
            place
        };
        if let Wait::At(at, time) = self.wait
            && at == place
        {
            tokio::time::sleep(time).await;
        }
    }

    /// Whether a step waits: the first time, and not in more steps than a test has workers.
    fn waits_in(&self, key: &str) -> bool {
        let waited = &mut self.notes().waited;
        waited.len() < HAND_OVERS_MAX && waited.insert(key.to_owned())
    }

    /// A place at the end of a step. `is_leaf` tells whether it is stored and has no steps in it.
    pub(super) async fn in_step(&self, key: &str, is_leaf: bool) {
        if let Wait::InSteps(time) = self.wait
            && is_leaf
            && self.waits_in(key)
        {
            tokio::time::sleep(time).await;
        }
        self.place(false).await;
    }
}

/// Something that is open.
pub(super) struct Open<'a> {
    log: &'a Log,
    key: Option<&'a str>,
}

impl Open<'_> {
    pub(super) fn close(mut self) {
        self.key = None;
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            self.log.notes().abandoned.insert(key.to_owned());
        }
    }
}

impl Notes {
    /// The skill begins to run: what an earlier run said and did not store is open.
    pub(super) fn begin(&mut self) {
        self.begun += 1;
        self.said.clear();
        self.met.clear();
        self.ended.clear();
        self.abandoned.clear();
        self.unstored = None;
        self.in_run.clear();
    }

    fn meet(&mut self, place: &str, value: String) {
        let before = self.stored_facts.get(place);
        if let Some(before) = before.filter(|before| **before != value) {
            let text = format!("`{place}` met {before}, which is stored, and then {value}");
            self.violations.push(text);
        }
        self.met.push((place.to_owned(), value));
    }

    fn mark(&self) -> Mark {
        Mark {
            said: self.said.len(),
            met: self.met.len(),
            ended: self.ended.len(),
        }
    }

    fn seal(&mut self, mark: Mark) {
        for text in self.said.iter().take(mark.said) {
            let times = self.times.get(text).copied().unwrap_or_default();
            self.sealed.entry(text.clone()).or_insert(times);
        }
        let met = self.met.iter().take(mark.met).cloned();
        self.stored_facts.extend(met);
        self.closed
            .extend(self.ended.iter().take(mark.ended).cloned());
    }
}

/// Whether a place is another one, or in it.
pub(super) fn is_within(place: &str, outer: &str) -> bool {
    let rest = place.strip_prefix(outer);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The text of a message: its first text part.
pub(super) fn text_of(message: &Message) -> String {
    let text = message.parts.iter().find_map(|part| match &part.content {
        PartContent::Text(text) => Some(text.clone()),
        _ => None,
    });
    text.unwrap_or_default()
}

pub(super) fn texts_of(thread: &Thread) -> Vec<String> {
    thread.iter().map(text_of).collect()
}
