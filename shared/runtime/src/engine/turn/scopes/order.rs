//! The order in which a turn gets its results.
//!
//! The results of steps, waits and saved values are numbered in the order in which they came to
//! be. In each run the skill gets them one at a time and in this order: first all that earlier
//! runs have stored, then those of this run. So branches that run at the same time meet in every
//! run as they met in the first one.

use crate::task::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::task::{Context, Poll, Waker};

/// The results that the skill has not got.
#[derive(Debug)]
pub(super) struct ResultOrder {
    /// Those that earlier runs have stored, by number.
    earlier: BTreeMap<u64, OrderedResult>,
    /// Those of this run, by number.
    fresh: BTreeMap<u64, OrderedResult>,
    /// Those that may be given: the skill asks for them, or they are stored.
    ready: BTreeSet<u64>,
    /// The highest number so far.
    last_number: u64,
    /// When the last result that was given came to be.
    given_at: Timestamp,
    wakers: Vec<Waker>,
}

#[derive(Debug)]
struct OrderedResult {
    path: String,
    at: Timestamp,
}

impl ResultOrder {
    /// The order of a turn that began at `began_at`, with the results of earlier runs: their
    /// numbers, paths and times.
    pub(super) fn new(
        results: impl Iterator<Item = (u64, String, Timestamp)>,
        began_at: Timestamp,
    ) -> Self {
        let earlier = results.map(|(number, path, at)| (number, OrderedResult { path, at }));
        let earlier: BTreeMap<_, _> = earlier.collect();
        Self {
            last_number: earlier.keys().next_back().copied().unwrap_or(0),
            earlier,
            fresh: BTreeMap::new(),
            ready: BTreeSet::new(),
            given_at: began_at,
            wakers: Vec::new(),
        }
    }

    /// The number of a result of this run that does not wait for others.
    pub(super) fn next_number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    /// Numbers a result of this run that came to be at `at`.
    pub(super) fn number(&mut self, path: &str, at: Timestamp) -> u64 {
        self.next_number();
        let path = path.to_owned();
        self.fresh
            .insert(self.last_number, OrderedResult { path, at });
        self.last_number
    }

    /// A result may be given.
    pub(super) fn make_ready(&mut self, number: u64) {
        self.ready.insert(number);
    }

    /// Gives the next result; `false` if none may be given now.
    pub(super) fn give(&mut self) -> bool {
        let next = self.earlier.first_entry();
        let Some(next) = next.or_else(|| self.fresh.first_entry()) else {
            return false;
        };
        if !self.ready.remove(next.key()) {
            return false;
        }
        let at = next.remove().at;
        self.pass(at);
        self.wake();
        true
    }

    /// The path of the next result of an earlier run, if the skill has not asked for it.
    pub(super) fn next_stored(&self) -> Option<&str> {
        let next = self.earlier.first_key_value();
        let next = next.filter(|(number, _)| !self.ready.contains(number));
        next.map(|(_, result)| result.path.as_str())
    }

    /// The skill got something that came to be at `at`.
    pub(super) fn pass(&mut self, at: Timestamp) {
        self.given_at = self.given_at.max(at);
    }

    /// When the last result that the skill got came to be.
    pub(super) const fn given_at(&self) -> Timestamp {
        self.given_at
    }

    /// Removes the results of these paths: the others no longer wait for them.
    pub(super) fn remove(&mut self, is_removed: impl Fn(&str) -> bool) {
        self.earlier.retain(|_, result| !is_removed(&result.path));
        self.fresh.retain(|_, result| !is_removed(&result.path));
        self.wake();
    }

    /// Removes the results of these paths, except that of `last`, which may be given now.
    pub(super) fn pass_until(&mut self, last: Option<u64>, is_passed: impl Fn(&str) -> bool) {
        let is_left = |number: u64, path: &str| Some(number) == last || !is_passed(path);
        self.earlier
            .retain(|number, result| is_left(*number, &result.path));
        self.ready.extend(last);
        self.wake();
    }

    /// Waits until the result was given, or removed.
    pub(super) fn poll_given(&mut self, number: u64, task: &Context<'_>) -> Poll<()> {
        let is_there = self.earlier.contains_key(&number) || self.fresh.contains_key(&number);
        self.poll_unless(is_there, task)
    }

    /// Waits until all stored results were given.
    pub(super) fn poll_stored(&mut self, task: &Context<'_>) -> Poll<()> {
        self.poll_unless(self.has_stored(), task)
    }

    /// Whether a result of an earlier run was not given.
    pub(super) fn has_stored(&self) -> bool {
        !self.earlier.is_empty()
    }

    fn poll_unless(&mut self, waits: bool, task: &Context<'_>) -> Poll<()> {
        if !waits {
            return Poll::Ready(());
        }
        if !self
            .wakers
            .iter()
            .any(|waker| waker.will_wake(task.waker()))
        {
            self.wakers.push(task.waker().clone());
        }
        Poll::Pending
    }

    fn wake(&mut self) {
        self.wakers.drain(..).for_each(Waker::wake);
    }
}
