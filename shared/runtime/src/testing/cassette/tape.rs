//! The recordings of a run: those that are made, and those that are replayed.

use super::entry::{CallKind, RecordedAnswer, RecordedCall, asked, key};
use super::nearest;
use crate::skill::model::ModelRequest;
use std::collections::{BTreeMap, HashMap};

/// The calls that a run has recorded.
#[derive(Default)]
pub(super) struct RecordTape {
    begun: u64,
    calls: BTreeMap<u64, RecordedCall>,
}

impl RecordTape {
    /// The number of a new call. The file has the order of the requests, so that calls at the
    /// same time do not change places from run to run.
    pub(super) const fn begin(&mut self) -> u64 {
        self.begun += 1;
        self.begun
    }

    pub(super) fn store(&mut self, number: u64, call: RecordedCall) {
        self.calls.insert(number, call);
    }

    pub(super) fn calls(&self) -> impl Iterator<Item = &RecordedCall> {
        self.calls.values()
    }
}

/// The calls of a file, and which of them were replayed.
pub(super) struct ReplayTape {
    calls: Vec<RecordedCall>,
    answers: HashMap<[u8; 32], AnswerQueue>,
}

/// The answers to equal requests.
struct AnswerQueue {
    /// The last one, which is given again and again.
    last: RecordedAnswer,
    /// Those before it, the next one at the end.
    before: Vec<RecordedAnswer>,
}

impl ReplayTape {
    pub(super) fn new(calls: Vec<RecordedCall>) -> Self {
        let mut answers = HashMap::new();
        for call in calls.iter().rev() {
            let answer = call.answer.clone();
            answers
                .entry(key(asked(call.kind(), &call.request)))
                .and_modify(|queue: &mut AnswerQueue| queue.before.push(answer.clone()))
                .or_insert_with(|| AnswerQueue {
                    last: answer,
                    before: Vec::new(),
                });
        }
        Self { calls, answers }
    }

    /// The next answer to a request, or how the request differs from the nearest recorded one.
    pub(super) fn find(
        &mut self,
        kind: CallKind,
        request: &ModelRequest,
    ) -> Result<RecordedAnswer, String> {
        let asked = asked(kind, request);
        match self.answers.get_mut(&key(asked.clone())) {
            Some(queue) => Ok(queue.before.pop().unwrap_or_else(|| queue.last.clone())),
            None => Err(nearest::describe(&self.calls, &asked)),
        }
    }
}
