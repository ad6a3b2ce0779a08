//! Webhooks on this machine, called by the running agent.

use crate::agent::{Folder, Running};
use crate::calls::Call;
use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Attribute;
use opentelemetry_proto::tonic::trace::v1::Span;
use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;
use tokio::sync::Notify;

/// A delivery that a webhook accepted.
#[derive(Debug, Clone)]
struct Got {
    path: String,
    headers: HeaderMap,
    body: Value,
}

impl Got {
    fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
    }

    /// The state in a 1.0 event; empty for an artifact.
    fn state(&self) -> &str {
        let state = &self.body["statusUpdate"]["status"]["state"];
        state.as_str().unwrap_or_default()
    }
}

/// A server with any number of webhooks. It accepts every delivery, unless
/// answers are planned for the path. A planned answer of 0 never comes.
#[derive(Default)]
struct Hooks {
    answers: Mutex<BTreeMap<String, VecDeque<u16>>>,
    got: Mutex<Vec<Got>>,
    changed: Notify,
}

impl Hooks {
    /// Starts the server. Returns it with its base URL.
    async fn start() -> (Arc<Self>, String) {
        let hooks = Arc::new(Self::default());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let serving = hooks.clone();
        tokio::spawn(async move {
            loop {
                let (socket, _) = listener.accept().await.unwrap();
                let hooks = serving.clone();
                tokio::spawn(async move {
                    let service = service_fn(move |request| {
                        let hooks = hooks.clone();
                        async move { Ok::<_, Infallible>(hooks.answer(request).await) }
                    });
                    let connection = hyper::server::conn::http1::Builder::new();
                    let socket = TokioIo::new(socket);
                    // The agent may close the connection; the server ignores that.
                    let _gone = connection.serve_connection(socket, service).await;
                });
            }
        });
        (hooks, base)
    }

    fn plan(&self, path: &str, answers: &[u16]) {
        let answers = answers.iter().copied().collect();
        self.answers
            .lock()
            .unwrap()
            .insert(path.to_owned(), answers);
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let (parts, body) = request.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        let path = parts.uri.path().to_owned();
        let planned = {
            let mut answers = self.answers.lock().unwrap();
            answers.get_mut(&path).and_then(VecDeque::pop_front)
        };
        let got = Got {
            path,
            headers: parts.headers,
            body: serde_json::from_slice(&bytes).unwrap_or_default(),
        };
        if planned == Some(0) {
            std::future::pending::<()>().await;
        }
        let status = planned.unwrap_or(200);
        if status == 200 {
            self.got.lock().unwrap().push(got);
            self.changed.notify_waiters();
        }
        let body = Full::new(Bytes::from_static(b"ok"));
        Response::builder().status(status).body(body).unwrap()
    }

    /// The deliveries accepted at `path` so far.
    fn at(&self, path: &str) -> Vec<Got> {
        let got = self.got.lock().unwrap();
        got.iter().filter(|got| got.path == path).cloned().collect()
    }

    /// Waits until `enough` holds for the deliveries accepted at `path`.
    async fn until(&self, path: &str, enough: impl Fn(&[Got]) -> bool) -> Vec<Got> {
        loop {
            let changed = self.changed.notified();
            let got = self.at(path);
            if enough(&got) {
                return got;
            }
            changed.await;
        }
    }
}

fn completed(got: &[Got]) -> bool {
    got.iter().any(|got| got.state() == "TASK_STATE_COMPLETED")
}

/// Asserts that the delivery ids, which are event ids, are in order.
fn ordered(got: &[Got]) -> Vec<(u64, u64)> {
    let ids: Vec<(u64, u64)> = got
        .iter()
        .map(|got| {
            let (version, n) = got.header("x-a2a-delivery-id").split_once('.').unwrap();
            (version.parse().unwrap(), n.parse().unwrap())
        })
        .collect();
    assert!(ids.is_sorted(), "{ids:?}");
    ids
}

async fn agent(folder: &Folder) -> Running {
    Running::agent(folder, &["--agent", "conformance"]).await
}

/// Sends `text` with a push config, without waiting. Returns the task's id.
async fn begun(base: &str, text: &str, hook: &str) -> String {
    begun_with(base, text, hook, "").await
}

