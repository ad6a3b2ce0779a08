//! The wire of one interface of a card: 1.0 or 0.3, over JSON-RPC or REST.

use a2a_lambda::engine::{Ids as _, RandomIds};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use serde_json::{Map, Value, json};

/// The method of an operation in JSON-RPC of 1.0 and of 0.3, and its path in REST.
pub(super) struct Operation(&'static str, &'static str, &'static str);
pub(super) const SEND: Operation = Operation("SendMessage", "message/send", "message:send");
pub(super) const STREAM: Operation =
    Operation("SendStreamingMessage", "message/stream", "message:stream");
pub(super) const GET: Operation = Operation("GetTask", "tasks/get", "tasks/ID");
pub(super) const SUBSCRIBE: Operation =
    Operation("SubscribeToTask", "tasks/resubscribe", "tasks/ID:subscribe");

/// An interface of a card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Interface {
    pub(super) url: String,
    tenant: Option<String>,
    /// Whether it is 0.3.
    pub(super) old: bool,
    rest: bool,
}

/// What a send has beside its text.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Extras<'a> {
    /// A media type and a content.
    pub(super) file: Option<(&'a str, &'a [u8])>,
    /// A result with the task that the message continues.
    pub(super) task: Option<&'a Value>,
    /// Whether the response does not wait for the end of the turn.
    pub(super) background: bool,
    /// The URL and the token of a webhook.
    pub(super) webhook: Option<(&'a str, &'a str)>,
}

impl Interface {
    /// The interfaces of a card that this command can use, in the order of the card.
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
        known.dedup();
        known
    }

    fn read(listed: &Value) -> Option<Self> {
        let binding = text(listed, "/protocolBinding").or_else(|| text(listed, "/transport"))?;
        let version = text(listed, "/protocolVersion").unwrap_or("0.3");
        let known = matches!(binding, "JSONRPC" | "HTTP+JSON");
        (known && version.starts_with(['0', '1'])).then_some(Self {
            url: text(listed, "/url")?.trim_end_matches('/').to_owned(),
            tenant: text(listed, "/tenant").map(str::to_owned),
            old: version.starts_with('0'),
            rest: binding == "HTTP+JSON",
        })
    }

    pub(super) fn name(&self) -> String {
        let binding = if self.rest { "HTTP+JSON" } else { "JSONRPC" };
        format!("{binding} {}", if self.old { "0.3" } else { "1.0" })
    }

    /// The request of an operation: method, URL, body.
    pub(super) fn request(
        &self,
        operation: &Operation,
        mut params: Value,
    ) -> (Method, String, Option<Value>) {
        let Operation(new, old, path) = *operation;
        if !self.rest {
            let method = if self.old { old } else { new };
            if let (Some(tenant), Some(params)) = (&self.tenant, params.as_object_mut()) {
                params.insert("tenant".to_owned(), tenant.as_str().into());
            }
            let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
            return (Method::POST, self.url.clone(), Some(body));
        }
        let tenant = self.tenant.as_ref().map(|tenant| format!("/{tenant}"));
        let version = if self.old { "/v1" } else { "" };
        let path = path.replace("ID", text(&params, "/id").unwrap_or_default());
        let url = format!("{}{}{version}/{path}", self.url, tenant.unwrap_or_default());
        match path.split_once(':') {
            Some(("message", _)) => (Method::POST, url, Some(params)),
            // A2A 1.0 §11.3.2 says POST, and the proto of 0.3 says GET.
            Some(_) if !self.old => (Method::POST, url, None),
            _ => (Method::GET, url, None),
        }
    }

    /// The parameters of a send.
    pub(super) fn params(&self, words: Option<&str>, extras: Extras<'_>) -> Value {
        // 0.3 over REST is ProtoJSON of the 0.3 proto, as its SDKs send it.
        let kinds = self.old && !self.rest;
        let mut parts: Vec<Value> = words.iter().map(|text| json!({"text": text})).collect();
        if let Some((media_type, content)) = extras.file {
            let content = STANDARD.encode(content);
            let bytes = if kinds { "bytes" } else { "fileWithBytes" };
            parts.push(match self.old {
                false => json!({"raw": content, "mediaType": media_type, "filename": "check"}),
                true => json!({"file": {bytes: content, "mimeType": media_type, "name": "check"}}),
            });
        }
        let mut message = Map::new();
        let id = format!("check-{:032x}", RandomIds.next());
        message.insert("messageId".to_owned(), id.into());
        let role = if kinds { "user" } else { "ROLE_USER" };
        message.insert("role".to_owned(), role.into());
        if kinds {
            message.insert("kind".to_owned(), "message".into());
            for part in parts.iter_mut().filter_map(Value::as_object_mut) {
                let kind = if part.contains_key("file") {
                    "file"
                } else {
                    "text"
                };
                part.insert("kind".to_owned(), kind.into());
            }
        }
        let list = if self.old && self.rest {
            "content"
        } else {
            "parts"
        };
        message.insert(list.to_owned(), parts.into());
        if let Some(task) = extras.task {
            let context = text(inner(task), "/contextId").unwrap_or_default();
            message.insert("taskId".to_owned(), task_id(task).into());
            message.insert("contextId".to_owned(), context.into());
        }
        let (waits, webhook) = match (self.old, self.rest) {
            (false, _) => ("returnImmediately", "taskPushNotificationConfig"),
            (true, false) => ("blocking", "pushNotificationConfig"),
            (true, true) => ("blocking", "pushNotification"),
        };
        let mut configuration = Map::new();
        configuration.insert(waits.to_owned(), (self.old != extras.background).into());
        if let Some((url, token)) = extras.webhook {
            configuration.insert(webhook.to_owned(), json!({"url": url, "token": token}));
        }
        json!({"message": message, "configuration": configuration})
    }
}

pub(super) fn text<'a>(value: &'a Value, pointer: &str) -> Option<&'a str> {
    value.pointer(pointer)?.as_str()
}

/// The task, message or update in a result or an event.
pub(super) fn inner(value: &Value) -> &Value {
    let mut names = ["task", "statusUpdate", "artifactUpdate", "message", "msg"].iter();
    names
        .find_map(|name| value.get(name).filter(|it| it.is_object()))
        .unwrap_or(value)
}

/// The state of a task, as JSON-RPC of 0.3 writes it. A message has none.
pub(super) fn state(value: &Value) -> Option<String> {
    let state = text(inner(value), "/status/state")?.to_lowercase();
    Some(state.trim_start_matches("task_state_").replace('_', "-"))
}

pub(super) fn task_id(value: &Value) -> &str {
    let [of_update, of_task] = ["/taskId", "/id"].map(|name| text(inner(value), name));
    of_update.or(of_task).unwrap_or_default()
}

/// The text of a message, or of that in the status of a task.
pub(super) fn words(value: &Value) -> &str {
    let mut places = [
        "/status/message/parts",
        "/status/message/content",
        "/parts",
        "/content",
    ]
    .iter()
    .filter_map(|place| text(inner(value), &format!("{place}/0/text")));
    places.next().unwrap_or_default()
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
