//! The command `check`, against agents of this program and against a server with a planted
//! fault.

use crate::agent::{Folder, Running, ended, ended_in};
use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::{Method, Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::convert::Infallible;
use tokio::net::{TcpListener, TcpStream};

/// The report of a check, and whether it passed.
async fn report(url: &str, more: &[&str]) -> (bool, Value) {
    let arguments = [&["check", url, "--json"], more].concat();
    let output = ended(&arguments, &[]).await;
    let text = String::from_utf8(output.stdout).unwrap();
    let report = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}"));
    (output.status.success(), report)
}

/// The steps with this result, without their interface.
fn steps<'a>(report: &'a Value, result: &str) -> Vec<&'a str> {
    let steps = report["steps"].as_array().unwrap().iter();
    let named = steps.filter(|step| step["result"] == result);
    let names = named.filter_map(|step| step["step"].as_str()?.split(' ').next());
    names.collect()
}

#[tokio::test]
async fn check_passes_a_fresh_agent_and_skips_only_the_webhook() {
    let folder = Folder::new();
    let agent = Running::agent(&folder, &["--memory"]).await;
    let (passed, report) = report(agent.base(), &[]).await;
    assert!(passed, "{report:#}");
    assert_eq!(
        steps(&report, "not shown"),
        ["webhook", "webhook"],
        "{report:#}"
    );
    let interface = [
        "send",
        "question",
        "stream",
        "background",
        "file",
        "refused",
    ];
    let ok = [
        &["card"][..],
        &interface,
        &interface,
        &["preflight", "health"],
    ]
    .concat();
    assert_eq!(steps(&report, "ok"), ok, "{report:#}");
    for name in ["build", "settings"] {
        assert!(report[name].as_str().unwrap().len() >= 12, "{report:#}");
    }
}

#[tokio::test]
async fn check_receives_a_webhook_that_can_reach_it() {
    let folder = Folder::new();
    let agent = Running::agent(&folder, &["--memory", "--agent", "conformance"]).await;
    let said = ["--say", "echo hi", "--say", "ask"];
    let (passed, report) = report(agent.base(), &said).await;
    assert!(passed, "{report:#}");
    assert!(steps(&report, "not shown").is_empty(), "{report:#}");
}

#[tokio::test]
async fn check_never_writes_the_key() {
    let folder = Folder::new();
    let create = ["keys", "create", "--tenant", "acme", "--subject", "ann"];
    let create = [&create[..], &["--scope", "ops", "--data", "data"]].concat();
    let output = ended_in(&folder, &create, &[]).await;
    let key = String::from_utf8(output.stdout).unwrap().trim().to_owned();
    assert!(key.starts_with("a2a_"), "{key}");
    let agent = Running::agent(&folder, &["--auth", "keys", "--data", "data"]).await;
    for form in [&["--json"][..], &[]] {
        let arguments = [
            "check",
            agent.base(),
            "--key",
            &key,
            "--transcript",
            "seen.md",
        ];
        let output = ended_in(&folder, &[&arguments, form].concat(), &[]).await;
        let seen = std::fs::read_to_string(folder.path().join("seen.md")).unwrap();
        let shown = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{shown}");
        assert!(shown.contains("without the key: status 401"), "{shown}");
        assert!(seen.contains("\"text\": \"Where to?\""), "{seen}");
        assert!(
            !seen.contains(&key) && !shown.contains(&key),
            "{seen}\n{shown}"
        );
        assert!(!seen.contains("Signature"), "{seen}");
    }
}

/// What a server between client and agent does wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// It holds streams back until their end.
    Buffers,
    NoCard,
    /// Every post is a 500.
    Fails,
    /// It changes files.
    WrongFile,
    /// It answers everybody, whatever the key.
    NoAuthorizer,
}

type Answer = Response<UnsyncBoxBody<Bytes, hyper::Error>>;

fn whole(status: u16, body: impl Into<Bytes>) -> Answer {
    let body = Full::new(body.into()).map_err(|never| match never {});
    let response = Response::builder().status(status);
    let response = response.header(CONTENT_TYPE, "application/json");
    response.body(body.boxed_unsync()).unwrap()
}

