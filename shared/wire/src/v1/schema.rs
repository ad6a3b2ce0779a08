//! Checks and normalises a 1.0 request before `a2a-lf` reads it.
//!
//! [`validate`] walks the known members of an object, rewrites them as `a2a-lf`
//! reads them, and notes every fault with its path. It leaves unknown members
//! (A2A 1.0 §5.7) and everything inside `metadata` and `data` as they are.
//!
//! - here: the check of each type of member, and the names of the task states
//! - `shape`: the known members of each request, as tables

mod shape;

pub(super) use shape::{
    CANCEL, CREATE_PUSH, GET, LIST, LIST_PUSHES, ONE_PUSH, SEND, SUBSCRIBE, Shape,
};

use crate::params::{
    self, MAX_HISTORY, MAX_PARTS, SCHEME_RULE, is_printable, is_scheme, printable_rule,
};
use a2a_lambda_model::task::{
    A2aError, ContextId, FieldViolation, PushId, TaskId, TaskState, Timestamp,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};
use shape::{Member, MemberKind, PART};
use std::fmt::{self, Display};

/// The most faults that one error names.
const MAX_VIOLATIONS: usize = 32;

const CONTENTS: [&str; 4] = ["text", "raw", "url", "data"];

/// Checks `params` against `shape` and rewrites it as `a2a-lf` reads it.
///
/// # Errors
/// [`A2aError::InvalidParams`] with the first [`MAX_VIOLATIONS`] faults.
pub(super) fn validate(shape: &Shape, params: &mut Value) -> Result<(), A2aError> {
    let mut faults = SchemaFaults(Vec::new());
    match params {
        Value::Object(members) => walk(shape, members, None, &mut faults),
        _ => faults.note(&"params", "must be an object"),
    }
    if faults.0.is_empty() {
        Ok(())
    } else {
        Err(A2aError::InvalidParams {
            violations: faults.0,
        })
    }
}

struct SchemaFaults(Vec<FieldViolation>);

impl SchemaFaults {
    fn note(&mut self, path: &dyn Display, description: impl Into<String>) {
        if self.0.len() < MAX_VIOLATIONS {
            let path = path.to_string();
            self.0.push(FieldViolation::new(path, description));
        }
    }
}

/// The path of a member or an element. It becomes text only for a fault.
#[derive(Clone, Copy)]
struct FieldPath<'p> {
    around: Option<&'p FieldPath<'p>>,
    step: FieldStep,
}

#[derive(Clone, Copy)]
enum FieldStep {
    Member(&'static str),
    Element(usize),
}

impl FieldPath<'_> {
    const fn element(&self, index: usize) -> FieldPath<'_> {
        FieldPath {
            around: Some(self),
            step: FieldStep::Element(index),
        }
    }
}

impl Display for FieldPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(around) = self.around {
            around.fmt(f)?;
        }
        match (self.step, self.around) {
            (FieldStep::Member(name), None) => f.write_str(name),
            (FieldStep::Member(name), Some(_)) => write!(f, ".{name}"),
            (FieldStep::Element(index), _) => write!(f, "[{index}]"),
        }
    }
}

fn walk(
    shape: &Shape,
    members: &mut Map<String, Value>,
    around: Option<&FieldPath<'_>>,
    faults: &mut SchemaFaults,
) {
    let has_snake = members.keys().any(|name| name.contains('_'));
    for member in shape.0 {
        let here = FieldPath {
            around,
            step: FieldStep::Member(member.name),
        };
        if has_snake || member.alias.is_some() {
            rename(member, members, &here, faults);
        }
        // A2A 1.0 §4.1.6: `data` is any JSON value, so its null is a value.
        let nullable = matches!(member.kind, MemberKind::Any);
        if !nullable && members.get(member.name).is_some_and(Value::is_null) {
            members.remove(member.name);
        }
        let keep = match members.get_mut(member.name) {
            Some(value) => check(&member.kind, value, &here, faults),
            None => {
                if member.required {
                    faults.note(&here, "is required");
                }
                continue;
            }
        };
        if !keep {
            members.remove(member.name);
            if member.required {
                faults.note(&here, "must not be empty");
            }
        }
    }
}

