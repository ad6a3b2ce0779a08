//! Webhooks on this machine, called by the running agent.

use crate::agent::{Folder, Running};
use crate::calls::Call;
use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
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
