//! Counts what a program asks of DynamoDB.
//!
//! The counts are exact and the same on every machine. Times are not measured behind the meter,
//! because its proxy adds to them.

use crate::figures::Figures;
use a2a_lambda::store::aws::EmulatorKeys;
use a2a_lambda_tests::line::{Answer, Call, Carry};
use serde_json::Value;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What was asked of DynamoDB.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counts {
    pub(crate) requests: f64,
    /// Round trips one after the other: a request that starts while no other is under way.
    pub(crate) waves: f64,
    pub(crate) write_units: f64,
    pub(crate) read_units: f64,
    /// Bytes of the bodies of requests.
    pub(crate) sent: f64,
}

impl Counts {
    /// The median of each count.
    pub(crate) fn median(calls: &[Self]) -> Self {
        let of = |count: fn(&Self) -> f64| {
            let mut figures = Figures::default();
            calls.iter().for_each(|call| figures.add(count(call)));
            figures.median()
        };
        Self {
            requests: of(|call| call.requests),
            waves: of(|call| call.waves),
            write_units: of(|call| call.write_units),
            read_units: of(|call| call.read_units),
            sent: of(|call| call.sent),
        }
    }
}

/// A meter between a program and DynamoDB.
#[derive(Debug)]
pub(crate) struct Meter {
    /// The credentials that the program signs with.
    keys: EmulatorKeys,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    counts: Counts,
    under_way: usize,
}

impl Meter {
    pub(crate) fn new(keys: EmulatorKeys) -> Self {
        Self {
            keys,
            state: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The counts since the last call of this function.
    pub(crate) fn take(&self) -> Counts {
        std::mem::take(&mut self.state().counts)
    }

    fn begin(&self, bytes: usize) {
        let mut state = self.state();
        state.counts.requests += 1.0;
        state.counts.sent += bytes as f64;
        if state.under_way == 0 {
            state.counts.waves += 1.0;
        }
        state.under_way += 1;
    }

    fn end(&self, reads: bool, units: f64) {
        let mut state = self.state();
        state.under_way -= 1;
        if reads {
            state.counts.read_units += units;
        } else {
            state.counts.write_units += units;
        }
    }
}

impl Carry for Meter {
    async fn carry(&self, mut call: Call) -> io::Result<Answer> {
        self.begin(call.body.len());
        let reads = call.target().is_some_and(reads);
        let asked = ask(&mut call, &self.keys);
        let answer = match asked {
            Ok(()) => call.send().await,
            Err(error) => Err(error),
        };
        let body = answer.as_ref().ok().map(|(_, body)| body);
        self.end(reads, body.map_or(0.0, |body| units(body)));
        answer
    }
}

fn reads(target: &str) -> bool {
    let operation = target.rsplit('.').next().unwrap_or_default();
    [
        "GetItem",
        "BatchGetItem",
        "TransactGetItems",
        "Query",
        "Scan",
    ]
    .contains(&operation)
}

/// Asks for the capacity of a call, if the program does not.
fn ask(call: &mut Call, keys: &EmulatorKeys) -> io::Result<()> {
    const MEMBER: &str = "ReturnConsumedCapacity";
    let mut body: Value = serde_json::from_slice(&call.body)?;
    match body.as_object_mut() {
        Some(members) if !members.contains_key(MEMBER) => {
            members.insert(MEMBER.to_owned(), Value::from("TOTAL"));
        }
        _ => return Ok(()),
    }
    call.says(&body, keys)
}

/// The units in a response: one report, or one for each table.
fn units(body: &[u8]) -> f64 {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    let reported = &body["ConsumedCapacity"];
    let each = reported
        .as_array()
        .map_or(std::slice::from_ref(reported), Vec::as_slice);
    each.iter()
        .filter_map(|it| it["CapacityUnits"].as_f64())
        .sum()
}
