//! The wire of one interface of a card: 1.0 or 0.3, over JSON-RPC or REST.

use a2a_lambda::engine::{Ids as _, RandomIds};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use serde_json::{Value, json};

/// The method of an operation in JSON-RPC of 1.0 and of 0.3, and its path in REST.
pub(super) struct Operation(&'static str, &'static str, &'static str);
pub(super) const SEND: Operation = Operation("SendMessage", "message/send", "message:send");
pub(super) const STREAM: Operation =
    Operation("SendStreamingMessage", "message/stream", "message:stream");
pub(super) const GET: Operation = Operation("GetTask", "tasks/get", "tasks/ID");
pub(super) const SUBSCRIBE: Operation =
    Operation("SubscribeToTask", "tasks/resubscribe", "tasks/ID:subscribe");

/// An interface of a card.
#[derive(PartialEq)]
pub(super) struct Interface {
    pub(super) name: String,
    pub(super) url: String,
    tenant: Option<String>,
    /// Whether it is 0.3.
    pub(super) old: bool,
    rest: bool,
}

/// What a message has: a text, or a file of a media type.
#[derive(Clone, Copy)]
pub(super) enum Content<'a> {
    Text(&'a str),
    File(&'a str, &'a [u8]),
}

/// How a message is sent.
#[derive(Clone, Copy, Default)]
pub(super) struct SendOptions<'a> {
    /// A result with the task that the message continues.
    pub(super) task: Option<&'a Value>,
    pub(super) background: bool,
    /// The URL and the token of a webhook.
    pub(super) webhook: Option<(&'a str, &'a str)>,
}

impl Interface {
    /// The interfaces of a card in its preferred version, in the order of the card.
    pub(super) fn of(card: &Value) -> Vec<Self> {
        let list = |name: &str| card.get(name).and_then(Value::as_array).cloned();
        // A2A 0.3 §5.5: `url` with its transport, then the others.
        let listed = list("supportedInterfaces").unwrap_or_else(|| {
            let transport = text(card, "/preferredTransport").unwrap_or("JSONRPC");
            let first = json!({"url": card.get("url"), "transport": transport});
            [
                vec![first],
                list("additionalInterfaces").unwrap_or_default(),
            ]
            .concat()
        });
        let mut known: Vec<Self> = listed.iter().filter_map(Self::read).collect();
        let preferred = known.first().is_some_and(|first| first.old);
        known.retain(|one| one.old == preferred);
        known.dedup();
        known
    }

    fn read(listed: &Value) -> Option<Self> {
        let binding = text(listed, "/protocolBinding").or_else(|| text(listed, "/transport"))?;
        let version = text(listed, "/protocolVersion").unwrap_or("0.3").get(..3)?;
        let known =
            ["JSONRPC", "HTTP+JSON"].contains(&binding) && ["1.0", "0.3"].contains(&version);
        known.then_some(Self {
            name: format!("{binding} {version}"),
            url: text(listed, "/url")?.trim_end_matches('/').to_owned(),
            tenant: text(listed, "/tenant").map(str::to_owned),
            old: version == "0.3",
            rest: binding == "HTTP+JSON",
        })
    }

    /// The request of an operation: method, URL, body.
    pub(super) fn request(&self, operation: &Operation, params: Value) -> (Method, String, Value) {
        let Operation(new, old, path) = *operation;
        if !self.rest {
            let (method, mut params) = (if self.old { old } else { new }, params);
            if let (Some(tenant), Some(params)) = (&self.tenant, params.as_object_mut()) {
                params.insert("tenant".to_owned(), tenant.as_str().into());
            }
            let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
            return (Method::POST, self.url.clone(), body);
        }
        let tenant = self
            .tenant
            .as_ref()
            .map(|tenant| format!("/{tenant}"))
            .unwrap_or_default();
        let version = if self.old { "/v1" } else { "" };
        let path = path.replace("ID", text(&params, "/id").unwrap_or_default());
        let url = format!("{}{tenant}{version}/{path}", self.url);
        match path.split_once(':') {
            Some(("message", _)) => (Method::POST, url, params),
            // A2A 1.0 §11.3.2 says POST, and the proto of 0.3 says GET.
            Some(_) if !self.old => (Method::POST, url, Value::Null),
            _ => (Method::GET, url, Value::Null),
        }
    }