async fn forwarded(fault: Fault, agent: &str, mut request: Request<Incoming>) -> Answer {
    match fault {
        Fault::NoCard if request.uri().path().ends_with("agent-card.json") => {
            return whole(404, "{}");
        }
        Fault::Fails if request.method() == Method::POST => return whole(500, "{}"),
        Fault::NoAuthorizer => _ = request.headers_mut().remove("authorization"),
        _ => {}
    }
    let socket = TcpStream::connect(agent).await.unwrap();
    let socket = TokioIo::new(socket);
    let (mut sender, connection) = hyper::client::conn::http1::handshake(socket).await.unwrap();
    tokio::spawn(connection);
    let (mut head, body) = sender.send_request(request).await.unwrap().into_parts();
    let is_stream = head.headers.get(CONTENT_TYPE);
    let is_stream = is_stream.is_some_and(|it| it == "text/event-stream");
    if is_stream && fault == Fault::Buffers {
        let body = body.collect().await.unwrap().to_bytes();
        let body = Full::new(body).map_err(|never| match never {});
        return Response::from_parts(head, body.boxed_unsync());
    }
    if !is_stream && fault == Fault::WrongFile {
        let body = body.collect().await.unwrap().to_bytes();
        head.headers.remove(CONTENT_LENGTH);
        // The middle of the file that the check sends, as base64.
        let text = String::from_utf8_lossy(&body).replacen("Y2hlY2sK", "Y2hlY2sh", 1);
        let body = Full::new(Bytes::from(text)).map_err(|never| match never {});
        return Response::from_parts(head, body.boxed_unsync());
    }
    Response::from_parts(head, body.boxed_unsync())
}

/// Checks the reference agent behind a server with a fault: the steps that fail.
async fn found(fault: Fault, more: &[&str]) -> (bool, Value) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let folder = Folder::new();
    let arguments = ["--port", "0", "--memory"];
    let settings = [("A2A_PUBLIC_URL", url.as_str())];
    let agent = Running::start(&folder, &arguments, &settings, "listening on ").await;
    let address = agent.base().trim_start_matches("http://").to_owned();
    let serving = tokio::spawn(async move {
        loop {
            let (socket, _) = listener.accept().await.unwrap();
            let address = address.clone();
            tokio::spawn(async move {
                let service = service_fn(move |request| {
                    let address = address.clone();
                    async move { Ok::<_, Infallible>(forwarded(fault, &address, request).await) }
                });
                let connection = hyper::server::conn::http1::Builder::new();
                let socket = TokioIo::new(socket);
                let _gone = connection.serve_connection(socket, service).await;
            });
        }
    });
    let found = report(&url, more).await;
    serving.abort();
    found
}

async fn fails(fault: Fault, more: &[&str], expected: &[&str]) {
    let (passed, report) = found(fault, more).await;
    assert!(!passed, "{fault:?}: {report:#}");
    assert_eq!(steps(&report, "failed"), expected, "{fault:?}: {report:#}");
    for step in report["steps"].as_array().unwrap() {
        let advice = step["lookAt"].as_str().is_some_and(|it| !it.is_empty());
        assert_eq!(advice, step["result"] == "failed", "{step}");
    }
}

#[tokio::test]
async fn check_finds_a_stream_whose_events_come_at_once() {
    fails(Fault::Buffers, &[], &["stream", "stream"]).await;
}

#[tokio::test]
async fn check_finds_a_missing_card() {
    fails(Fault::NoCard, &[], &["card"]).await;
}

#[tokio::test]
async fn check_finds_a_server_that_fails_at_each_send() {
    let (passed, report) = found(Fault::Fails, &[]).await;
    assert!(!passed, "{report:#}");
    for step in ["send", "file"] {
        assert!(steps(&report, "failed").contains(&step), "{report:#}");
    }
}

#[tokio::test]
async fn check_finds_a_file_that_changed_on_its_way() {
    fails(Fault::WrongFile, &[], &["file", "file"]).await;
}

#[tokio::test]
async fn check_finds_a_server_that_lets_strangers_call() {
    let key = ["--key", "dev:acme:ann"];
    fails(Fault::NoAuthorizer, &key, &["refused", "refused"]).await;
}

