//! What the turns of a task have used.

use super::Timestamp;
use std::time::Duration;

/// What the turns of a task have used, over all its turns. A task in a terminal state
/// keeps none of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Used {
    /// The running time of the attempts that have ended, in whole milliseconds. Time in
    /// the queue and time in which the task waits for its client do not count.
    pub run_time: Duration,
    /// How often a turn was handed over.
    pub hand_overs: u32,
    /// When the attempt began that runs now.
    pub running_since: Option<Timestamp>,
}

impl Used {
    /// An attempt begins.
    pub(super) const fn begin(&mut self, at: Timestamp) {
        self.running_since = Some(at);
    }

    /// The same when the attempt that runs, if there is one, ends at `at`.
    ///
    /// An attempt without a process counts until the end of its lease: nobody knows when
    /// the process died, and until then no other worker could have the turn.
    #[must_use]
    pub fn ended(self, at: Timestamp, lease_until: Option<Timestamp>) -> Self {
        let end = lease_until.map_or(at, |until| until.min(at));
        let last = self.running_since.map(|since| end.since(since));
        Self {
            run_time: self.run_time.saturating_add(last.unwrap_or_default()),
            running_since: None,
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::{
        Change, ContextId, Generation, Message, Metadata, NewTask, Owner, SavedSlot, Subject,
        TaskId, TaskRecord, TenantId, WriteId,
    };

    const fn at(second: i64) -> Timestamp {
        Timestamp::from_millis(second * 1000)
    }

    /// A task made at second 0.
    fn task() -> TaskRecord {
        TaskRecord::create(NewTask {
            id: TaskId::made_of(1),
            owner: Owner {
                tenant: TenantId::parse("acme").unwrap(),
                subject: Subject::parse("ann").unwrap(),
            },
            context_id: ContextId::made_of(1),
            generation: Generation::V10,
            incarnation: WriteId::made_of(1),
            metadata: Metadata::new(),
            created_at: at(0),
        })
    }

    fn after(record: &TaskRecord, second: i64, change: Change) -> TaskRecord {
        let write = WriteId::made_of(u128::from(record.version() + 2));
        record
            .next([change], write, at(second), at(10_000))
            .unwrap()
    }

    /// What a record has used at this second.
    fn used(record: &TaskRecord, second: i64) -> Used {
        record.used().ended(at(second), record.lease_until())
    }

    fn claim(until: i64) -> Change {
        let lease_until = at(until);
        Change::Claim { lease_until }
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

    #[test]
    fn running_time_is_the_sum_over_hand_overs() {
        let start = Change::Start {
            lease_until: at(60),
        };
        // The first write is a second later than the start of the skill.
        let record = after(&task(), 1, start);
        let record = after(&record, 25, Change::HandOver { progress: true });
        assert_eq!(used(&record, 99).run_time, Duration::from_secs(25));
        let record = after(&record, 100, claim(160));
        let record = after(&record, 110, Change::HandOver { progress: true });
        let sum = used(&record, 999);
        assert_eq!((sum.run_time.as_secs(), sum.hand_overs), (35, 2));
    }

    #[test]
    fn a_wait_for_input_or_in_the_queue_is_not_running_time() {
        let record = after(&task(), 0, Change::Dispatch);
        let record = after(&record, 500, claim(560));
        assert_eq!(used(&record, 507).run_time, Duration::from_secs(7));
        let record = after(&record, 510, question());
        let message = Message::from_user("m-2", Vec::new());
        let secret = None;
        let record = after(&record, 900, Change::Queue { message, secret });
        let record = after(&record, 950, claim(1010));
        assert_eq!(used(&record, 955).run_time, Duration::from_secs(15));
    }

    #[test]
    fn a_dead_attempt_counts_until_the_end_of_its_lease() {
        let record = after(&task(), 0, Change::Dispatch);
        let record = after(&record, 100, claim(160));
        assert_eq!(used(&record, 400).run_time, Duration::from_secs(60));
        let next = after(&record, 400, claim(460));
        assert_eq!(used(&next, 401).run_time, Duration::from_secs(61));
        let swept = after(&record, 400, Change::Dispatch);
        assert_eq!(used(&swept, 999).run_time, Duration::from_secs(60));
    }

    #[test]
    fn an_ended_task_keeps_nothing_of_it() {
        let record = after(&task(), 0, Change::Dispatch);
        let record = after(&record, 1, claim(61));
        let record = after(&record, 2, Change::Complete { message: None });
        assert_eq!(used(&record, 9), Used::default());
    }
}