/// The same with extensions.
async fn begun_with(base: &str, text: &str, hook: &str, extensions: &str) -> String {
    let message = json!({"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": text}]});
    let config = json!({
        "url": hook,
        "token": "a-token",
        "authentication": {"scheme": "Bearer", "credentials": "some-credentials"},
    });
    let body = json!({
        "message": message,
        "configuration": {"returnImmediately": true, "taskPushNotificationConfig": config},
    });
    let call = Call::say(base, text).body(&body);
    let call = call.header("A2A-Extensions", extensions);
    let task = call.json().await["task"].clone();
    task["id"]
        .as_str()
        .unwrap_or_else(|| panic!("{task}"))
        .to_owned()
}

#[tokio::test]
async fn a_webhook_that_fails_twice_still_gets_every_event_in_order() {
    let folder = Folder::new();
    let agent = agent(&folder).await;
    let (hooks, url) = Hooks::start().await;
    hooks.plan("/hook", &[500, 302]);
    let id = begun(agent.base(), "chunks 5 20", &format!("{url}/hook")).await;
    let got = hooks.until("/hook", completed).await;
    let mut ids = ordered(&got);
    let count = ids.len();
    ids.dedup();
    assert_eq!(ids.len(), count, "each event is delivered once");
    let chunks = got
        .iter()
        .filter(|got| got.body["artifactUpdate"].is_object());
    assert_eq!(chunks.count(), 5);
    for got in &got {
        assert_eq!(got.header("authorization"), "Bearer some-credentials");
        assert_eq!(got.header("x-a2a-notification-token"), "a-token");
        assert_eq!(got.header("content-type"), "application/a2a+json");
        assert_eq!(got.header("x-a2a-signature"), "");
        let inner = got.body.as_object().unwrap().values().next().unwrap();
        assert_eq!(inner["taskId"], id.as_str(), "{}", got.body);
    }
}

#[tokio::test]
async fn signed_deliveries_show_a_time_and_a_signature_and_never_the_token() {
    let folder = Folder::new();
    let agent = agent(&folder).await;
    let (hooks, url) = Hooks::start().await;
    let extension = "urn:a2a-lambda:ext:webhook-signatures:1";
    let hook = format!("{url}/signed");
    let id = begun_with(agent.base(), "chunks 2 20", &hook, extension).await;
    let got = hooks.until("/signed", completed).await;
    let mut signatures = std::collections::BTreeSet::new();
    for got in &got {
        assert_eq!(got.header("x-a2a-task-id"), id);
        assert!(got.header("x-a2a-timestamp").parse::<u64>().is_ok());
        let signature = got.header("x-a2a-signature");
        assert!(signature.starts_with("v1=") && signature.len() == 67);
        signatures.insert(signature);
        let shown = format!("{:?} {}", got.headers, got.body);
        assert!(!shown.contains("a-token"), "{shown}");
    }
    assert_eq!(
        signatures.len(),
        got.len(),
        "each signature is of its event"
    );
}

#[tokio::test]
async fn a_hanging_webhook_does_not_delay_others() {
    let folder = Folder::new();
    let agent = agent(&folder).await;
    let (hooks, url) = Hooks::start().await;
    hooks.plan("/slow", &[0, 0, 0, 0]);
    let id = begun(agent.base(), "wait 2", &format!("{url}/slow")).await;
    let place = format!("{}/tasks/{id}/pushNotificationConfigs", agent.base());
    let quick = json!({"taskId": id, "url": format!("{url}/quick")});
    let created = Call::get(&place)
        .header("Content-Type", "application/json")
        .body(&quick)
        .json()
        .await;
    assert_eq!(created["taskId"], id.as_str(), "{created}");
    begun(agent.base(), "echo hi", &format!("{url}/other")).await;
    for path in ["/quick", "/other"] {
        ordered(&hooks.until(path, completed).await);
    }
    assert!(hooks.at("/slow").is_empty());
}