#[tokio::test]
async fn check_calls_no_other_server_that_a_card_names() {
    let folder = Folder::new();
    let elsewhere = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", elsewhere.local_addr().unwrap());
    let arguments = ["--port", "0", "--memory"];
    let settings = [("A2A_PUBLIC_URL", url.as_str())];
    let agent = Running::start(&folder, &arguments, &settings, "listening on ").await;
    for key in [&["--key", "dev:acme:ann"][..], &[]] {
        let (passed, report) = report(agent.base(), key).await;
        assert!(!passed, "{report:#}");
        assert_eq!(steps(&report, "failed"), ["card"], "{report:#}");
        assert!(
            report.to_string().contains(&format!("`{url}")),
            "{report:#}"
        );
    }
    // Nothing has called it.
    let called = tokio::time::timeout(std::time::Duration::ZERO, elsewhere.accept());
    assert!(called.await.is_err());
    for refused in ["http://agent.example", "ftp://127.0.0.1", "agent"] {
        let output = ended(&["check", refused, "--key", "secret"], &[]).await;
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && said.contains(refused), "{said}");
        assert!(!said.contains("secret"), "{said}");
    }
}

/// A small server of others, over REST of A2A 1.0. It keeps every rule unless a test changes it.
#[derive(Clone)]
struct Stranger {
    card: Value,
    /// The status of each call; 200 answers it.
    status: u16,
    /// Whether there is only a card, and a page that says so.
    is_dead: bool,
    /// What its health says, if it has one.
    health: Option<Value>,
}

impl Stranger {
    /// A server whose card is changed by `edit`. `URL` in the card is its address.
    fn new(edit: impl FnOnce(&mut Value)) -> Self {
        let mut card = json!({
            "name": "tiny", "description": "Says hi.", "version": "1",
            "supportedInterfaces": [
                {"url": "URL/rest", "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"},
            ],
            "capabilities": {}, "defaultInputModes": ["text/plain"],
            "defaultOutputModes": ["text/plain"],
            "skills": [{"id": "hi", "name": "hi", "description": "Says hi.", "tags": ["x"]}],
        });
        edit(&mut card);
        Self {
            card,
            status: 200,
            is_dead: false,
            health: None,
        }
    }

    fn answer(&self, url: &str, path: &str) -> Answer {
        let task =
            json!({"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_COMPLETED"}});
        let error = |code: u16| {
            json!({"error": {"code": code, "status": "NOT_FOUND", "message": "no"}}).to_string()
        };
        match path {
            "/.well-known/agent-card.json" => whole(200, self.card.to_string().replace("URL", url)),
            _ if self.is_dead => whole(404, "<h1>not here</h1>"),
            _ if self.status != 200 => whole(self.status, error(self.status)),
            "/a2a-lambda/health" if self.health.is_some() => {
                whole(200, json!(self.health).to_string())
            }
            "/rest/message:stream" => {
                let first = json!({"artifactUpdate": {"taskId": "t", "contextId": "c"}});
                let mut reply = whole(200, format!("data: {first}\n\n"));
                let kind = "text/event-stream".parse().unwrap();
                reply.headers_mut().insert(CONTENT_TYPE, kind);
                reply
            }
            "/rest/message:send" => whole(200, json!({"task": task}).to_string()),
            "/rest/tasks/t" => whole(200, task.to_string()),
            "/rest/tasks/check-unknown" => whole(404, error(404)),
            _ => whole(404, "{}"),
        }
    }

    /// What `check` prints of it, and whether it passed.
    async fn check(self, more: &[&str]) -> (bool, String) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let base = url.clone();
        let serving = tokio::spawn(async move {
            loop {
                let (socket, _) = listener.accept().await.unwrap();
                let (stranger, url) = (self.clone(), url.clone());
                tokio::spawn(async move {
                    let service = service_fn(move |request: Request<Incoming>| {
                        let answer = stranger.answer(&url, request.uri().path());
                        async move { Ok::<_, Infallible>(answer) }
                    });
                    let connection = hyper::server::conn::http1::Builder::new();
                    let socket = TokioIo::new(socket);
                    let _gone = connection.serve_connection(socket, service).await;
                });
            }
        });
        let output = ended(&[&["check", &base][..], more].concat(), &[]).await;
        serving.abort();
        let shown = String::from_utf8(output.stdout).unwrap();
        (output.status.success(), shown)
    }
}