/// Renames a member from its proto name or alias to the name that `a2a-lf` reads.
fn rename(
    member: &Member,
    members: &mut Map<String, Value>,
    path: &FieldPath<'_>,
    faults: &mut SchemaFaults,
) {
    // A2A 1.0 §5.5: ProtoJSON readers take the name of the proto field too.
    let is_other = |name: &&String| {
        let alias = |alias| **name == alias || is_snake(name, alias);
        **name != member.name && (is_snake(name, member.name) || member.alias.is_some_and(alias))
    };
    while let Some(other) = members.keys().find(is_other).cloned() {
        if let Some(value) = members.remove(&other) {
            if members.contains_key(member.name) {
                faults.note(path, format!("is given twice, also as `{other}`"));
            }
            members.insert(member.name.to_owned(), value);
        }
    }
}

/// Whether `text` is the snake case of a name in camel case.
fn is_snake(text: &str, name: &str) -> bool {
    let mut left = text.chars();
    name.chars().all(|c| {
        let underscore = !c.is_ascii_uppercase() || left.next() == Some('_');
        underscore && left.next() == Some(c.to_ascii_lowercase())
    }) && left.next().is_none()
}

/// Notes the faults of `value`. Returns `false` if the member is empty, so that it
/// counts as absent.
fn check(
    kind: &MemberKind,
    value: &mut Value,
    path: &FieldPath<'_>,
    faults: &mut SchemaFaults,
) -> bool {
    match kind {
        MemberKind::Text
        | MemberKind::ContextId
        | MemberKind::TaskId
        | MemberKind::PushId
        | MemberKind::Printable(_)
        | MemberKind::Scheme => return text(kind, value, path, faults),
        MemberKind::Content if !value.is_string() => faults.note(path, "must be a string"),
        MemberKind::Raw => raw(value, path, faults),
        MemberKind::Free if !value.is_object() => faults.note(path, "must be an object"),
        MemberKind::Switch if !value.is_boolean() => faults.note(path, "must be `true` or `false`"),
        MemberKind::Texts => texts(value, path, faults),
        // A2A 1.0 §3.2.4: at most this many messages; 0 is none.
        MemberKind::History => match whole(value) {
            // The clamp also keeps the number inside the int32 of the proto.
            Some(number) => *value = number.min(MAX_HISTORY as u64).into(),
            None => faults.note(path, "must be a whole number of at least 0"),
        },
        // A2A 1.0 §3.1.4: a page has 1 to 100 tasks.
        MemberKind::PageSize => match whole(value).filter(|number| (1..=100).contains(number)) {
            Some(number) => *value = number.into(),
            None => faults.note(path, "must be a whole number from 1 to 100"),
        },
        // A2A 1.0 §5.6.1: a time is ISO 8601 text.
        MemberKind::Time => {
            let time = value.as_str().and_then(Timestamp::parse_rfc3339);
            match time {
                Some(time) => *value = time.to_rfc3339().into(),
                None => faults.note(path, "must be an RFC 3339 time"),
            }
        }
        MemberKind::State if value.as_str().and_then(state).is_none() => {
            faults.note(path, format!("must be one of {}", state_names()));
        }
        // A2A 1.0 §4.1.5: `ROLE_USER` is the role of the client.
        MemberKind::UserRole if value.as_str() != Some("ROLE_USER") => {
            faults.note(path, "must be `ROLE_USER`");
        }
        MemberKind::Object(shape) => match value {
            Value::Object(members) => walk(shape, members, Some(path), faults),
            _ => faults.note(path, "must be an object"),
        },
        MemberKind::Parts => parts(value, path, faults),
        MemberKind::Content
        | MemberKind::Any
        | MemberKind::Free
        | MemberKind::Switch
        | MemberKind::State
        | MemberKind::UserRole => {}
    }
    true
}

