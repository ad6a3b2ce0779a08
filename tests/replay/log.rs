//! What the skills of a run note beside the engine: effects, output and loaded values.

use a2a_lambda::skill::Thread;
use a2a_lambda::task::{Message, PartContent};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// The effects with one key.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Effect {
    /// How many times it occurred.
    pub(super) runs: u64,
    /// How many times its step confirmed to the skill that it is stored.
    pub(super) stored: u64,
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
    /// The effects of the undisturbed run.
    expected: Option<Arc<Effects>>,
}

#[derive(Debug, Default)]
pub(super) struct Notes {
    pub(super) effects: Effects,
    /// The texts that were said before something was stored, with the times they had been said:
    /// no later run says them again.
    pub(super) sealed: BTreeMap<String, usize>,
    said: Vec<String>,
    times: BTreeMap<String, usize>,
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
    pub(super) fn new(wait: Wait, expected: Option<Arc<Effects>>) -> Self {
        Self {
            notes: Mutex::default(),
            wait,
            expected,
        }
    }

    pub(super) fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap()
    }

    /// Notes an effect. A run after the last stored one of the undisturbed run is one too many.
    pub(super) fn effect(&self, branch: &str, key: &str, value: &str) {
        let mut notes = self.notes();
        let expected = self.expected.as_ref();
        let most = expected.and_then(|expected| expected.by_key.get(key));
        let effect = notes.effects.by_key.entry(key.to_owned()).or_default();
        effect.runs += 1;
        effect.values.insert(value.to_owned());
        let (first, stored) = (effect.runs == 1, effect.stored);
        if most.is_some_and(|most| stored >= most.runs) {
            let text = format!("the effect `{key}` occurs again after it was stored");
            notes.violations.push(text);
        }
        if first {
            let order = notes.effects.order.entry(branch.to_owned()).or_default();
            order.push(key.to_owned());
        }
    }

    /// Notes that a step is stored.
    pub(super) fn stored(&self, key: &str) {
        let mut notes = self.notes();
        if let Some(effect) = notes.effects.by_key.get_mut(key) {
            effect.stored += 1;
        }
    }

    /// Notes that an effect is stored for the time `times`.
    pub(super) fn stored_times(&self, key: &str, times: u64) {
        let mut notes = self.notes();
        if let Some(effect) = notes.effects.by_key.get_mut(key) {
            effect.stored = effect.stored.max(times);
        }
    }

    /// How many texts this run has said.
    pub(super) fn mark(&self) -> usize {
        self.notes().said.len()
    }

    /// Notes that what was said before the mark is stored.
    pub(super) fn seal(&self, mark: usize) {
        let notes = &mut *self.notes();
        for text in notes.said.iter().take(mark) {
            let times = notes.times.get(text).copied().unwrap_or_default();
            notes.sealed.entry(text.clone()).or_insert(times);
        }
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

    /// A place at the end of a step. `is_leaf` tells whether it is stored and has no steps in it.
    pub(super) async fn in_step(&self, key: &str, is_leaf: bool) {
        if let Wait::InSteps(time) = self.wait
            && is_leaf
            && self.notes().waited.insert(key.to_owned())
        {
            tokio::time::sleep(time).await;
        }
        self.place(false).await;
    }
}

impl Notes {
    /// The skill begins to run: what an earlier run said and did not store is open.
    pub(super) fn begin(&mut self) {
        self.begun += 1;
        self.said.clear();
    }
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
