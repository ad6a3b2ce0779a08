use super::request::plain;
use crate::http::StageUrl;
use crate::http::base_url::BaseUrl;
use bytes::Bytes;
use http::Request;
use serde_json::{Map, Value, json};

/// An event of a REST API, as recorded behind a custom domain with the base path
/// `agents`; the client sent hostile headers.
fn rest_event(resource: &str, path: &str) -> Value {
    let headers = json!({
        "Host": "evil.example",
        "X-Forwarded-Host": "evil.example",
        "X-Forwarded-Prefix": "/evil",
        "X-Forwarded-Proto": "http",
        "publicUrl": "https://evil.example",
        "stageVariables": "{\"publicUrl\":\"https://evil.example\"}",
    });
    let many: Map<String, Value> = headers.as_object().unwrap().clone();
    let many: Map<String, Value> = many
        .into_iter()
        .map(|(name, it)| (name, json!([it])))
        .collect();
    json!({
        "resource": resource,
        "path": path,
        "httpMethod": "GET",
        "headers": headers,
        "multiValueHeaders": many,
        "queryStringParameters": {"publicUrl": "https://evil.example"},
        "multiValueQueryStringParameters": {"publicUrl": ["https://evil.example"]},
        "pathParameters": null,
        "stageVariables": {"publicUrl": "https://agent.example/agents"},
        "requestContext": {
            "resourceId": "abc123",
            "resourcePath": resource,
            "httpMethod": "GET",
            "path": path,
            "accountId": "111122223333",
            "protocol": "HTTP/1.1",
            "stage": "dev",
            "domainPrefix": "agent",
            "requestTimeEpoch": 1_780_000_000_000_i64,
            "requestId": "c6af9ac6-7b61-11e6-9a41-93e8deadbeef",
            "identity": {"sourceIp": "192.0.2.1", "userAgent": "t"},
            "domainName": "agent.example",
            "apiId": "1234567890"
        },
        "body": null,
        "isBase64Encoded": false
    })
}

fn opened(event: &Value) -> Request<Bytes> {
    plain(lambda_http::request::from_str(&event.to_string()).unwrap())
}

fn stage(request: &Request<Bytes>) -> Option<&str> {
    request.extensions().get().map(|StageUrl(url)| url.as_str())
}

#[test]
fn an_event_gives_its_path_below_the_api_and_the_url_of_its_stage() {
    for (resource, path, below) in [
        (
            "/tasks/{id}",
            "/agents/tasks/t%2F1:subscribe",
            "/tasks/t%2F1:subscribe",
        ),
        ("/tasks/{id}", "/tasks/t1", "/tasks/t1"),
        ("/{tenant}/tasks", "/agents/v2/acme/tasks", "/acme/tasks"),
        ("/", "/agents", "/"),
    ] {
        let request = opened(&rest_event(resource, path));
        assert_eq!(request.uri().path(), below, "{path}");
        assert_eq!(stage(&request), Some("https://agent.example/agents"));
    }
}

#[test]
fn an_event_without_stage_variables_has_no_url_whatever_a_client_sends() {
    let mut event = rest_event("/tasks", "/agents/tasks");
    for absent in [
        Value::Null,
        json!({}),
        json!({"other": "https://x.example"}),
    ] {
        event["stageVariables"] = absent;
        let request = opened(&event);
        assert_eq!(stage(&request), None);
        let known = request.extensions().get();
        assert_eq!(BaseUrl::new(None, None).of(known), None);
    }
}

#[test]
fn an_event_of_an_http_api_keeps_its_path() {
    let event = json!({
        "version": "2.0", "routeKey": "$default", "rawPath": "/agents/tasks", "rawQueryString": "a=b",
        "headers": {}, "isBase64Encoded": false,
        "requestContext": {
            "accountId": "1", "apiId": "a", "domainName": "localhost", "domainPrefix": "l",
            "requestId": "r", "routeKey": "$default", "stage": "$default",
            "time": "01/Jan/2026:00:00:00 +0000", "timeEpoch": 1,
            "http": { "method": "GET", "path": "/agents/tasks", "protocol": "HTTP/1.1",
                      "sourceIp": "127.0.0.1", "userAgent": "t" },
        },
    });
    let request = opened(&event);
    assert_eq!(request.uri().to_string(), "/agents/tasks?a=b");
    assert_eq!(stage(&request), None);
}
