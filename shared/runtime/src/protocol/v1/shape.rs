//! What a 1.0 request has to look like, before `a2a-lf` reads it.
//!
//! [`normalise`] walks the known members of an object: it spells them as
//! `a2a-lf` wants them and notes every fault with its path. Unknown members
//! are left alone, and so is everything inside `metadata` and `data`.

use crate::protocol::read::{
    self, MAX_HISTORY, MAX_PARTS, SCHEME_RULE, is_printable, is_scheme, printable_rule,
};
use crate::task::{
    ContextId, FieldViolation, MAX_PUSH_CREDENTIALS, MAX_PUSH_TOKEN, MAX_PUSH_URL, PushId, Refusal,
    TaskId, TaskState, Timestamp,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

/// Faults worth naming in one answer.
const MAX_VIOLATIONS: usize = 32;

/// What a member has to be.
enum Kind {
    /// Text that says something; empty counts as absent, as in proto3.
    Text,
    /// Text, also empty.
    Content,
    /// Bytes in base64.
    Raw,
    /// Any JSON value, `null` included.
    Any,
    /// An object of free members.
    Free,
    /// A list of strings.
    Texts,
    /// `true` or `false`.
    Switch,
    /// A whole number of at least 0, clamped to the history limit.
    History,
    /// A whole number from 1 to 100.
    PageSize,
    /// An RFC 3339 time.
    Time,
    /// The name of a task state.
    State,
    /// The role of a client's message.
    UserRole,
    /// The id of a task.
    TaskId,
    /// The id of a context.
    ContextId,
    /// The id of a push configuration.
    PushId,
    /// Up to so many printable ASCII characters.
    Printable(usize),
    /// The name of an HTTP authentication scheme.
    Scheme,
    /// An object.
    Object(&'static Shape),
    /// The parts of a message.
    Parts,
}

struct Member {
    name: &'static str,
    /// A second name under which clients send it.
    alias: Option<&'static str>,
    kind: Kind,
    required: bool,
}

const fn optional(name: &'static str, kind: Kind) -> Member {
    Member {
        name,
        alias: None,
        kind,
        required: false,
    }
}

const fn required(name: &'static str, kind: Kind) -> Member {
    Member {
        required: true,
        ..optional(name, kind)
    }
}

/// The known members of an object.
pub(super) struct Shape(&'static [Member]);

const CONTENTS: [&str; 4] = ["text", "raw", "url", "data"];

static PART: Shape = Shape(&[
    optional("text", Kind::Content),
    optional("raw", Kind::Raw),
    optional("url", Kind::Text),
    optional("data", Kind::Any),
    optional("filename", Kind::Text),
    optional("mediaType", Kind::Text),
    optional("metadata", Kind::Free),
]);

static MESSAGE: Shape = Shape(&[
    required("messageId", Kind::Text),
    optional("contextId", Kind::ContextId),
    optional("taskId", Kind::TaskId),
    required("role", Kind::UserRole),
    required("parts", Kind::Parts),
    optional("metadata", Kind::Free),
    optional("extensions", Kind::Texts),
    optional("referenceTaskIds", Kind::Texts),
]);

static AUTHENTICATION: Shape = Shape(&[
    required("scheme", Kind::Scheme),
    optional("credentials", Kind::Printable(MAX_PUSH_CREDENTIALS)),
]);

/// The members of a `TaskPushNotificationConfig`; the task is named by a
/// registration of its own and not by one inside a send.
const fn push_config(task: Member) -> [Member; 6] {
    [
        required("url", Kind::Printable(MAX_PUSH_URL)),
        optional("id", Kind::PushId),
        task,
        optional("token", Kind::Printable(MAX_PUSH_TOKEN)),
        optional("authentication", Kind::Object(&AUTHENTICATION)),
        optional("tenant", Kind::Text),
    ]
}

static PUSH_CONFIG: Shape = Shape(&push_config(optional("taskId", Kind::TaskId)));

/// `TaskPushNotificationConfig`, as it is created.
pub(super) static CREATE_PUSH: Shape = Shape(&push_config(required("taskId", Kind::TaskId)));

/// `GetTaskPushNotificationConfigRequest` and its delete.
pub(super) static ONE_PUSH: Shape = Shape(&[
    required("taskId", Kind::TaskId),
    required("id", Kind::PushId),
    optional("tenant", Kind::Text),
]);

/// `ListTaskPushNotificationConfigsRequest`.
pub(super) static LIST_PUSHES: Shape = Shape(&[
    required("taskId", Kind::TaskId),
    optional("pageSize", Kind::PageSize),
    optional("pageToken", Kind::Text),
    optional("tenant", Kind::Text),
]);

static CONFIGURATION: Shape = Shape(&[
    optional("acceptedOutputModes", Kind::Texts),
    Member {
        alias: Some("pushNotificationConfig"),
        ..optional("taskPushNotificationConfig", Kind::Object(&PUSH_CONFIG))
    },
    optional("historyLength", Kind::History),
    optional("returnImmediately", Kind::Switch),
]);

/// `SendMessageRequest`.
pub(super) static SEND: Shape = Shape(&[
    required("message", Kind::Object(&MESSAGE)),
    optional("configuration", Kind::Object(&CONFIGURATION)),
    optional("metadata", Kind::Free),
    optional("tenant", Kind::Text),
]);

/// `GetTaskRequest`.
pub(super) static GET: Shape = Shape(&[
    required("id", Kind::TaskId),
    optional("historyLength", Kind::History),
    optional("tenant", Kind::Text),
]);

/// `CancelTaskRequest`.
pub(super) static CANCEL: Shape = Shape(&[
    required("id", Kind::TaskId),
    optional("metadata", Kind::Free),
    optional("tenant", Kind::Text),
]);

/// `SubscribeToTaskRequest`.
pub(super) static SUBSCRIBE: Shape =
    Shape(&[required("id", Kind::TaskId), optional("tenant", Kind::Text)]);

/// `ListTasksRequest`.
pub(super) static LIST: Shape = Shape(&[
    optional("contextId", Kind::ContextId),
    optional("status", Kind::State),
    optional("pageSize", Kind::PageSize),
    optional("pageToken", Kind::Text),
    optional("historyLength", Kind::History),
    optional("statusTimestampAfter", Kind::Time),
    optional("includeArtifacts", Kind::Switch),
    optional("tenant", Kind::Text),
]);

/// Checks `params` against `shape` and spells it as `a2a-lf` reads it.
///
/// # Errors
/// [`Refusal::InvalidParams`] with every fault, up to a limit.
pub(super) fn normalise(shape: &Shape, params: &mut Value) -> Result<(), Refusal> {
    let mut faults = Faults(Vec::new());
    match params {
        Value::Object(members) => walk(shape, members, "", &mut faults),
        _ => faults.note("params", "must be an object"),
    }
    if faults.0.is_empty() {
        Ok(())
    } else {
        Err(Refusal::InvalidParams {
            violations: faults.0,
        })
    }
}

struct Faults(Vec<FieldViolation>);

impl Faults {
    fn note(&mut self, path: &str, description: impl Into<String>) {
        if self.0.len() < MAX_VIOLATIONS {
            self.0.push(FieldViolation::new(path, description));
        }
    }
}

fn walk(shape: &Shape, members: &mut Map<String, Value>, path: &str, faults: &mut Faults) {
    for member in shape.0 {
        let here = if path.is_empty() {
            member.name.to_owned()
        } else {
            format!("{path}.{}", member.name)
        };
        rename(member, members, &here, faults);
        let nullable = matches!(member.kind, Kind::Any);
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

/// Moves a member from its proto name or alias to the name `a2a-lf` knows.
fn rename(member: &Member, members: &mut Map<String, Value>, path: &str, faults: &mut Faults) {
    let others = [
        Some(snake(member.name)),
        member.alias.map(str::to_owned),
        member.alias.map(snake),
    ];
    for other in others.into_iter().flatten().filter(|o| o != member.name) {
        if let Some(value) = members.remove(&other) {
            if members.contains_key(member.name) {
                faults.note(path, format!("is given twice, also as `{other}`"));
            }
            members.insert(member.name.to_owned(), value);
        }
    }
}

fn snake(name: &str) -> String {
    let mut text = String::with_capacity(name.len() + 4);
    for c in name.chars() {
        if c.is_ascii_uppercase() {
            text.push('_');
        }
        text.push(c.to_ascii_lowercase());
    }
    text
}

/// Notes what is wrong with `value`. The answer is `false` when the member is
/// there but says nothing, so that it counts as absent.
fn check(kind: &Kind, value: &mut Value, path: &str, faults: &mut Faults) -> bool {
    match kind {
        Kind::Text
        | Kind::ContextId
        | Kind::TaskId
        | Kind::PushId
        | Kind::Printable(_)
        | Kind::Scheme => return text(kind, value, path, faults),
        Kind::Content if !value.is_string() => faults.note(path, "must be a string"),
        Kind::Raw => raw(value, path, faults),
        Kind::Free if !value.is_object() => faults.note(path, "must be an object"),
        Kind::Switch if !value.is_boolean() => faults.note(path, "must be `true` or `false`"),
        Kind::Texts => texts(value, path, faults),
        Kind::History => match whole(value) {
            // The clamp also keeps the number inside the int32 of the proto.
            Some(number) => *value = number.min(MAX_HISTORY as u64).into(),
            None => faults.note(path, "must be a whole number of at least 0"),
        },
        Kind::PageSize => match whole(value).filter(|number| (1..=100).contains(number)) {
            Some(number) => *value = number.into(),
            None => faults.note(path, "must be a whole number from 1 to 100"),
        },
        Kind::Time => {
            let time = value.as_str().and_then(Timestamp::parse_rfc3339);
            match time {
                Some(time) => *value = time.to_rfc3339().into(),
                None => faults.note(path, "must be an RFC 3339 time"),
            }
        }
        Kind::State if value.as_str().and_then(state).is_none() => {
            faults.note(path, format!("must be one of {}", state_names()));
        }
        Kind::UserRole if value.as_str() != Some("ROLE_USER") => {
            faults.note(path, "must be `ROLE_USER`");
        }
        Kind::Object(shape) => match value {
            Value::Object(members) => walk(shape, members, path, faults),
            _ => faults.note(path, "must be an object"),
        },
        Kind::Parts => parts(value, path, faults),
        Kind::Content | Kind::Any | Kind::Free | Kind::Switch | Kind::State | Kind::UserRole => {}
    }
    true
}

fn text(kind: &Kind, value: &Value, path: &str, faults: &mut Faults) -> bool {
    let Some(text) = value.as_str() else {
        faults.note(path, "must be a string");
        return true;
    };
    if text.is_empty() {
        return false;
    }
    let form = match kind {
        Kind::TaskId => TaskId::parse(text).err(),
        Kind::ContextId => ContextId::parse(text).err(),
        Kind::PushId => PushId::parse(text).err(),
        _ => None,
    };
    if let Some(error) = form {
        faults.note(path, format!("must be {}", error.rule));
    }
    match kind {
        Kind::Printable(max) if !is_printable(text, *max) => {
            faults.note(path, printable_rule(*max))
        }
        Kind::Scheme if !is_scheme(text) => faults.note(path, SCHEME_RULE),
        _ => {}
    }
    true
}

fn texts(value: &Value, path: &str, faults: &mut Faults) {
    let Some(items) = value.as_array() else {
        return faults.note(path, "must be a list of strings");
    };
    for (index, item) in items.iter().enumerate() {
        if !item.is_string() {
            faults.note(&format!("{path}[{index}]"), "must be a string");
        }
    }
}

fn parts(value: &mut Value, path: &str, faults: &mut Faults) {
    let Some(items) = value.as_array_mut() else {
        return faults.note(path, "must be a list of parts");
    };
    if items.is_empty() || items.len() > MAX_PARTS {
        return faults.note(path, format!("must have 1 to {MAX_PARTS} parts"));
    }
    for (index, item) in items.iter_mut().enumerate() {
        let here = format!("{path}[{index}]");
        let Some(members) = item.as_object_mut() else {
            faults.note(&here, "must be an object");
            continue;
        };
        walk(&PART, members, &here, faults);
        let contents = CONTENTS.iter().filter(|name| members.contains_key(**name));
        if contents.count() != 1 {
            faults.note(
                &here,
                "must have exactly one of `text`, `raw`, `url`, `data`",
            );
        }
    }
}

/// Spells base64 as `a2a-lf` reads it: standard alphabet, padded.
fn raw(value: &mut Value, path: &str, faults: &mut Faults) {
    let Some(text) = value.as_str() else {
        return faults.note(path, "must be a base64 string");
    };
    match read::base64(text) {
        Some(bytes) => *value = STANDARD.encode(bytes).into(),
        None => faults.note(path, "must be base64"),
    }
}

/// A whole number of at least 0, as `ProtoJSON` spells it: `10` or `"10"`.
fn whole(value: &Value) -> Option<u64> {
    match value {
        Value::Number(number) => number.as_u64(),
        Value::String(text) if text.bytes().all(|b| b.is_ascii_digit()) => text.parse().ok(),
        _ => None,
    }
}

/// The state a name of 1.0 stands for; the unspecified one is none.
pub(super) fn state(name: &str) -> Option<TaskState> {
    TaskState::ALL
        .into_iter()
        .find(|state| state_name(*state) == name)
}

/// The name of a state in 1.0.
fn state_name(state: TaskState) -> String {
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
