mod check;
mod compile;
mod glob;
mod listing;
mod merge;
mod merge_cases;
mod skills;
mod validate;

use super::check::Check;
use super::check::Violation;
use super::compile::CompiledPolicy;
use super::facts::{CheckContext, CheckFacts};
use super::merge::MergedPolicies;
use super::policy::PolicyDocument;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

thread_local! {
    /// The searches that this thread has run.
    pub(super) static SEARCHES: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

fn validate(policies: &MergedPolicies<'_>, facts: &CheckFacts) -> Vec<Violation> {
    let mut whole = pin!(async {
        let check = Check::new(policies, facts).await;
        check.unwrap().violations(|_| true).await
    });
    // It yields, and waits for nothing.
    loop {
        if let Poll::Ready(found) = whole.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return found;
        }
    }
}

/// A policy `p` of the company with these rules, which is not mandatory.
fn document(rules: &Value) -> PolicyDocument {
    serde_json::from_value(json!({ "id": "p", "layer": "company", "rules": rules })).unwrap()
}

fn compiled(policy: Value) -> CompiledPolicy {
    CompiledPolicy::compile(serde_json::from_value(policy).unwrap()).unwrap()
}

/// A rule `r` that blocks.
fn rule(kind: &str, target: &str, pattern: &str) -> Value {
    json!({
        "id": "r",
        "kind": kind,
        "target": target,
        "pattern": pattern,
        "severity": "block",
        "message": "broken",
    })
}

/// The object with the members of `changes` replaced or added.
fn with(mut object: Value, changes: Value) -> Value {
    if let (Some(members), Value::Object(changes)) = (object.as_object_mut(), changes) {
        members.extend(changes);
    }
    object
}

fn facts(context: Value) -> CheckFacts {
    let context: CheckContext = serde_json::from_value(context).unwrap();
    CheckFacts::of(context).unwrap()
}
