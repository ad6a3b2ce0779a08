use super::GatewayEvent;
use crate::origin::{BaseUrl, StageUrl};
use a2a_lambda_rows::each_row;
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

/// An event of an HTTP API.
fn http_event(method: &str, path: &str, query: &str) -> Value {
    json!({
        "version": "2.0", "routeKey": "$default", "rawPath": path, "rawQueryString": query,
        "headers": {}, "isBase64Encoded": false,
        "requestContext": {
            "accountId": "1", "apiId": "a", "domainName": "localhost", "domainPrefix": "l",
            "requestId": "r", "routeKey": "$default", "stage": "$default",
            "time": "01/Jan/2026:00:00:00 +0000", "timeEpoch": 1,
            "http": { "method": method, "path": path, "protocol": "HTTP/1.1",
                      "sourceIp": "127.0.0.1", "userAgent": "t" },
        },
    })
}

fn read(event: &Value) -> GatewayEvent {
    GatewayEvent::read(event.to_string().as_bytes()).unwrap()
}

fn opened(event: &Value) -> Request<Bytes> {
    read(event).request
}

fn stage(request: &Request<Bytes>) -> Option<&str> {
    request.extensions().get().map(|StageUrl(url)| url.as_str())
}

#[test]
fn an_event_gives_its_path_below_the_api_and_the_url_of_its_stage() {
    let rows = [
        (
            "/tasks/{id}",
            "/agents/tasks/t%2F1:subscribe",
            "/tasks/t%2F1:subscribe",
        ),
        ("/tasks/{id}", "/tasks/t1", "/tasks/t1"),
        ("/{tenant}/tasks", "/agents/v2/acme/tasks", "/acme/tasks"),
        ("/", "/agents", "/"),
    ];
    each_row(rows, |(resource, path, below)| {
        let request = opened(&rest_event(resource, path));
        assert_eq!(request.uri().path(), below, "{path}");
        assert_eq!(stage(&request), Some("https://agent.example/agents"));
    });
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
    let event = http_event("GET", "/agents/tasks", "a=b");
    let request = opened(&event);
    assert_eq!(request.uri().to_string(), "/agents/tasks?a=b");
    assert_eq!(stage(&request), None);
}

#[test]
fn every_value_of_a_header_reaches_the_edge() {
    let mut event = rest_event("/tasks", "/tasks");
    event["multiValueHeaders"] = json!({"Idempotency-Key": ["a", "b"]});
    event["headers"] = json!({"Idempotency-Key": "b"});
    let request = opened(&event);
    let keys = request.headers().get_all("idempotency-key").iter();
    assert_eq!(keys.collect::<Vec<_>>(), ["a", "b"]);
    // Not every tool that makes events sends lists.
    for absent in [Value::Null, json!({})] {
        event["multiValueHeaders"] = absent;
        assert_eq!(opened(&event).headers()["idempotency-key"], "b");
    }
}

#[test]
fn the_identity_is_that_of_the_authorizer() {
    let context = json!({"tenant": "acme", "subject": "ann"});
    let mut rest = rest_event("/tasks", "/tasks");
    rest["requestContext"]["authorizer"] = context.clone();
    rest["multiValueHeaders"] = json!({"authorization": ["Bearer x"]});
    let identity = read(&rest).identity;
    assert_eq!(
        identity.authorizer.map(Value::Object),
        Some(context.clone())
    );
    assert_eq!(identity.authorization.as_deref(), Some("Bearer x"));

    let mut http = http_event("GET", "/tasks", "");
    assert_eq!(read(&http).identity.authorizer, None);
    http["requestContext"]["authorizer"] = json!({"lambda": context});
    let identity = read(&http).identity;
    assert_eq!(identity.authorizer.map(Value::Object), Some(context));
    // The context of another kind of authorizer is none of a Lambda authorizer.
    http["requestContext"]["authorizer"] = json!({"jwt": {"claims": {"tenant": "evil"}}});
    assert_eq!(read(&http).identity.authorizer, Some(Map::new()));
}

#[test]
fn a_hostile_header_or_path_is_read_and_not_a_panic() {
    let mut event = rest_event("/tasks/{id}", "/tasks/a b\"\u{e9}#c?d");
    event["multiValueHeaders"] = json!({"Host": ["a b:99999/%"], "X-Forwarded-Proto": ["::"]});
    let request = opened(&event);
    assert_eq!(request.uri().path(), "/tasks/a%20b%22%C3%A9%23c%3Fd");
    let query = "publicUrl=https%3A%2F%2Fevil.example";
    assert_eq!(request.uri().query(), Some(query));
    for path in ["/tasks/a#b", "/tasks/a?b"] {
        let request = opened(&http_event("GET", path, "c=d"));
        assert_eq!(request.uri().query(), Some("c=d"), "{path}");
        assert_ne!(request.uri().path(), "/tasks/a");
    }
    assert_eq!(opened(&http_event("GET", "", "")).uri(), "/");
    event["multiValueHeaders"] = json!({"Authorization": ["Bearer \u{e9}"]});
    // Not text, so no caller; it must not count as absent.
    assert_eq!(read(&event).identity.authorization.as_deref(), Some(""));
    for twice in [
        json!({"Authorization": ["Bearer a", "Bearer b"]}),
        json!({"Authorization": ["Bearer a"], "authorization": ["Bearer b"]}),
    ] {
        event["multiValueHeaders"] = twice;
        assert_eq!(read(&event).identity.authorization.as_deref(), Some(""));
    }
}

#[test]
fn what_is_no_event_is_an_error() {
    let mut cases = vec![json!({}), json!([]), json!({"requestContext": {}})];
    for (member, bad) in [
        ("multiValueHeaders", json!({"a b": ["c"]})),
        ("multiValueHeaders", json!({"a": ["b\nc"]})),
        ("multiValueHeaders", json!({"a": [1]})),
        ("requestContext", Value::Null),
    ] {
        let mut event = rest_event("/tasks", "/tasks");
        event[member] = bad;
        cases.push(event);
    }
    // The event of a load balancer has no method in its context.
    for method in [json!("a b"), Value::Null] {
        let mut event = rest_event("/tasks", "/tasks");
        event["requestContext"]["httpMethod"] = method;
        cases.push(event);
    }
    each_row(cases, |case| {
        let read = GatewayEvent::read(case.to_string().as_bytes());
        assert!(read.is_err_and(|error| error.is_data()), "{case}");
    });
}
