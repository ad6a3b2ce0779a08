//! What the turns of a task have used.

use super::{Metadata, Timestamp, is_default, metadata_keys};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// What the turns of a task have used. A task in a terminal state keeps none of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Used {
    /// How often a turn was handed over.
    #[serde(default)]
    pub hand_overs: u32,
    /// When the current turn last stored progress: its opening, a step or a saved value.
    /// `None` in the first turn before its first progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress_at: Option<Timestamp>,
    /// How many runs of the current turn have died.
    #[serde(default)]
    pub deaths: u32,
    /// What the calls of models have used.
    #[serde(default, skip_serializing_if = "is_default")]
    pub models: TokenUse,
    /// Whether a result is partial, because there was no room for more calls.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_partial: bool,
}

impl Used {
    /// The metadata of an ended task about its calls of models.
    pub(in crate::task) fn metadata(&self) -> Metadata {
        let usage = (!is_default(&self.models)).then(|| json!(self.models));
        let partial = self.is_partial.then_some(Value::Bool(true));
        let members = [
            (metadata_keys::USAGE, usage),
            (metadata_keys::PARTIAL, partial),
        ];
        let members = members.into_iter();
        members
            .filter_map(|(key, value)| Some((key.to_owned(), value?)))
            .collect()
    }
}

/// What calls of models have used. One meaning for all providers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TokenUse {
    /// The calls.
    pub calls: u64,
    /// The tokens of the requests, with those that a service had cached.
    #[serde(rename = "in")]
    pub input: u64,
    /// The tokens of the answers.
    #[serde(rename = "out")]
    pub output: u64,
    /// The tokens of the requests that a service had cached.
    pub cached: u64,
}

impl TokenUse {
    /// The tokens of requests and answers.
    #[must_use]
    pub const fn tokens(&self) -> u64 {
        self.input.saturating_add(self.output)
    }

    /// Adds what other calls have used.
    pub const fn add(&mut self, other: Self) {
        self.calls = self.calls.saturating_add(other.calls);
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.cached = self.cached.saturating_add(other.cached);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::{
        Change, ContextId, Generation, Message, Metadata, OutputCounts, Owner, SavedSlot, Subject,
        TaskId, TaskRecord, TenantId, WriteId,
    };
    use a2a_lambda_rows::each_row;

    const fn at(second: i64) -> Timestamp {
        Timestamp::from_millis(second * 1000)
    }

    /// A task made at second 0.
    fn task() -> TaskRecord {
        TaskRecord::create(
            TaskId::made_of(1),
            Owner {
                tenant: TenantId::parse("acme").unwrap(),
                subject: Subject::parse("ann").unwrap(),
            },
            ContextId::made_of(1),
            WriteId::made_of(1),
            Generation::V10,
            Metadata::new(),
            at(0),
        )
    }

    fn after(record: &TaskRecord, second: i64, change: Change) -> TaskRecord {
        let write = WriteId::made_of(u128::from(record.version + 2));
        record
            .next([change], write, at(second), at(10_000))
            .unwrap()
    }

    fn claim(until: i64) -> Change {
        let lease_until = at(until);
        Change::Claim { lease_until }
    }

    fn release(until: i64) -> Change {
        let not_before = at(until);
        Change::Release { not_before }
    }

    fn question() -> Change {
        Change::AskInput {
            message: Message::from_agent("m-1", Vec::new()),
            slot: SavedSlot {
                version: 1,
                value: serde_json::Value::Null,
            },
        }
    }

    fn dispatched() -> TaskRecord {
        after(&task(), 0, Change::Dispatch)
    }

    fn step() -> Change {
        Change::Step {
            key: "one#1".to_owned(),
            result: Box::default(),
            outputs: OutputCounts::new(),
            reads: Vec::new(),
        }
    }

    #[test]
    fn progress_is_an_opening_a_step_or_a_saved_value() {
        let save = Change::Save {
            key: "k".to_owned(),
            value: 1.into(),
            outputs: OutputCounts::new(),
            reads: Vec::new(),
            save_place: Box::default(),
            order: None,
        };
        let (message, secret) = (Message::from_user("m-2", Vec::new()), None);
        let queue = Change::Queue { message, secret };
        let mut record = dispatched();
        let rows = [
            (10, claim(70), 0),
            (20, step(), 20),
            (30, Change::HandOver { progress: true }, 20),
            (40, claim(100), 20),
            (50, save, 50),
            (60, question(), 50),
            (900, queue, 900),
            (950, claim(1010), 900),
            (960, release(999), 900),
        ];
        each_row(rows, |(second, change, progress)| {
            record = after(&record, second, change);
            assert_eq!(record.progress_at(), at(progress), "second {second}");
        });
        assert_eq!(record.used.hand_overs, 1);
    }

    /// How often the turn was claimed, and whether it has an attempt left of two.
    fn attempts(record: &TaskRecord) -> (u32, bool) {
        (record.attempt, !record.is_spent(2))
    }

    #[test]
    fn a_claim_counts_only_when_it_takes_a_lease_over() {
        let record = after(&dispatched(), 1, claim(61));
        assert_eq!(attempts(&record), (1, true));
        let taken = after(&record, 100, claim(160));
        assert_eq!(attempts(&taken), (2, false), "the last attempt");
        let swept = after(&record, 100, Change::Dispatch);
        assert_eq!(attempts(&swept), (2, true), "the last attempt may begin");
        let claimed = after(&swept, 101, claim(161));
        assert_eq!(attempts(&claimed), (2, false));
    }

    #[test]
    fn a_release_counts_no_attempt_and_says_when_to_begin() {
        let mut record = after(&dispatched(), 1, claim(61));
        each_row([2, 20, 40, 80], |second| {
            record = after(&record, second, release(second + 10));
            assert_eq!(attempts(&record), (1, true));
            assert_eq!(record.not_before, Some(at(second + 10)));
            assert_eq!(record.dispatch(), Some(record.version));
            record = after(&record, second + 11, claim(1000));
            assert_eq!((attempts(&record), record.not_before), ((1, true), None));
        });
    }

    #[test]
    fn a_hand_over_counts_unless_it_made_progress() {
        let record = after(&dispatched(), 1, claim(61));
        let without = after(&record, 2, Change::HandOver { progress: false });
        assert_eq!(attempts(&without), (2, true));
        let again = after(
            &after(&without, 3, claim(63)),
            4,
            Change::HandOver { progress: false },
        );
        assert_eq!(attempts(&again), (3, false));
        let with = after(&without, 3, claim(63));
        let with = after(&with, 4, Change::HandOver { progress: true });
        assert_eq!(attempts(&after(&with, 5, claim(65))), (1, true));
    }

    #[test]
    fn the_last_dispatch_is_known_after_the_claim() {
        let record = dispatched();
        let claimed = after(&record, 1, claim(61));
        assert_eq!((claimed.dispatch(), claimed.last_dispatch), (None, 1));
        let released = after(&claimed, 2, release(12));
        assert_eq!((released.dispatch(), released.last_dispatch), (Some(3), 3));
    }

    #[test]
    fn an_ended_task_keeps_nothing_of_it() {
        let record = after(&dispatched(), 1, claim(61));
        let record = after(&record, 2, step());
        let record = after(&record, 3, Change::Complete { message: None });
        assert_eq!(record.used, Used::default());
        assert_eq!((record.last_dispatch, record.not_before), (0, None));
    }
}
