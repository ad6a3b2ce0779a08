//! A proxy between the program and its store. It counts calls, and injects the planned
//! fault at one of them.
//!
//! Before it kills the program, it stops all traffic in both directions. So the program
//! always dies between two store calls, independent of the machine's speed.

use crate::plan::{Deed, Plan, Point};
use a2a_lambda::store::aws::EmulatorKeys;
use a2a_lambda_tests::line::{Answer, Call, Carry};
use bytes::Bytes;
use http::Response;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io;
use std::sync::Mutex;
use tokio::sync::watch;

/// The shared state of a case's proxies.
#[derive(Debug)]
pub(crate) struct Watch {
    /// The credentials that the program signs with.
    keys: EmulatorKeys,
    state: Mutex<State>,
    /// Whether the planned fault has occurred.
    struck: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct State {
    counting: bool,
    seen: BTreeMap<String, usize>,
    points: Vec<Point>,
    plan: Option<Plan>,
    /// Whether all traffic is stopped.
    cut_off: bool,
    /// The writes that reached the store.
    writes: Vec<Call>,
    /// The first response to each read.
    answers: BTreeMap<String, Answer>,
}

impl Watch {
    pub(crate) fn new(keys: EmulatorKeys) -> Self {
        Self {
            keys,
            state: Mutex::default(),
            struck: watch::Sender::default(),
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Starts to count, and to apply `plan`.
    pub(crate) fn count(&self, plan: Option<Plan>) {
        let mut state = self.state();
        state.counting = true;
        state.plan = plan;
    }

    /// Stops counting and lets all calls pass; returns the calls so far.
    pub(crate) fn stop(&self) -> Vec<Point> {
        let mut state = self.state();
        state.counting = false;
        state.cut_off = false;
        std::mem::take(&mut state.points)
    }

    /// Whether the planned fault has occurred.
    pub(crate) fn has_struck(&self) -> bool {
        *self.struck.borrow()
    }

    /// Waits until the planned fault has occurred.
    pub(crate) async fn strikes(&self) {
        let mut struck = self.struck.subscribe();
        // The sender lives as long as `self`.
        let _ = struck.wait_for(|struck| *struck).await;
    }

    /// Sends all writes so far to the store again, the latest first; with `disarmed`
    /// without their conditions. Returns the number of writes.
    pub(crate) async fn redeliver(&self, disarmed: bool) -> usize {
        let writes = std::mem::take(&mut self.state().writes);
        for call in writes.iter().rev() {
            let call = if disarmed {
                disarm(call, &self.keys)
            } else {
                call.clone()
            };
            heard(&call.send().await.unwrap());
        }
        writes.len()
    }

    /// Counts a call; returns its fault, if it has one.
    fn next(&self, operation: &str) -> Option<Deed> {
        let mut state = self.state();
        if !state.counting {
            return None;
        }
        let number = state.seen.entry(operation.to_owned()).or_default();
        *number += 1;
        let point = Point {
            operation: operation.to_owned(),
            number: *number,
        };
        let deed = state.plan.as_ref().filter(|plan| plan.point == point);
        let deed = deed.map(|plan| plan.deed);
        state.points.push(point);
        if deed.is_some_and(Deed::kills) {
            state.cut_off = true;
        } else if deed.is_some() {
            self.struck.send_replace(true);
        }
        deed
    }

    /// Reports that the program must die now, and never returns.
    async fn dies(&self) -> io::Result<Answer> {
        self.struck.send_replace(true);
        std::future::pending().await
    }

    /// Sends a call to the store and returns the response.
    async fn pass(&self, call: &Call) -> io::Result<Answer> {
        let answer = call.send().await?;
        heard(&answer);
        let mut state = self.state();
        if is_write(call) {
            state.writes.push(call.clone());
        } else if !call.body.is_empty() {
            let first = state.answers.entry(canonical(&call.body));
            first.or_insert_with(|| answer.clone());
        }
        drop(state);
        Ok(answer)
    }
}

impl Carry for Watch {
    async fn carry(&self, call: Call) -> io::Result<Answer> {
        if self.state().cut_off {
            return std::future::pending().await;
        }
        let operation = operation(&call);
        // When the brake is read depends on time. It stands between the calls of a scenario.
        let is_brake = call.body.windows(7).any(|window| window == b"B#brake");
        let operation = operation.filter(|_| !is_brake);
        let deed = operation.as_deref().and_then(|name| self.next(name));
        match deed {
            None => {}
            Some(Deed::KillBefore) => return self.dies().await,
            Some(Deed::KillAfter) => {
                self.pass(&call).await?;
                return self.dies().await;
            }
            Some(Deed::Forget) => return Ok(forgotten(operation.as_deref())),
            Some(Deed::Unconditional) => return self.pass(&disarm(&call, &self.keys)).await,
            Some(Deed::Torn) => return self.pass(&torn(&call, &self.keys)).await,
            Some(Deed::Stale) => {
                let first = self.state().answers.get(&canonical(&call.body)).cloned();
                return first.ok_or_else(|| io::Error::other("no earlier response to this read"));
            }
        }
        self.pass(&call).await
    }
}

/// A body with its members in order. The SDK writes the names of an expression from a hash
/// map, so two bodies of the same read can differ in their order.
fn canonical(body: &Bytes) -> String {
    serde_json::from_slice::<Value>(body).map_or_else(
        |_| String::from_utf8_lossy(body).into_owned(),
        |body| body.to_string(),
    )
}

/// Fails if the store rejected the signature: such a call tests nothing.
fn heard((head, body): &Answer) {
    let refused = body.windows(9).any(|text| text == b"Signature");
    assert!(!refused, "{}: {body:?}", head.status);
}

/// The operation of a call. Calls of idle loops do not count: reads of the stream and of
/// the indexes.
fn operation(call: &Call) -> Option<String> {
    let Some(target) = call.target() else {
        let object = call.head.uri.path().trim_matches('/').contains('/');
        return object.then(|| format!("{} object", call.head.method));
    };
    let idle = target.contains("Streams") || call.body.windows(9).any(|text| text == b"IndexName");
    let (_, operation) = target.rsplit_once('.')?;
    (!idle).then(|| operation.to_owned())
}

fn is_write(call: &Call) -> bool {
    match call.target() {
        Some(target) => ["PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems"]
            .iter()
            .any(|write| target.ends_with(write)),
        None => call.head.method == "PUT" || call.head.method == "POST",
    }
}

/// The same call with a condition that always holds.
fn disarm(call: &Call, keys: &EmulatorKeys) -> Call {
    let mut call = call.clone();
    if let Ok(mut body) = serde_json::from_slice::<Value>(&call.body) {
        if let Some(members) = body.as_object_mut() {
            // With the same token DynamoDB would treat it as a repeated request and not run it.
            members.remove("ClientRequestToken");
        }
        always(&mut body);
        call.says(&body, keys).unwrap();
    }
    call
}

fn always(value: &mut Value) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                match (name.as_str(), member) {
                    // The old condition stays, since DynamoDB rejects unused names and values.
                    ("ConditionExpression", Value::String(text)) => {
                        text.push_str(" OR attribute_exists(PK) OR attribute_not_exists(PK)")
                    }
                    (_, member) => always(member),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(always),
        _ => {}
    }
}

/// The same transaction with its first part only.
fn torn(call: &Call, keys: &EmulatorKeys) -> Call {
    let mut call = call.clone();
    if let Ok(mut body) = serde_json::from_slice::<Value>(&call.body) {
        if let Some(items) = body["TransactItems"].as_array_mut() {
            items.truncate(1);
        }
        call.says(&body, keys).unwrap();
    }
    call
}

/// A success response for a call that was not executed.
fn forgotten(operation: Option<&str>) -> Answer {
    let (head, ()) = Response::new(()).into_parts();
    let object = operation.is_some_and(|name| name.ends_with("object"));
    (head, if object { "" } else { "{}" }.into())
}
