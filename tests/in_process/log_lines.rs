//! What an operator reads in the log: one line for each call and each refused call, which says
//! how its turn ended, and one for each turn that no such line contains.

use a2a_lambda::auth::{AuthMode, Identity};
use a2a_lambda::http::{Function, InvocationInfo, MAX_BODY};
use a2a_lambda_rows::each_row_async;
use a2a_lambda_tests::dialect::{Dialect, Op, Say};
use a2a_lambda_tests::log_lines::LogLines;
use a2a_lambda_tests::per_dialect;
use a2a_lambda_tests::world::{Request, World, behind_a_gateway};
use bytes::Bytes;
use futures::FutureExt as _;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use std::time::Duration;

per_dialect! {
    paused ALL:
    each_call_is_one_line_with_its_fields
}

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const TRACEPARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

fn generation(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Rpc10 | Dialect::Rest10 => "1.0",
        Dialect::Rpc03 | Dialect::Rest03 => "0.3",
        Dialect::Rpc01 | Dialect::Path01 => "0.1",
    }
}

/// The only line of a call.
fn only(lines: &LogLines, message: &str) -> Value {
    let found = lines.with_message(message);
    assert_eq!(found.len(), 1, "{}", lines.text());
    found.into_iter().next().unwrap()
}

async fn each_call_is_one_line_with_its_fields(dialect: Dialect) {
    let world = World::new().unwrap();
    let lines = LogLines::default();
    let _guard = lines.capture();
    for (request, method) in [
        (dialect.send(&Say::to("echo", "hi")), "SendMessage"),
        (
            dialect.stream(&Say::to("echo", "hi").under("order:2")),
            "SendStreamingMessage",
        ),
    ] {
        lines.clear();
        let request = request.from("acme:ann").header("traceparent", TRACEPARENT);
        let reply = world.call(&request).await;
        let line = only(&lines, "call");
        assert_eq!(line["target"], "a2a_lambda::call", "{line}");
        assert_eq!(line["level"], "INFO", "{line}");
        assert_eq!(line["a2a.method"], method, "{line}");
        assert_eq!(line["a2a.generation"], generation(dialect), "{line}");
        assert_eq!(line["a2a.tenant"], "acme", "{line}");
        assert_eq!(line["a2a.skill"], "echo", "{line}");
        assert_eq!(line["http.response.status_code"], reply.status, "{line}");
        assert!(line["ms"].is_u64(), "{line}");
        assert_eq!(line["trace_id"], TRACE, "{line}");
        assert!(reply.text().contains(line["a2a.task"].as_str().unwrap()));
        assert!(line.get("a2a.error").is_none(), "{line}");
        // The memory store has no units.
        assert!(line.get("units.read").is_none(), "{line}");
        // It says how the turn ended, so the turn has no line of its own.
        assert_eq!(line["a2a.state"], "completed", "{line}");
        assert_eq!(line["a2a.attempt"], 1, "{line}");
        assert!(line["a2a.turn_ms"].is_u64(), "{line}");
        assert!(lines.with_message("turn").is_empty());
    }
    lines.clear();
    let unknown = dialect.of_task(Op::Get, "no-such-task").from("acme:ann");
    let reply = world.call(&unknown).await;
    let line = only(&lines, "refused");
    assert_eq!(line["a2a.method"], "GetTask", "{line}");
    assert_eq!(line["a2a.error"], "TASK_NOT_FOUND", "{line}");
    assert_eq!(line["a2a.task"], "no-such-task", "{line}");
    assert_eq!(line["http.response.status_code"], reply.status, "{line}");
    assert!(line.get("a2a.attempt").is_none(), "{line}");
    assert!(lines.with_message("call").is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_line_of_a_call_names_the_error_code_of_its_failed_task() {
    let world = World::new().unwrap();
    let lines = LogLines::default();
    let _guard = lines.capture();
    world
        .call(&Dialect::Rest10.send(&Say::to("refused", "hi")))
        .await;
    let line = only(&lines, "call");
    assert_eq!(line["a2a.state"], "failed", "{line}");
    assert_eq!(line["a2a.task_error"], "OUT_OF_STOCK", "{line}");
}

#[tokio::test(start_paused = true)]
async fn a_turn_whose_client_has_left_has_a_line_of_its_own() {
    let world = World::new().unwrap();
    let lines = LogLines::default();
    let _guard = lines.capture();
    let request = Dialect::Rest10.stream(&Say::to("slow", "now"));
    drop(world.open(&request).await);
    let line = only(&lines, "call");
    assert!(line.get("a2a.attempt").is_none(), "{line}");
    // This client does not wait for the first frame, so its call has no line.
    assert!(world.open(&request).now_or_never().is_none());
    world.gate.open();
    tokio::time::sleep(Duration::from_secs(1)).await;
    only(&lines, "call");
    let turns = lines.with_message("turn");
    assert_eq!(turns.len(), 2, "{}", lines.text());
    for turn in turns {
        assert_eq!(turn["a2a.state"], "completed", "{turn}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_line_of_a_keyed_call_names_the_task_of_its_reply() {
    let world = World::new().unwrap();
    let lines = LogLines::default();
    let _guard = lines.capture();
    let keyed = Dialect::Rest10.send(&Say::to("greet", "hi"));
    world.call(&keyed.header("idempotency-key", "k1")).await;
    let line = only(&lines, "call");
    assert_eq!(line["a2a.state"], "completed", "{line}");
    assert!(line["a2a.task"].is_string(), "{line}");
}

#[tokio::test(start_paused = true)]
async fn every_entry_of_a_batch_has_its_own_line() {
    let world = World::new().unwrap();
    let lines = LogLines::default();
    let _guard = lines.capture();
    let entry = |id: u64, task: &str| json!({"jsonrpc": "2.0", "id": id, "method": "tasks/get", "params": {"id": task}});
    let batch = json!([entry(1, "one"), entry(2, "two"), {"jsonrpc": "2.0", "id": 3, "method": "nonsense"}]);
    world.call(&Request::post("/", &batch)).await;
    let refused = lines.with_message("refused");
    let reasons: Vec<&Value> = refused.iter().map(|line| &line["a2a.error"]).collect();
    assert_eq!(
        reasons,
        ["TASK_NOT_FOUND", "TASK_NOT_FOUND", "METHOD_NOT_FOUND"]
    );
    assert_eq!(refused[1]["a2a.task"], "two");
}

#[tokio::test(start_paused = true)]
async fn every_refusal_is_a_line_with_its_reason() {
    let gateway = World::with(behind_a_gateway).unwrap();
    let open = World::new().unwrap();
    let lines = LogLines::default();
    let _guard = lines.capture();
    let big = "x".repeat(MAX_BODY + 1);
    let json = |body: &str| {
        Request::new("POST", "/")
            .header("content-type", "application/json")
            .body(body)
    };
    let rows = [
        (
            &gateway,
            Dialect::Rest10.send(&Say::to("echo", "hi")),
            "UNAUTHENTICATED",
        ),
        (
            &open,
            Request::new("GET", "/no/such/path"),
            "METHOD_NOT_FOUND",
        ),
        (&open, json("{"), "PARSE_ERROR"),
        (&open, json(&big), "PAYLOAD_TOO_LARGE"),
        (
            &open,
            Request::new("POST", "/").body("x"),
            "CONTENT_TYPE_NOT_SUPPORTED",
        ),
    ];
    each_row_async(rows, async |(world, request, reason)| {
        lines.clear();
        let reply = world.call(&request).await;
        let line = only(&lines, "refused");
        assert_eq!(line["a2a.error"], reason, "{line}");
        assert_eq!(line["http.response.status_code"], reply.status, "{line}");
        assert!(line.get("a2a.tenant").is_none(), "{line}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_refusals_is_not_a_flood_of_lines() {
    let world = World::new().unwrap();
    let lines = LogLines::default();
    let _guard = lines.capture();
    let request = Dialect::Rest10.of_task(Op::Get, "nothing").from("acme:ann");
    for _ in 0..100 {
        world.call(&request).await;
    }
    assert_eq!(lines.with_message("refused").len(), 10);
    // The other 90 are counted, each as itself. The log of a process does not show them.
    let counted = lines.with_message("left out");
    assert_eq!(counted.len(), 90);
    for event in counted {
        assert_eq!(event["target"], "a2a_lambda::left_out");
        assert_eq!(event["a2a.error"], "TASK_NOT_FOUND");
    }
    lines.clear();
    tokio::time::advance(std::time::Duration::from_secs(1)).await;
    world.call(&request).await;
    assert_eq!(only(&lines, "refused")["a2a.left_out"], 90);
}

#[tokio::test(start_paused = true)]
async fn a_newer_protocol_version_warns_once_a_minute() {
    let world = World::new().unwrap();
    let lines = LogLines::default();
    let _guard = lines.capture();
    let request = Dialect::Rest10
        .send(&Say::to("echo", "hi"))
        .header("a2a-version", "9.9");
    for _ in 0..5 {
        world.call(&request).await;
    }
    let warnings = |text: String| text.matches("newer than this agent knows").count();
    assert_eq!(warnings(lines.text()), 1);
    tokio::time::advance(std::time::Duration::from_secs(60)).await;
    world.call(&request).await;
    assert_eq!(warnings(lines.text()), 2);
}

#[tokio::test(start_paused = true)]
async fn a_streamed_turn_logs_the_request_id_and_its_task() {
    let world = World::new().unwrap();
    let lines = LogLines::default();
    let _guard = lines.capture();
    let asked = Dialect::Rest10.stream(&Say::to("broken", "hi"));
    let mut request = http::Request::builder().method("POST").uri(asked.target);
    for (name, value) in &asked.headers {
        request = request.header(name, value);
    }
    let mut request = request.body(Bytes::from(asked.body)).unwrap();
    request.extensions_mut().insert(InvocationInfo {
        request_id: Some("request-7".to_owned()),
        x_ray: Some(
            "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1".to_owned(),
        ),
    });
    let edge = world.edge(Function::TasksStream);
    let response = edge.handle(request, Identity::default(), None).await;
    assert!(lines.with_message("call").is_empty(), "the stream is open");
    let _body = response.into_body().collect().await;
    let line = only(&lines, "call");
    assert_eq!(line["aws.request_id"], "request-7", "{line}");
    let trace = "5759e988bd862e3fe1be46a994272793";
    assert_eq!(line["trace_id"], trace, "{line}");
    // Its own fields say more than the spans.
    assert_eq!(line.get("spans"), None, "{line}");
    // What the turn logs is inside the spans of the call and of the turn.
    let text = lines.text();
    let failed = text.lines().find(|line| line.contains("failed")).unwrap();
    let failed: Value = serde_json::from_str(failed).unwrap();
    let spans = failed["spans"].as_array().unwrap();
    assert_eq!(spans[0]["trace_id"], trace, "{failed}");
    assert_eq!(spans[1]["a2a.skill"], "broken", "{failed}");
    assert_eq!(spans[1]["a2a.task"], line["a2a.task"], "{failed}");
    assert_eq!(failed.to_string().matches(trace).count(), 1, "{failed}");
}

#[tokio::test(start_paused = true)]
async fn an_invalid_traceparent_is_replaced() {
    let world = World::new().unwrap();
    let lines = LogLines::default();
    let _guard = lines.capture();
    let request = Dialect::Rest10.send(&Say::to("echo", "hi"));
    let reply = world.call(&request.header("traceparent", "nonsense")).await;
    assert_eq!(reply.status, 200);
    let line = only(&lines, "call");
    assert_eq!(line["trace_id"].as_str().unwrap().len(), 32, "{line}");
}

#[tokio::test(start_paused = true)]
async fn a_request_of_a_foreign_page_is_a_line() {
    let world = World::with(|settings| {
        settings.auth = AuthMode::Dev;
        settings.hosts = a2a_lambda::origin::Hosts::local("http://127.0.0.1:8080");
    })
    .unwrap();
    let lines = LogLines::default();
    let _guard = lines.capture();
    let request = Dialect::Rest10.send(&Say::to("echo", "hi"));
    world
        .call(&request.header("origin", "https://evil.example"))
        .await;
    let line = only(&lines, "refused");
    assert_eq!(line["a2a.error"], "FOREIGN_PAGE", "{line}");
    assert_eq!(line["http.response.status_code"], 403, "{line}");
}