fn text(kind: &MemberKind, value: &Value, path: &FieldPath<'_>, faults: &mut SchemaFaults) -> bool {
    let Some(text) = value.as_str() else {
        faults.note(path, "must be a string");
        return true;
    };
    if text.is_empty() {
        return false;
    }
    let form = match kind {
        MemberKind::TaskId => TaskId::parse(text).err(),
        MemberKind::ContextId => ContextId::parse(text).err(),
        MemberKind::PushId => PushId::parse(text).err(),
        _ => None,
    };
    if let Some(error) = form {
        faults.note(path, format!("must be {}", error.rule));
    }
    match kind {
        MemberKind::Printable(max) if !is_printable(text, *max) => {
            faults.note(path, printable_rule(*max))
        }
        MemberKind::Scheme if !is_scheme(text) => faults.note(path, SCHEME_RULE),
        _ => {}
    }
    true
}

fn texts(value: &Value, path: &FieldPath<'_>, faults: &mut SchemaFaults) {
    let Some(items) = value.as_array() else {
        return faults.note(path, "must be a list of strings");
    };
    for (index, item) in items.iter().enumerate() {
        if !item.is_string() {
            faults.note(&path.element(index), "must be a string");
        }
    }
}

fn parts(value: &mut Value, path: &FieldPath<'_>, faults: &mut SchemaFaults) {
    let Some(items) = value.as_array_mut() else {
        return faults.note(path, "must be a list of parts");
    };
    // A2A 1.0 §5.7: the required array has an element. The server sets the upper
    // limit.
    if items.is_empty() || items.len() > MAX_PARTS {
        return faults.note(path, format!("must have 1 to {MAX_PARTS} parts"));
    }
    for (index, item) in items.iter_mut().enumerate() {
        let here = path.element(index);
        let Some(members) = item.as_object_mut() else {
            faults.note(&here, "must be an object");
            continue;
        };
        walk(&PART, members, Some(&here), faults);
        // A2A 1.0 §4.1.6: a part has exactly one content.
        let contents = CONTENTS.iter().filter(|name| members.contains_key(**name));
        if contents.count() != 1 {
            faults.note(
                &here,
                "must have exactly one of `text`, `raw`, `url`, `data`",
            );
        }
    }
}

/// Rewrites base64 as `a2a-lf` reads it: in the standard alphabet, with padding.
fn raw(value: &mut Value, path: &FieldPath<'_>, faults: &mut SchemaFaults) {
    let Some(text) = value.as_str() else {
        return faults.note(path, "must be a base64 string");
    };
    match params::base64(text) {
        Some(bytes) => *value = STANDARD.encode(bytes).into(),
        None => faults.note(path, "must be base64"),
    }
}

/// A whole number of at least 0: `10` or `"10"`.
fn whole(value: &Value) -> Option<u64> {
    // A2A 1.0 §5.5: ProtoJSON readers take an integer as a string too.
    match value {
        Value::Number(number) => params::whole(number).and_then(|it| u64::try_from(it).ok()),
        Value::String(text) if text.bytes().all(|b| b.is_ascii_digit()) => text.parse().ok(),
        _ => None,
    }
}

/// The state with this name in 1.0; `None` for `TASK_STATE_UNSPECIFIED`.
pub(super) fn state(name: &str) -> Option<TaskState> {
    TaskState::ALL
        .into_iter()
        .find(|state| state_name(*state) == name)
}

/// The name of a state in 1.0.
fn state_name(state: TaskState) -> String {
    // A2A 1.0 §4.1.3, §5.5: enums have the names of the proto.
    format!(
        "TASK_STATE_{}",
        state.as_str().replace('-', "_").to_ascii_uppercase()
    )
}

fn state_names() -> String {
    let names: Vec<String> = TaskState::ALL
        .into_iter()
        .map(|state| format!("`{}`", state_name(state)))
        .collect();
    names.join(", ")
}