#[tokio::test]
async fn check_fails_a_card_with_nothing_behind_it() {
    let mut dead = Stranger::new(|_| {});
    dead.is_dead = true;
    let (passed, shown) = dead.check(&[]).await;
    assert!(!passed, "{shown}");
    assert_eq!(shown.matches("\nok ").count(), 1, "only the card: {shown}");
    let no_skill = Stranger::new(|card| card["skills"] = json!([]));
    let (passed, shown) = no_skill.check(&[]).await;
    assert!(!passed && shown.contains("`--say` names words"), "{shown}");
}

#[tokio::test]
async fn check_passes_the_cards_that_other_sdks_write() {
    for (member, value) in [("tenant", ""), ("url", "URL/rest/")] {
        let stranger = Stranger::new(|card| card["supportedInterfaces"][0][member] = value.into());
        let (passed, shown) = stranger.check(&[]).await;
        assert!(passed, "{member}: {shown}");
        // Its skill has no example, so its name was said.
        assert!(shown.contains("`hi`: completed"), "{member}: {shown}");
    }
}

#[tokio::test]
async fn check_names_what_strict_clients_miss_on_a_card() {
    let stranger = Stranger::new(|card| {
        card.as_object_mut().unwrap().remove("description");
        card["skills"][0].as_object_mut().unwrap().remove("tags");
    });
    let (passed, shown) = stranger.check(&[]).await;
    assert!(passed, "{shown}");
    let missing = "strict clients refuse it without description, skills[0].tags";
    assert!(shown.contains(missing), "{shown}");
    let foreign = Stranger::new(|card| {
        card["supportedInterfaces"][0]["protocolBinding"] = "GRPC".into();
    });
    let (passed, shown) = foreign.check(&[]).await;
    assert!(
        !passed && shown.contains("names no interface over"),
        "{shown}"
    );
}

#[tokio::test]
async fn check_names_a_stream_that_does_not_begin_with_its_task() {
    let stranger = Stranger::new(|card| card["capabilities"]["streaming"] = true.into());
    let (_, shown) = stranger.check(&[]).await;
    let first = "begins with `artifactUpdate`, and not with its task";
    assert!(shown.contains(first), "{shown}");
}

#[tokio::test]
async fn check_tells_an_operator_what_the_health_warns_of() {
    let mut stranger = Stranger::new(|_| {});
    let warning = "the table has no deletion protection";
    stranger.health = Some(json!({"status": "ok", "warnings": [warning]}));
    let (passed, shown) = stranger.check(&[]).await;
    assert!(passed, "{shown}");
    assert!(shown.contains(&format!("ok; {warning}")), "{shown}");
}

#[tokio::test]
async fn check_shows_the_words_of_a_stranger_escaped_and_on_one_line() {
    let name = "Nice\u{1b}]0;owned\u{7}\nok   card  all good\u{202e}";
    let stranger = Stranger::new(|card| card["name"] = name.into());
    let (_, shown) = stranger.check(&[]).await;
    let escaped = "Nice\\u{1b}]0;owned\\u{7}\\nok   card  all good\\u{202e}";
    assert!(shown.contains(escaped), "{shown}");
    assert!(!shown.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{shown}");
}

#[tokio::test]
async fn check_looks_for_the_cause_where_the_answer_points() {
    for (status, cause) in [(401, "`--key`"), (429, "rates"), (503, "the table")] {
        let mut stranger = Stranger::new(|_| {});
        stranger.status = status;
        let (passed, shown) = stranger.check(&[]).await;
        assert!(!passed, "{shown}");
        let first = shown.lines().find(|line| line.contains("look at: "));
        assert!(first.is_some_and(|line| line.contains(cause)), "{shown}");
    }
}

#[tokio::test]
async fn check_hides_the_key_and_no_other_word() {
    let stranger = Stranger::new(|card| card["name"] = "o is not in ok".into());
    let (passed, shown) = stranger.check(&["--key", "o"]).await;
    assert!(
        !passed,
        "without the key everything is answered too: {shown}"
    );
    assert!(shown.contains("KEY is not in ok 1:"), "{shown}");
}
