//! Events of API Gateway: payload format 1.0, with the context of an authorizer.

use bytes::Bytes;
use serde_json::{Value, json};

/// The URL of the agent in its card.
pub(crate) const URL: &str = "https://agent.example.com";

/// The text of a message.
pub(crate) const TEXT: &str = "How much are 19 and 23, please?";

/// The context of an authorizer.
pub(crate) fn authorizer() -> Value {
    json!({"principalId": "ann", "tenant": "acme", "subject": "ann", "integrationLatency": 1})
}

/// The event of a request.
pub(crate) fn event(method: &str, resource: &str, path: &str, body: Option<&Value>) -> Bytes {
    let headers = [
        ("Host", "agent.example.com"),
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
        ("A2A-Version", "1.0"),
        ("User-Agent", "bench/1.0"),
        ("X-Forwarded-For", "203.0.113.9"),
        ("X-Forwarded-Proto", "https"),
    ];
    let single: serde_json::Map<String, Value> = headers
        .iter()
        .map(|(name, value)| ((*name).to_owned(), json!(value)))
        .collect();
    let several: serde_json::Map<String, Value> = headers
        .iter()
        .map(|(name, value)| ((*name).to_owned(), json!([value])))
        .collect();
    let event = json!({
        "resource": resource,
        "path": path,
        "httpMethod": method,
        "headers": single,
        "multiValueHeaders": several,
        "queryStringParameters": null,
        "multiValueQueryStringParameters": null,
        "pathParameters": null,
        "stageVariables": null,
        "requestContext": {
            "accountId": "123456789012",
            "apiId": "abcdef1234",
            "authorizer": authorizer(),
            "domainName": "agent.example.com",
            "extendedRequestId": "f7a2c0a1",
            "httpMethod": method,
            "identity": {"sourceIp": "203.0.113.9", "userAgent": "bench/1.0"},
            "path": format!("/prod{path}"),
            "protocol": "HTTP/1.1",
            "requestId": "c6af9ac6-7b61-11e6-9a41-93e8deadbeef",
            "requestTime": "24/Nov/2026:12:00:00 +0000",
            "requestTimeEpoch": 1_795_521_600_000_i64,
            "resourceId": "abc123",
            "resourcePath": resource,
            "stage": "prod",
        },
        "body": body.map(Value::to_string),
        "isBase64Encoded": false,
    });
    Bytes::from(event.to_string())
}

/// A message of one sentence. The skill `add` of the reference agent gets it; the agent of
/// the streams has one skill, which has another id.
pub(crate) fn message(id: &str, text: &str) -> Value {
    json!({"messageId": id, "role": "ROLE_USER", "parts": [{"text": text}],
        "metadata": {"a2a-lambda/skillId": "add"}})
}

fn plain(id: &str, text: &str) -> Value {
    json!({"messageId": id, "role": "ROLE_USER", "parts": [{"text": text}]})
}

/// A send into one context.
pub(crate) fn send_in_context(id: &str) -> Bytes {
    let mut message = message(id, TEXT);
    message["contextId"] = json!("bench");
    let body = json!({"message": message});
    event("POST", "/message:send", "/message:send", Some(&body))
}

pub(crate) fn send(id: &str, text: &str) -> Bytes {
    let body = json!({"message": message(id, text)});
    event("POST", "/message:send", "/message:send", Some(&body))
}

/// An answer in a task.
pub(crate) fn answer(id: &str, task: &str, text: &str) -> Bytes {
    let mut message = plain(id, text);
    message["taskId"] = json!(task);
    event(
        "POST",
        "/message:send",
        "/message:send",
        Some(&json!({"message": message})),
    )
}

/// A send to the agent of the streams.
pub(crate) fn send_plain(id: &str, text: &str) -> Bytes {
    let body = json!({"message": plain(id, text)});
    event("POST", "/message:send", "/message:send", Some(&body))
}

pub(crate) fn stream(id: &str, text: &str) -> Bytes {
    let body = json!({"message": plain(id, text)});
    event("POST", "/message:stream", "/message:stream", Some(&body))
}

/// The same send as a call of JSON-RPC.
pub(crate) fn send_rpc(id: &str, text: &str) -> Bytes {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message(id, text)}});
    event("POST", "/", "/", Some(&body))
}

pub(crate) fn get_rpc(task: &str) -> Bytes {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": task}});
    event("POST", "/", "/", Some(&body))
}

pub(crate) fn get(task: &str) -> Bytes {
    event("GET", "/tasks/{id}", &format!("/tasks/{task}"), None)
}

pub(crate) fn list() -> Bytes {
    event("GET", "/tasks", "/tasks", None)
}

pub(crate) fn card() -> Bytes {
    let path = "/.well-known/agent-card.json";
    event("GET", path, path, None)
}

/// The message that a floor program stores: as long as ours.
pub(crate) fn put(id: &str, text: &str) -> Bytes {
    let body = json!({"id": id, "message": message(id, text)});
    event("POST", "/message:send", "/message:send", Some(&body))
}
