//! The wire of one interface of a card: 1.0, over JSON-RPC or REST.

use a2a_lambda::engine::{Ids as _, RandomIds};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use serde_json::{Value, json};

/// The method of an operation in JSON-RPC, and its path in REST.
pub(super) type MethodNames = [&'static str; 2];
pub(super) const SEND: MethodNames = ["SendMessage", "message:send"];
pub(super) const STREAM: MethodNames = ["SendStreamingMessage", "message:stream"];
pub(super) const GET: MethodNames = ["GetTask", "tasks/ID"];
pub(super) const SUBSCRIBE: MethodNames = ["SubscribeToTask", "tasks/ID:subscribe"];

/// An interface of a card.
#[derive(PartialEq)]
pub(super) struct Interface {
    /// Binding and version, for people.
    pub(super) name: String,
    pub(super) url: String,
    tenant: Option<String>,
    rest: bool,
}

impl Interface {
    /// The interfaces of 1.0 on a card, in its order.
    pub(super) fn of(card: &Value) -> Vec<Self> {
        let entries = card.get("supportedInterfaces").and_then(Value::as_array);
        let mut interfaces: Vec<Self> = entries
            .into_iter()
            .flatten()
            .filter_map(Self::read)
            .collect();
        interfaces.dedup();
        interfaces
    }

    fn read(entry: &Value) -> Option<Self> {
        let binding = text(entry, "/protocolBinding")?;
        let is_known = matches!(binding, "JSONRPC" | "HTTP+JSON");
        let version = text(entry, "/protocolVersion")?.get(..3);
        version.filter(|version| is_known && *version == "1.0")?;
        Some(Self {
            name: format!("{binding} 1.0"),
            url: text(entry, "/url")?.trim_end_matches('/').to_owned(),
            tenant: text(entry, "/tenant").map(str::to_owned),
            rest: binding == "HTTP+JSON",
        })
    }

    /// The request of an operation: method, URL, body.
    pub(super) fn request(
        &self,
        [method, path]: MethodNames,
        params: &Value,
    ) -> (Method, String, Value) {
        if !self.rest {
            let mut params = params.clone();
            put(&mut params, "tenant", self.tenant.as_deref().into());
            let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
            return (Method::POST, self.url.clone(), body);
        }
        let tenant = self.tenant.as_ref().map(|it| format!("/{it}"));
        let path = path.replace("ID", text(params, "/id").unwrap_or_default());
        let url = format!("{}{}/{path}", self.url, tenant.unwrap_or_default());
        match path.split_once(':') {
            Some(("message", _)) => (Method::POST, url, params.clone()),
            // A2A 1.0 §11.3.2.
            Some(_) => (Method::POST, url, Value::Null),
            None => (Method::GET, url, Value::Null),
        }
    }
}

/// The parameters of a send. `task` is a result with the task that the message continues.
pub(super) fn params(part: &Value, task: &Value, configuration: &Value) -> Value {
    let mut message = json!({
        "messageId": format!("check-{:032x}", RandomIds.next()),
        "role": "ROLE_USER",
        "parts": [part],
    });
    put(&mut message, "taskId", text(inner(task), "/id").into());
    let context = text(inner(task), "/contextId");
    put(&mut message, "contextId", context.into());
    json!({"message": message, "configuration": configuration})
}

/// Sets a member of an object, unless the value is null.
fn put(object: &mut Value, name: &str, value: Value) {
    if let (Some(members), false) = (object.as_object_mut(), value.is_null()) {
        members.insert(name.to_owned(), value);
    }
}

pub(super) fn text<'a>(value: &'a Value, pointer: &str) -> Option<&'a str> {
    value.pointer(pointer)?.as_str()
}

/// The task, message or update in a result or an event.
fn inner(value: &Value) -> &Value {
    let mut names = ["task", "statusUpdate", "artifactUpdate", "message"].iter();
    let member = names.find_map(|name| value.get(name).filter(|it| it.is_object()));
    member.unwrap_or(value)
}

/// The state of a task, in words; a message has none.
pub(super) fn state(value: &Value) -> String {
    let state = text(inner(value), "/status/state").unwrap_or("a message");
    let state = state.to_lowercase().replace('_', "-");
    state.trim_start_matches("task-state-").to_owned()
}

/// The id of the task in a result.
pub(super) fn id(value: &Value) -> Option<&str> {
    text(inner(value), "/id")
}

/// The first text in the status of a task.
pub(super) fn words(value: &Value) -> &str {
    text(inner(value), "/status/message/parts/0/text").unwrap_or_default()
}

/// The files in a value: a content, or the URL that it has.
pub(super) fn files(value: &Value) -> Vec<Result<Vec<u8>, &str>> {
    let members = || value.as_object().into_iter().flatten();
    let here = members().filter_map(|(name, value)| match (name.as_str(), value.as_str()?) {
        ("raw", text) => STANDARD.decode(text).ok().map(Ok),
        ("url", url) => Some(Err(url)),
        _ => None,
    });
    let elements = value.as_array().into_iter().flatten();
    let below = members().map(|(_, value)| value).chain(elements);
    here.chain(below.flat_map(files)).collect()
}