    /// The parameters of a send.
    pub(super) fn params(&self, content: Content<'_>, options: SendOptions<'_>) -> Value {
        let id = format!("check-{:032x}", RandomIds.next());
        // 0.3 over REST is ProtoJSON of the 0.3 proto, as its SDKs send it.
        let (parts, role, hook) = match (self.old, self.rest) {
            (false, _) => ("parts", "ROLE_USER", "taskPushNotificationConfig"),
            (true, false) => ("parts", "user", "pushNotificationConfig"),
            (true, true) => ("content", "ROLE_USER", "pushNotification"),
        };
        let part = match content {
            Content::Text(text) => json!({"text": text}),
            Content::File(media_type, content) => {
                let (content, name) = (STANDARD.encode(content), "check.bin");
                let bytes = if self.rest { "fileWithBytes" } else { "bytes" };
                let file = json!({bytes: content, "mimeType": media_type, "name": name});
                match self.old {
                    true => json!({"file": file}),
                    false => json!({"raw": content, "mediaType": media_type, "filename": name}),
                }
            }
        };
        let mut message = json!({"messageId": id, "role": role, parts: [part]});
        let mut configuration = match self.old {
            true => json!({"blocking": !options.background}),
            false => json!({"returnImmediately": options.background}),
        };
        if let Some((url, token)) = options.webhook {
            put(
                &mut configuration,
                hook,
                &json!({"url": url, "token": token}),
            );
        }
        if let Some(task) = options.task {
            put(&mut message, "taskId", &task_id(task).into());
            put(
                &mut message,
                "contextId",
                &text(inner(task), "/contextId").into(),
            );
        }
        if role == "user" {
            let kind = if matches!(content, Content::Text(_)) {
                "text"
            } else {
                "file"
            };
            put(&mut message, "kind", &"message".into());
            message
                .pointer_mut("/parts/0")
                .map(|part| put(part, "kind", &kind.into()));
        }
        json!({"message": message, "configuration": configuration})
    }
}

fn put(object: &mut Value, name: &str, value: &Value) {
    let members = object.as_object_mut();
    members.map(|members| members.insert(name.to_owned(), value.clone()));
}

pub(super) fn text<'a>(value: &'a Value, pointer: &str) -> Option<&'a str> {
    value.pointer(pointer)?.as_str()
}

/// The task, message or update in a result or an event.
fn inner(value: &Value) -> &Value {
    let mut names = ["task", "statusUpdate", "artifactUpdate", "message", "msg"].iter();
    names
        .find_map(|name| value.get(name).filter(|it| it.is_object()))
        .unwrap_or(value)
}

/// The state of a task, as JSON-RPC of 0.3 writes it; a message has none.
pub(super) fn state(value: &Value) -> String {
    let state = text(inner(value), "/status/state")
        .unwrap_or("a message")
        .to_lowercase();
    state.trim_start_matches("task_state_").replace('_', "-")
}

pub(super) fn task_id(value: &Value) -> &str {
    let [of_update, of_task] = ["/taskId", "/id"].map(|name| text(inner(value), name));
    of_update.or(of_task).unwrap_or_default()
}

/// The first text in the status of a task.
pub(super) fn words(value: &Value) -> &str {
    let places = ["parts", "content"].map(|it| format!("/status/message/{it}/0/text"));
    places
        .iter()
        .find_map(|place| text(inner(value), place))
        .unwrap_or_default()
}

/// The files in a value: a content, or the URL that it has.
pub(super) fn files(value: &Value) -> Vec<Result<Vec<u8>, String>> {
    let members = || value.as_object().into_iter().flatten();
    let here = members().filter_map(|(name, value)| match (name.as_str(), value.as_str()?) {
        ("raw" | "bytes" | "fileWithBytes", text) => STANDARD.decode(text).ok().map(Ok),
        ("url" | "uri" | "fileWithUri", url) => Some(Err(url.to_owned())),
        _ => None,
    });
    let below = members().map(|(_, value)| value);
    let below = below.chain(value.as_array().into_iter().flatten());
    here.chain(below.flat_map(files)).collect()
}
