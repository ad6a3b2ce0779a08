//! Builds the request of a step in a dialect.

use crate::pattern::{Names, fill, filled, in_text};
use crate::vector::{Asked, Step};
use a2a_lambda_tests::dialect::{Dialect, Op, Say};
use a2a_lambda_tests::world::Request;
use serde_json::{Map, Value, json};

/// The request of a step.
pub(crate) fn request(step: &Step, dialect: Dialect, names: &Names) -> Request {
    let task = step.task.as_deref().map(|text| word(text, names));
    let op = match step.ask {
        Asked::Send => Op::Send,
        Asked::Stream => Op::Stream,
        Asked::Get => Op::Get,
        Asked::Cancel => Op::Cancel,
        Asked::Subscribe => Op::Subscribe,
        Asked::List => Op::List,
        Asked::Raw | Asked::Read => return dressed(raw(step, dialect, names), step, names),
    };
    let params = match op {
        Op::Send | Op::Stream => sent(step, dialect, task.as_deref(), names),
        Op::List => json!({}),
        _ => dialect.id_only(task.as_deref().unwrap_or(&word("$task", names))),
    };
    let params = with_options(params, step, op, dialect, names);
    let id = task.unwrap_or_else(|| word("$task", names));
    let mut request = dialect.request(op, &id, &params);
    if dialect.is_rpc() && !step.envelope.is_empty() {
        let mut envelope = dialect.envelope(op, &params);
        merge(&mut envelope, &step.envelope, names);
        request = request.body(envelope.to_string());
    }
    dressed(request, step, names)
}

/// The text with names replaced; a text without names stays unchanged.
fn word(text: &str, names: &Names) -> String {
    match filled(text, names) {
        Value::String(text) => text,
        other => other.to_string(),
    }
}

/// The parameters of a send.
fn sent(step: &Step, dialect: Dialect, task: Option<&str>, names: &Names) -> Value {
    let context = step.context.as_deref().map(|text| word(text, names));
    let new = word(step.new.as_deref().unwrap_or("$new"), names);
    let mut params = dialect.say(&Say {
        text: step.say.as_deref().unwrap_or("echo hi"),
        skill: None,
        task,
        new_task: &new,
        context: context.as_deref(),
        id: "m-1",
    });
    if let Some(message) = params.get_mut("message") {
        if let Some(parts) = &step.parts {
            let parts = match fill(parts, names) {
                Value::Array(parts) => parts.iter().map(|part| in_words(part, dialect)).collect(),
                other => other,
            };
            message[dialect.parts()] = parts;
        }
        merge(message, &step.message, names);
    }
    params
}

/// Converts a part of 1.0 to a dialect.
fn in_words(part: &Value, dialect: Dialect) -> Value {
    let (tag, bytes, uri) = match dialect {
        Dialect::Rpc10 | Dialect::Rest10 => return part.clone(),
        Dialect::Rest03 => (None, "fileWithBytes", "fileWithUri"),
        Dialect::Rpc03 => (Some("kind"), "bytes", "uri"),
        Dialect::Rpc01 | Dialect::Path01 => (Some("type"), "bytes", "uri"),
    };
    let Value::Object(members) = part else {
        return part.clone();
    };
    let mut words = Map::new();
    let mut file = Map::new();
    let mut kind = "text";
    for (name, value) in members {
        match name.as_str() {
            "raw" => drop(file.insert(bytes.to_owned(), value.clone())),
            "url" => drop(file.insert(uri.to_owned(), value.clone())),
            "filename" => drop(file.insert("name".to_owned(), value.clone())),
            "mediaType" => drop(file.insert("mimeType".to_owned(), value.clone())),
            "data" => {
                kind = "data";
                let arrays = dialect.is_v01() && value.is_array();
                let mut data = value.clone();
                // The older generations allow objects only (0.1 also arrays), so other
                // values are wrapped.
                if !(value.is_object() || arrays) {
                    data = json!({ "value": data });
                    words.insert("metadata".to_owned(), json!({"data_part_compat": true}));
                }
                if tag.is_none() {
                    data = json!({ "data": data });
                }
                words.insert("data".to_owned(), data);
            }
            _ => drop(words.insert(name.clone(), value.clone())),
        }
    }
    if file.contains_key(bytes) || file.contains_key(uri) {
        kind = "file";
        words.insert("file".to_owned(), file.into());
    }
    if let Some(tag) = tag {
        words.insert(tag.to_owned(), kind.into());
    }
    words.into()
}

/// Adds the options of a call where the dialect has them.
fn with_options(mut params: Value, step: &Step, op: Op, dialect: Dialect, names: &Names) -> Value {
    let configured = matches!(op, Op::Send | Op::Stream) && !dialect.is_v01();
    if let Some(length) = &step.history {
        if configured {
            params["configuration"]["historyLength"] = length.clone();
        } else {
            params["historyLength"] = length.clone();
        }
    }
    if configured && (step.wait.is_some() || step.history.is_some()) {
        let wait = step.wait.unwrap_or(true);
        let (name, value) = if dialect.is_v10() {
            ("returnImmediately", !wait)
        } else {
            ("blocking", wait)
        };
        params["configuration"][name] = value.into();
    }
    merge(&mut params, &step.params, names);
    params
}

/// Inserts members; the value `$none` removes a member.
fn merge(into: &mut Value, members: &Map<String, Value>, names: &Names) {
    let Value::Object(object) = into else { return };
    for (name, value) in members {
        if value == "$none" {
            object.remove(name);
        } else {
            object.insert(name.clone(), fill(value, names));
        }
    }
}

/// The request that the step spells out. Without a body it is a GET. The version header is
/// that of the dialect.
fn raw(step: &Step, dialect: Dialect, names: &Names) -> Request {
    let path = step.path.as_deref().unwrap_or("/");
    let request = match &step.body {
        None => Request::new("GET", path),
        Some(body) => Request::post(path, &fill(body, names)),
    };
    dialect.versioned(request)
}

/// Applies the parts of the step that change the HTTP request.
fn dressed(mut request: Request, step: &Step, names: &Names) -> Request {
    request = match step.body.as_ref().map(|body| fill(body, names)) {
        Some(Value::String(body)) => request.body(body),
        Some(body) => request.body(body.to_string()),
        None => request,
    };
    for (wanted, instead) in &step.replace {
        let body = String::from_utf8(request.body.clone()).unwrap();
        assert_eq!(body.matches(wanted).count(), 1, "{wanted} in {body}");
        request = request.body(body.replacen(wanted, instead, 1));
    }
    if let Some(path) = &step.path {
        request.target = in_text(path, names);
    }
    if let Some(prefix) = &step.prefix {
        request.target = format!("{prefix}{}", request.target);
    }
    if let Some(query) = &step.query {
        let mark = if request.target.contains('?') {
            '&'
        } else {
            '?'
        };
        request.target = format!("{}{mark}{}", request.target, in_text(query, names));
    }
    if let Some(method) = &step.method {
        request.method = METHODS.into_iter().find(|known| known == method).unwrap();
    }
    for (name, value) in &step.headers {
        request = match value {
            Some(value) => request.header(name, &in_text(value, names)),
            None => request.without(name),
        };
    }
    request
}

const METHODS: [&str; 7] = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];