#[tokio::test]
async fn a_push_config_made_while_the_turn_ends_misses_no_later_event() {
    let folder = Folder::new();
    let agent = agent(&folder).await;
    let (hooks, url) = Hooks::start().await;
    for round in 0..6 {
        let path = format!("/late-{round}");
        // In each round the registration meets the turn at another point.
        let first = begun(agent.base(), "chunks 4 10", &format!("{url}/first-{round}")).await;
        for _ in 0..round {
            Call::get(&format!("{}/tasks/{first}", agent.base()))
                .json()
                .await;
        }
        let place = format!("{}/tasks/{first}/pushNotificationConfigs", agent.base());
        let late = json!({"taskId": first, "url": format!("{url}{path}")});
        let created = Call::get(&place)
            .header("Content-Type", "application/json")
            .body(&late)
            .json()
            .await;
        assert_eq!(created["taskId"], first.as_str(), "{created}");
        let all = ordered(&hooks.until(&format!("/first-{round}"), completed).await);
        // It must also get every event after the first one that it got.
        let state = Call::get(&format!("{}/tasks/{first}", agent.base()));
        assert_eq!(
            state.json().await["status"]["state"],
            "TASK_STATE_COMPLETED"
        );
        let sent = hooks.at(&path);
        if let Some(from) = ordered(&sent).first().copied() {
            let late = ordered(&hooks.until(&path, completed).await);
            let rest: Vec<_> = all.iter().copied().filter(|id| *id >= from).collect();
            assert_eq!(late, rest);
        }
    }
}

#[tokio::test]
async fn push_deliveries_continue_after_a_kill() {
    let folder = Folder::new();
    let first = agent(&folder).await;
    let (hooks, url) = Hooks::start().await;
    // The webhook refuses the last event until the process is killed.
    hooks.plan("/hook", &[200, 500, 500, 500, 500, 500, 500]);
    let id = begun(first.base(), "echo hi", &format!("{url}/hook")).await;
    let before = hooks.until("/hook", |got| !got.is_empty()).await;
    assert!(!completed(&before));
    first.kill().await;
    hooks.plan("/hook", &[]);
    let second = agent(&folder).await;
    let got = hooks.until("/hook", completed).await;
    ordered(&got);
    let task = Call::get(&format!("{}/tasks/{id}", second.base()))
        .json()
        .await;
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED", "{task}");
}

#[tokio::test]
async fn only_the_conformance_agent_calls_webhooks_on_this_machine() {
    let folder = Folder::new();
    let agent = Running::agent(&folder, &["--memory"]).await;
    let message = json!({"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": "hi"}]});
    let config = json!({"url": "http://127.0.0.1:9/hook"});
    let body = json!({
        "message": message,
        "configuration": {"taskPushNotificationConfig": config},
    });
    let (status, text) = Call::say(agent.base(), "hi").body(&body).send().await;
    assert_eq!(status, 400, "{text}");
    let refused: Value = serde_json::from_str(&text).unwrap();
    let field = &refused["error"]["details"][0]["fieldViolations"][0]["field"];
    assert_eq!(
        field, "configuration.taskPushNotificationConfig.url",
        "{refused}"
    );
}

/// The spans that a collector has, read as OpenTelemetry defines them.
fn spans_of(got: &[Got]) -> Vec<Span> {
    let requests = got.iter().map(|got| {
        assert_eq!(got.header("content-type"), "application/json");
        serde_json::from_value::<ExportTraceServiceRequest>(got.body.clone()).unwrap()
    });
    let resources = requests.flat_map(|request| request.resource_spans);
    let scopes = resources.flat_map(|resource| resource.scope_spans);
    scopes.flat_map(|scope| scope.spans).collect()
}

fn attribute(span: &Span, name: &str) -> String {
    let value = span.attributes.iter().find(|it| it.key == name);
    match value.and_then(|it| it.value.clone()?.value) {
        Some(Attribute::StringValue(text)) => text,
        Some(Attribute::IntValue(number)) => number.to_string(),
        _ => String::new(),
    }
}

