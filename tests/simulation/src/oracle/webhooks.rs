//! Checks webhooks: the events they receive, their order, and that none is missing.

use super::{Life, Oracle};
use a2a_lambda::task::{LoggedEvent, PushRecord, TaskId};
use std::collections::BTreeSet;

/// The events that one webhook received.
#[derive(Debug)]
pub(super) struct Deliveries {
    life: Life,
    events: BTreeSet<u64>,
}

impl Oracle {
    /// A webhook has received an event.
    pub(crate) fn brought(&mut self, hook: &str, task: &TaskId, event: &LoggedEvent) {
        let seq = event.seq;
        self.note(|| format!("{hook} gets event {seq} of {task}"));
        let mut lives = self.tasks.keys().filter(|life| life.task == *task);
        let life = lives.find(|life| self.is_stored(life, event)).cloned();
        let Some(life) = life else {
            self.broken(format!(
                "G8: {hook} gets an event that task {task} has not stored"
            ));
            return;
        };
        let seen = self.tasks.get(&life);
        if seen.is_some_and(|seen| seen.is_gone(self.begun)) {
            self.broken(format!(
                "G19: {hook} gets an event of the deleted task {life}"
            ));
        }
        let reported = self
            .brought
            .entry(hook.to_owned())
            .or_insert_with(|| Deliveries {
                life: life.clone(),
                events: BTreeSet::new(),
            });
        let continues = reported.events.is_empty() || reported.events.contains(&(seq - 1));
        let ordered = continues || reported.events.contains(&seq);
        reported.events.insert(seq);
        if reported.life != life {
            let first = reported.life.clone();
            self.broken(format!(
                "G8: {hook} of task {first} gets an event of {life}"
            ));
        } else if !ordered {
            self.broken(format!(
                "G8: {hook} gets event {seq} before the preceding one"
            ));
        }
    }

    /// Describes what a webhook of a living task has not received, if anything.
    pub(crate) fn missed(&self, life: &Life, push: &PushRecord) -> Option<String> {
        let (last, cursor) = (self.last_seq(life), push.delivery.cursor);
        let hook = push.registration.id.as_str();
        let reported = self.brought.get(hook).map(|it| &it.events);
        let first = reported.and_then(BTreeSet::first).copied();
        let all = first.is_none_or(|first| {
            (first..=last).all(|seq| reported.is_some_and(|reported| reported.contains(&seq)))
        });
        (cursor < last || !all).then(|| {
            format!(
                "G8: {hook} of task {life} is at event {cursor} of {last}, and no queue message is left"
            )
        })
    }
}
