//! The wire of one interface of a card: 1.0 or 0.3, over JSON-RPC or REST.

use a2a_lambda::engine::{Ids as _, RandomIds};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use serde_json::{Value, json};

/// The method of an operation in JSON-RPC of 1.0 and of 0.3, and its path in REST.
pub(super) type MethodNames = [&'static str; 3];
pub(super) const SEND: MethodNames = ["SendMessage", "message/send", "message:send"];
pub(super) const STREAM: MethodNames = ["SendStreamingMessage", "message/stream", "message:stream"];
pub(super) const GET: MethodNames = ["GetTask", "tasks/get", "tasks/ID"];
pub(super) const SUBSCRIBE: MethodNames =
    ["SubscribeToTask", "tasks/resubscribe", "tasks/ID:subscribe"];

/// An interface of a card.
#[derive(PartialEq)]
pub(super) struct Interface {
    /// Binding and version, for people.
    pub(super) name: String,
    pub(super) url: String,
    tenant: Option<String>,
    /// Whether it is 0.3.
    pub(super) old: bool,
    rest: bool,
}

impl Interface {
    /// The interfaces of a card in the version that it prefers, in its order.
    pub(super) fn of(card: &Value) -> Vec<Self> {
        let list = |name: &str| card.get(name).and_then(Value::as_array).cloned();
        // A2A 0.3 §5.5: `url` with its transport, then the others.
        let entries = list("supportedInterfaces").unwrap_or_else(|| {
            let transport = text(card, "/preferredTransport").unwrap_or("JSONRPC");
            let first = json!({"url": card.get("url"), "transport": transport});
            let others = list("additionalInterfaces").unwrap_or_default();
            [vec![first], others].concat()
        });
        let mut interfaces: Vec<Self> = entries.iter().filter_map(Self::read).collect();
        let is_old = interfaces.first().is_some_and(|first| first.old);
        interfaces.retain(|one| one.old == is_old);
        interfaces.dedup();
        interfaces
    }

    fn read(entry: &Value) -> Option<Self> {
        let transport = text(entry, "/transport");
        let binding = text(entry, "/protocolBinding").or(transport)?;
        let version = text(entry, "/protocolVersion").unwrap_or("0.3");
        let is_known = matches!(binding, "JSONRPC" | "HTTP+JSON");
        let version = version
            .get(..3)
            .filter(|it| is_known && ["1.0", "0.3"].contains(it))?;
        Some(Self {
            name: format!("{binding} {version}"),
            url: text(entry, "/url")?.to_owned(),
            // ProtoJSON of several SDKs writes an unset tenant.
            tenant: text(entry, "/tenant")
                .filter(|it| !it.is_empty())
                .map(str::to_owned),
            old: version == "0.3",
            rest: binding == "HTTP+JSON",
        })
    }

    /// The request of an operation: method, URL, body.
    pub(super) fn request(
        &self,
        operation: MethodNames,
        params: &Value,
    ) -> (Method, String, Value) {
        let [new, old, path] = operation;
        if !self.rest {
            let method = if self.old { old } else { new };
            let mut params = params.clone();
            put(&mut params, "tenant", self.tenant.as_deref().into());
            let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
            return (Method::POST, self.url.clone(), body);
        }
        let version = if self.old { "/v1" } else { "" };
        let tenant = self.tenant.as_ref().map(|it| format!("/{it}"));
        let path = path.replace("ID", text(params, "/id").unwrap_or_default());
        let base = self.url.trim_end_matches('/');
        let url = format!("{base}{}{version}/{path}", tenant.unwrap_or_default());
        match path.split_once(':') {
            Some(("message", _)) => (Method::POST, url, params.clone()),
            // A2A 1.0 §11.3.2 says POST, and the proto of 0.3 says GET.
            Some(_) if !self.old => (Method::POST, url, Value::Null),
            _ => (Method::GET, url, Value::Null),
        }
    }

    /// The parameters of a send, from a part and a configuration of 1.0. `task` is a result with
    /// the task that the message continues.
    pub(super) fn params(&self, part: &Value, task: &Value, configuration: &Value) -> Value {
        let mut message = json!({
            "messageId": format!("check-{:032x}", RandomIds.next()),
            "role": "ROLE_USER",
        });
        put(&mut message, "taskId", text(inner(task), "/id").into());
        put(
            &mut message,
            "contextId",
            text(inner(task), "/contextId").into(),
        );
        if !self.old {
            put(&mut message, "parts", json!([part]));
            return json!({"message": message, "configuration": configuration});
        }
        let file = part.get("raw").map(|raw| {
            let bytes = if self.rest { "fileWithBytes" } else { "bytes" };
            json!({"file": {bytes: raw, "mimeType": part.get("mediaType"), "name": "check"}})
        });
        let kind = if file.is_some() { "file" } else { "text" };
        let mut part = file.unwrap_or_else(|| part.clone());
        let background = configuration.get("returnImmediately").is_some();
        let mut old = json!({"blocking": !background});
        let webhook = &json!(configuration.get("taskPushNotificationConfig"));
        // 0.3 over REST is ProtoJSON of the 0.3 proto, as its SDKs send it.
        if self.rest {
            put(&mut message, "content", json!([part]));
            put(&mut old, "pushNotification", webhook.clone());
        } else {
            put(&mut part, "kind", kind.into());
            put(&mut message, "kind", "message".into());
            put(&mut message, "role", "user".into());
            put(&mut message, "parts", json!([part]));
            put(&mut old, "pushNotificationConfig", webhook.clone());
        }
        json!({"message": message, "configuration": old})
    }
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
    let mut names = ["task", "statusUpdate", "artifactUpdate", "message", "msg"].iter();
    let member = names.find_map(|name| value.get(name).filter(|it| it.is_object()));
    member.unwrap_or(value)
}

/// The members that a card lacks, although its version requires them, and strict clients drop
/// it without (A2A 1.0 §4.4.1 and §4.4.5; A2A 0.3 §5.5).
pub(super) fn missing_members(card: &Value) -> Vec<String> {
    let lacks = |value: &Value, name: &&str| value.get(name).is_none_or(Value::is_null);
    let is_old = card.get("supportedInterfaces").is_none();
    let address = if is_old { "url" } else { "supportedInterfaces" };
    let of_card = ["name", "description", "version", address, "capabilities"];
    let lists = ["defaultInputModes", "defaultOutputModes", "skills"];
    let mut names: Vec<String> = of_card
        .iter()
        .chain(&lists)
        .map(ToString::to_string)
        .collect();
    names.retain(|name| lacks(card, &name.as_str()));
    let skills = card.get("skills").and_then(Value::as_array);
    for (index, skill) in skills.into_iter().flatten().enumerate() {
        let of_skill = ["id", "name", "description", "tags"].iter();
        let of_skill = of_skill.filter(|name| lacks(skill, name));
        names.extend(of_skill.map(|name| format!("skills[{index}].{name}")));
    }
    names
}

/// The member of an event of 1.0 that has its content.
pub(super) fn kind_of_event(event: &Value) -> &str {
    let kind = event.as_object().and_then(|members| members.keys().next());
    kind.map_or("nothing", String::as_str)
}

/// The state of a task, as JSON-RPC of 0.3 writes it; a message has none.
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
    let pointers = ["parts", "content"].map(|it| format!("/status/message/{it}/0/text"));
    let mut texts = pointers
        .iter()
        .filter_map(|pointer| text(inner(value), pointer));
    texts.next().unwrap_or_default()
}

/// The files in a value: a content, or the URL that it has.
pub(super) fn files(value: &Value) -> Vec<Result<Vec<u8>, &str>> {
    let members = || value.as_object().into_iter().flatten();
    let here = members().filter_map(|(name, value)| match (name.as_str(), value.as_str()?) {
        ("raw" | "bytes" | "fileWithBytes", text) => STANDARD.decode(text).ok().map(Ok),
        ("url" | "uri" | "fileWithUri", url) => Some(Err(url)),
        _ => None,
    });
    let elements = value.as_array().into_iter().flatten();
    let below = members().map(|(_, value)| value).chain(elements);
    here.chain(below.flat_map(files)).collect()
}