#[tokio::test]
async fn a_call_its_worker_and_its_webhook_are_one_trace_at_a_collector() {
    let (hooks, base) = Hooks::start().await;
    let folder = Folder::new();
    let arguments = ["--memory", "--agent", "conformance", "--otlp", &base];
    let agent = Running::agent(&folder, &arguments).await;
    let body = json!({
        "message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "steps 2 10"}]},
        "configuration": {
            "returnImmediately": true,
            "taskPushNotificationConfig": {"url": format!("{base}/hook")},
        },
    });
    let (trace, caller) = ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7");
    let call = Call::say(agent.base(), "").body(&body);
    let call = call.header("traceparent", &format!("00-{trace}-{caller}-01"));
    let sent = call.json().await;
    let got = hooks.until("/hook", completed).await;
    let hex = |id: &[u8]| {
        id.iter()
            .map(|byte| format!("{byte:02x}"))
            .collect::<String>()
    };
    // The webhook was called within a span that the collector gets.
    let last = got.last().unwrap().header("traceparent");
    let is_its = |span: &Span| last == format!("00-{trace}-{}-01", hex(&span.span_id));
    let is_whole = |got: &[Got]| {
        let spans = spans_of(got);
        let has_turn = spans.iter().any(|it| it.name.starts_with("invoke_agent "));
        has_turn && spans.iter().any(is_its)
    };
    let spans = spans_of(&hooks.until("/v1/traces", is_whole).await);
    assert!(
        spans.iter().all(|span| hex(&span.trace_id) == trace),
        "{spans:?}"
    );
    // The worker continues the call of the client, its steps and the webhook the worker.
    let turn = spans
        .iter()
        .find(|it| it.name.starts_with("invoke_agent "))
        .unwrap();
    assert_eq!(hex(&turn.parent_span_id), caller);
    assert_eq!(attribute(turn, "gen_ai.operation.name"), "invoke_agent");
    assert_eq!(
        attribute(turn, "a2a.task"),
        sent["task"]["id"].as_str().unwrap()
    );
    let context = sent["task"]["contextId"].as_str().unwrap();
    assert_eq!(attribute(turn, "gen_ai.conversation.id"), context);
    for name in ["step ", "push"] {
        let below = spans.iter().find(|it| it.name.starts_with(name)).unwrap();
        assert_eq!(below.parent_span_id, turn.span_id, "{below:?}");
        assert!(below.start_time_unix_nano <= below.end_time_unix_nano);
    }
    let text = hooks
        .at("/v1/traces")
        .iter()
        .map(|got| got.body.to_string())
        .collect::<String>();
    assert!(!text.contains("content"), "a span has no content: {text}");
}

#[tokio::test]
async fn an_absent_collector_slows_no_call_and_is_one_warning() {
    let folder = Folder::new();
    let log = std::fs::File::create(folder.path().join("log")).unwrap();
    let arguments = ["--port", "0", "--memory", "--agent", "conformance"];
    let otlp = ["--otlp", "http://127.0.0.1:9"];
    let agent = Running::logging_to(log, &folder, &[&arguments[..], &otlp].concat()).await;
    for n in 1..=5 {
        let answer = Call::say(agent.base(), &format!("steps {n} 1"))
            .json()
            .await;
        assert_eq!(answer["task"]["status"]["state"], "TASK_STATE_COMPLETED");
    }
    let text = || std::fs::read_to_string(folder.path().join("log")).unwrap();
    while !text().contains("spans are lost") {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let answer = Call::say(agent.base(), "steps 1 1").json().await;
    assert_eq!(answer["task"]["status"]["state"], "TASK_STATE_COMPLETED");
    assert_eq!(text().matches("spans are lost").count(), 1, "{}", text());
}

#[tokio::test]
async fn a_failed_delivery_has_the_trace_of_its_call_in_its_line_and_its_row() {
    let folder = Folder::new();
    let log = std::fs::File::create(folder.path().join("log")).unwrap();
    let arguments = ["--port", "0", "--data", "data", "--agent", "conformance"];
    let agent = Running::logging_to(log, &folder, &arguments).await;
    // Nothing listens there.
    let hook = json!({"url": "http://127.0.0.1:9/hook"});
    let body = json!({
        "message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "wait 0"}]},
        "configuration": {"taskPushNotificationConfig": hook},
    });
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let call = Call::say(agent.base(), "").body(&body);
    let call = call.header("traceparent", &format!("00-{trace}-00f067aa0ba902b7-00"));
    call.json().await;
    let has_trace = |text: &str, word: &str| {
        let lines = text.lines().filter(|line| line.contains(word));
        lines.into_iter().any(|line| line.contains(trace))
    };
    loop {
        let line = std::fs::read_to_string(folder.path().join("log")).unwrap();
        let files = std::fs::read_dir(folder.path().join("data/traces")).unwrap();
        let rows = files.map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap());
        let rows = rows.collect::<String>();
        if has_trace(&line, "a push delivery of task") && has_trace(&rows, "\"delivery\"") {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}
