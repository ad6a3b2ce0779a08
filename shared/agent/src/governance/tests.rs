mod compile;
mod drift;
mod glob;
mod merge;
mod merge_cases;
mod skills;
mod validate;

use super::compile::CompiledPolicy;
use super::facts::{CheckContext, CheckFacts};
use super::policy::PolicyDocument;
use serde_json::{Value, json};

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
