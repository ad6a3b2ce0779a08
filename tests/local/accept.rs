//! Several lines of the header `Accept`: on a socket, and in the events of API Gateway.

use crate::agent::{Folder, Running};
use crate::calls::Call;
use a2a_lambda::http::Function;
use a2a_lambda::serve::GatewayEvent;
use a2a_lambda_rows::each_row_async;
use a2a_lambda_tests::world::{World, behind_a_gateway};
use http::header::CONTENT_TYPE;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};

/// A call that both refuse: a message without parts.
fn body() -> Value {
    json!({"jsonrpc": "2.0", "id": 7, "method": "message/stream", "params": {}})
}

/// The event of a REST API. `headers` has only the last of several lines.
fn rest_event(lines: &[&str]) -> Value {
    let json = "application/json";
    json!({
        "resource": "/", "path": "/", "httpMethod": "POST",
        "headers": {"Content-Type": json, "Accept": lines.last()},
        "multiValueHeaders": {"Content-Type": [json], "Accept": lines},
        "requestContext": {
            "resourcePath": "/", "httpMethod": "POST", "stage": "dev",
            "authorizer": {"tenant": "acme", "subject": "ann"},
        },
        "body": body().to_string(), "isBase64Encoded": false,
    })
}

/// The event of an HTTP API, which joins the lines.
fn http_event(lines: &[&str]) -> Value {
    json!({
        "version": "2.0", "rawPath": "/", "rawQueryString": "",
        "headers": {"content-type": "application/json", "accept": lines.join(",")},
        "requestContext": {
            "http": {"method": "POST", "path": "/"}, "stage": "$default",
            "authorizer": {"lambda": {"tenant": "acme", "subject": "ann"}},
        },
        "body": body().to_string(), "isBase64Encoded": false,
    })
}

#[tokio::test]
async fn three_accept_lines_mean_the_same_to_server_and_function() {
    let folder = Folder::new();
    let agent = Running::agent(&folder, &["--memory"]).await;
    let world = World::with(behind_a_gateway).unwrap();
    let (events, json) = ("text/event-stream", "application/json");
    let rows = [
        (["text/html", "TEXT/EVENT-STREAM;q=0.5", "*/*"], events),
        (["*/*", "text/html", events], events),
        ([events, json, "text/html"], json),
        ([json, "text/html", events], json),
    ];
    each_row_async(rows, async |(lines, expected)| {
        let mut call = Call::get(&format!("{}/", agent.base())).body(&body());
        call = call.without("A2A-Version").header("Content-Type", json);
        for line in lines {
            call = call.header("Accept", line);
        }
        let (head, served) = call.response().await.into_parts();
        let served = served.collect().await.unwrap().to_bytes();
        assert_eq!(head.headers[CONTENT_TYPE], expected, "{lines:?}");
        for (api, event) in [("REST", rest_event(&lines)), ("HTTP", http_event(&lines))] {
            let event = GatewayEvent::read(event.to_string().as_bytes()).unwrap();
            let edge = world.edge(Function::Rpc);
            let answer = edge.handle(event.request, event.identity, None).await;
            let (function, body) = answer.into_parts();
            let shown = format!("{lines:?} {api}");
            assert_eq!(function.status, head.status, "{shown}");
            assert_eq!(function.headers[CONTENT_TYPE], expected, "{shown}");
            assert_eq!(body.collect().await.unwrap().to_bytes(), served, "{shown}");
        }
    })
    .await;
}
