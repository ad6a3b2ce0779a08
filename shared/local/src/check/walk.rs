//! The steps of the walk.

use super::calls::{Caller, Fault, Reply};
use super::interface::{
    Content, GET, Interface, Operation, SEND, STREAM, SUBSCRIBE, SendOptions, files, state,
    task_id, text, words,
};
use super::{CheckServer, Report};
use http::{Method, Request};
use serde_json::{Value, json};
use std::pin::pin;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::time::{sleep, timeout};

/// The most examples of a card that are sent.
const EXAMPLES: usize = 8;
/// The answer to each question, and the most of them.
const ANSWER: &str = "tomorrow";
const ANSWERS: usize = 3;
/// How long the first event of a stream may take, and the first of a webhook.
const FIRST: Duration = Duration::from_secs(5);
const WEBHOOK: Duration = Duration::from_secs(20);
/// A shorter stream does not show whether its events come one by one.
const LONG: Duration = Duration::from_millis(300);
/// How often a task in the background is read, and for how long.
const PAUSE: Duration = Duration::from_millis(250);
const BACKGROUND: Duration = Duration::from_secs(60);
/// The bytes of the file.
const FILE: usize = 300 * 1024;
const TOKEN: &str = "a2a-lambda-check";

/// Makes all steps.
pub(super) async fn walk(options: &CheckServer, caller: &Caller) -> Report {
    let url = caller.base.clone();
    let mut report = Report {
        url,
        build: None,
        settings: None,
        steps: Vec::new(),
    };
    let (mut card, mut interfaces) = (Value::Null, Vec::new());
    let made = read_card(caller, &mut card, &mut interfaces);
    report.step(caller, ["card", ""], made).await;
    for on in &interfaces {
        let (card, name) = (&card, on.name.as_str());
        let mut walk = Walk {
            options,
            caller,
            card,
            on,
            task: None,
            question: None,
        };
        report.step(caller, ["send", name], walk.sends()).await;
        report.step(caller, ["question", name], walk.asks()).await;
        report.step(caller, ["stream", name], walk.streams()).await;
        report
            .step(caller, ["background", name], walk.runs_on())
            .await;
        report
            .step(caller, ["file", name], walk.keeps_a_file())
            .await;
        report
            .step(caller, ["webhook", name], walk.calls_back())
            .await;
        report.step(caller, ["refused", name], walk.refuses()).await;
    }
    report
        .step(caller, ["preflight", ""], preflight(caller))
        .await;
    let mut health = Value::Null;
    report
        .step(caller, ["health", ""], read_health(caller, &mut health))
        .await;
    let known = ["/build", "/settings"].map(|it| text(&health, it).map(str::to_owned));
    [report.build, report.settings] = known;
    report
}

fn works_if(works: bool, text: String) -> Result<String, Fault> {
    if works { Ok(text) } else { Err(text.into()) }
}

fn not_shown<T>(text: &str) -> Result<T, Fault> {
    Err(Fault {
        not_shown: true,
        ..text.into()
    })
}

async fn read_card(
    caller: &Caller,
    card: &mut Value,
    interfaces: &mut Vec<Interface>,
) -> Result<String, Fault> {
    *card = caller.get("/.well-known/agent-card.json").await?;
    let [name, version] = ["/name", "/version"].map(|it| text(card, it).unwrap_or_default());
    let all = Interface::of(card);
    let names: Vec<&str> = all.iter().map(|one| one.name.as_str()).collect();
    let shown = format!("{name} {version}: {}", names.join(", "));
    // The key belongs to one server.
    let key = caller.key_for(&caller.base);
    if let Some(one) = all.iter().find(|one| caller.key_for(&one.url) != key) {
        return Err(format!("{shown} at `{}`: check that address", one.url).into());
    }
    works_if(!all.is_empty(), shown).inspect(|_| *interfaces = all)
}

async fn preflight(caller: &Caller) -> Result<String, Fault> {
    let request = caller.request(Method::OPTIONS, &format!("{}/", caller.base));
    let request = request.header("origin", "https://example.com");
    let request = request.header("access-control-request-method", "POST");
    let reply = caller.open(request, &Value::Null).await?;
    let allowed = reply.headers.get("access-control-allow-origin");
    let allowed = allowed.and_then(|it| it.to_str().ok()).unwrap_or("none");
    let shown = format!("status {}, allowed origin: {allowed}", reply.status);
    match reply.status {
        400..500 => not_shown(&shown),
        status => works_if(status < 400, shown),
    }
}

async fn read_health(caller: &Caller, health: &mut Value) -> Result<String, Fault> {
    let details = caller.get("/a2a-lambda/health").await;
    match details.or(caller.get("/health").await) {
        Ok(report) => *health = report,
        Err(fault) if fault.status < 500 => return not_shown("the server shows no health"),
        Err(fault) => return Err(fault),
    }
    Ok(text(health, "/status").unwrap_or("a page").to_owned())
}

/// The steps on one interface.
struct Walk<'a> {
    options: &'a CheckServer,
    caller: &'a Caller,
    card: &'a Value,
    on: &'a Interface,
    /// Words that make a task, and words that make the agent ask.
    task: Option<String>,
    question: Option<String>,
}

impl Walk<'_> {
    async fn open(&self, operation: &Operation, params: Value) -> Result<Reply<'_>, Fault> {
        let (method, url, body) = self.on.request(operation, params);
        let request = self.caller.request(method, &url);
        let request = if self.on.old {
            request
        } else {
            request.header("a2a-version", "1.0")
        };
        self.caller.open(request, &body).await
    }

    async fn send(&self, content: Content<'_>, options: SendOptions<'_>) -> Result<Value, Fault> {
        self.open(&SEND, self.on.params(content, options))
            .await?
            .result()
            .await
    }

    async fn ask(&self) -> Result<Value, Fault> {
        match &self.question {
            Some(said) => self.send(Content::Text(said), SendOptions::default()).await,
            None => not_shown("the agent asked nothing back; `--say` names other words"),
        }
    }

    fn has(&self, capability: &str) -> bool {
        let capabilities = self.card.get("capabilities");
        let capability = capabilities.and_then(|all| all.get(capability));
        capability.and_then(Value::as_bool) == Some(true)
    }

    fn task_words(&self) -> Result<&str, Fault> {
        match self.task.as_deref().or(self.question.as_deref()) {
            Some(said) => Ok(said),
            None => not_shown("none of the words made a task"),
        }
    }

    /// The members `name` of the skills on the card.
    fn skills(&self, name: &str) -> Vec<&Value> {
        let skills = self.card.get("skills").and_then(Value::as_array);
        skills
            .into_iter()
            .flatten()
            .filter_map(|skill| skill.get(name))
            .collect()
    }

    /// Sends the first examples of skills until one makes a task and one makes the agent ask.
    async fn sends(&mut self) -> Result<String, Fault> {
        let examples = self
            .skills("examples")
            .into_iter()
            .filter_map(|all| text(all, "/0"));
        let mut said: Vec<String> = examples.take(EXAMPLES).map(str::to_owned).collect();
        if said.is_empty() || !self.options.say.is_empty() {
            said.clone_from(&self.options.say);
        }
        let mut shown = Vec::new();
        for said in said {
            let result = self
                .send(Content::Text(&said), SendOptions::default())
                .await?;
            let state = state(&result);
            shown.push(
                format!("`{said}`: {state} {}", words(&result))
                    .trim_end()
                    .to_owned(),
            );
            match state.as_str() {
                "failed" | "rejected" => return Err(shown.join(", ").into()),
                "input-required" => self.question = Some(said),
                "a message" => {}
                _ => self.task = Some(said),
            }
            if self.task.is_some() && self.question.is_some() {
                break;
            }
        }
        if shown.is_empty() {
            not_shown("the card has no examples; `--say` names words")
        } else {
            Ok(shown.join(", "))
        }
    }

    async fn asks(&self) -> Result<String, Fault> {
        let asked = self.ask().await?;
        let (end, answers) = self.answer(&asked).await?;
        let shown = format!("`{}`, {answers} answers, {end}", words(&asked));
        works_if(end != "failed", shown)
    }

    /// Answers until the agent asks no more: the last state, and the number of answers.
    async fn answer(&self, asked: &Value) -> Result<(String, usize), Fault> {
        let options = SendOptions {
            task: Some(asked),
            ..SendOptions::default()
        };
        let mut answers = 0;
        loop {
            let result = self.send(Content::Text(ANSWER), options).await?;
            answers += 1;
            if task_id(&result) != task_id(asked) {
                return Err("the answer did not continue its task".into());
            }
            if state(&result) != "input-required" || answers == ANSWERS {
                return Ok((state(&result), answers));
            }
        }
    }

    async fn streams(&self) -> Result<String, Fault> {
        if !self.has("streaming") {
            return not_shown("the card offers no streams");
        }
        let (began, content) = (Instant::now(), Content::Text(self.task_words()?));
        let params = self.on.params(content, SendOptions::default());
        let mut stream = self.open(&STREAM, params).await?;
        let (mut times, mut last) = (Vec::new(), String::new());
        while let Some(event) = stream.event().await? {
            times.push(began.elapsed());
            last = state(&event);
        }
        let (Some(first), Some(end)) = (times.first(), times.last()) else {
            return Err("it ended without an event".into());
        };
        let (count, [from, to]) = (times.len(), [first, end].map(Duration::as_millis));
        let shown = format!("{count} events from {from} ms to {to} ms, {last}");
        if let Some(followed) = self.follows().await? {
            return Ok(format!("{shown}; {followed}"));
        }
        // Without a question only a long task shows whether something holds events back.
        match (end.saturating_sub(*first), count) {
            (spread, _) if spread >= LONG => Ok(shown),
            (_, 2..) if *end >= LONG => Err(format!("{shown}: all at once").into()),
            _ => not_shown(&format!(
                "{shown}: too short to show that they come one by one"
            )),
        }
    }

    /// Follows a task that waits: its first event has to come before the answer. None if the
    /// server has no such streams.
    async fn follows(&self) -> Result<Option<String>, Fault> {
        if self.question.is_none() {
            return Ok(None);
        }
        let (asked, began) = (self.ask().await?, Instant::now());
        let mut opening = pin!(async {
            let mut stream = self
                .open(&SUBSCRIBE, json!({"id": task_id(&asked)}))
                .await?;
            let first = stream.event().await?;
            Ok::<_, Fault>(first.map(|_| stream))
        });
        let early = timeout(FIRST, &mut opening).await;
        let took = began.elapsed().as_millis();
        if matches!(early, Ok(Err(_) | Ok(None))) {
            return Ok(None);
        }
        self.answer(&asked).await?;
        let Ok(Ok(Some(mut stream))) = early else {
            opening.await?;
            return Err("the first event of a followed task came only with its last".into());
        };
        match stream.event().await? {
            Some(_) => Ok(Some(format!(
                "a followed task in {took} ms, before its answer"
            ))),
            None => Err("a followed task did not show its answer".into()),
        }
    }

    async fn runs_on(&self) -> Result<String, Fault> {
        let options = SendOptions {
            background: true,
            ..SendOptions::default()
        };
        let mut result = self
            .send(Content::Text(self.task_words()?), options)
            .await?;
        let (began, first) = (Instant::now(), state(&result));
        let open = |state: &str| matches!(state, "submitted" | "working");
        if !open(&first) {
            return not_shown(&format!("the response waited for the task: {first}"));
        }
        while open(&state(&result)) && began.elapsed() < BACKGROUND {
            sleep(PAUSE).await;
            result = self
                .open(&GET, json!({"id": task_id(&result)}))
                .await?
                .result()
                .await?;
        }
        let now = state(&result);
        works_if(
            !open(&now) && now != "failed",
            format!("{first}, then {now}"),
        )
    }

    /// Sends a file, and reads it from the history of its task.
    async fn keeps_a_file(&self) -> Result<String, Fault> {
        let modes = self
            .card
            .get("defaultInputModes")
            .into_iter()
            .chain(self.skills("inputModes"));
        let mut modes = modes
            .filter_map(Value::as_array)
            .flatten()
            .filter_map(Value::as_str);
        let is_file =
            |it: &&str| it.contains('/') && !it.starts_with("text/") && !it.ends_with("json");
        let Some(mode) = modes.find(is_file) else {
            return not_shown("the card names no media type of files");
        };
        let mode = mode.replace("*/*", "application/octet-stream").replace('*', "png");
        let sent: Vec<u8> = b"a2a-lambda check\n"
            .iter()
            .copied()
            .cycle()
            .take(FILE)
            .collect();
        let mut result = self
            .send(Content::File(&mode, &sent), SendOptions::default())
            .await?;
        if state(&result) != "a message" {
            result = self
                .open(&GET, json!({"id": task_id(&result)}))
                .await?
                .result()
                .await?;
        }
        let (mut sizes, mut same) = (Vec::new(), false);
        for file in files(&result) {
            let bytes = match file {
                Ok(bytes) => bytes,
                Err(url) => self.download(&url).await?,
            };
            same |= bytes == sent;
            sizes.push(bytes.len().to_string());
        }
        if sizes.is_empty() && state(&result) != "failed" {
            return not_shown("the agent returns no file and keeps none in the history");
        }
        let shown = format!("{mode}, {FILE} bytes; back: {} bytes", sizes.join(", "));
        works_if(
            same && state(&result) != "failed",
            format!("{shown} {}", words(&result)),
        )
    }

    async fn download(&self, url: &str) -> Result<Vec<u8>, Fault> {
        let request = self.caller.request(Method::GET, url);
        let mut reply = self.caller.open(request, &Value::Null).await?;
        match reply.status {
            200 => Ok(reply.bytes().await?.to_vec()),
            status => Err(format!("a file is not served: status {status}").into()),
        }
    }

    async fn calls_back(&self) -> Result<String, Fault> {
        let said = Content::Text(self.task_words()?);
        let here = ["://127.", "://localhost", "://[::1]"]
            .iter()
            .any(|it| self.on.url.contains(it));
        if !self.has("pushNotifications") || self.options.webhook.is_none() && !here {
            return not_shown("not offered, or no way to this machine; `--webhook` names one");
        }
        let receiver = TcpListener::bind(("127.0.0.1", self.options.webhook_port)).await?;
        let own = format!("http://{}/", receiver.local_addr()?);
        let url = self.options.webhook.as_ref().unwrap_or(&own);
        let options = SendOptions {
            webhook: Some((url, TOKEN)),
            ..SendOptions::default()
        };
        match self.send(said, options).await {
            Err(fault) if fault.status < 500 && self.options.webhook.is_none() => {
                return not_shown(&format!("`{url}` is refused: {}", fault.text));
            }
            sent => _ = sent?,
        }
        let (mut socket, _) = timeout(WEBHOOK, receiver.accept()).await??;
        let mut head = vec![0; 16 * 1024];
        let length = timeout(FIRST, socket.read(&mut head)).await??;
        socket
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
            .await?;
        let head = String::from_utf8_lossy(head.get(..length).unwrap_or_default()).to_lowercase();
        let token = format!("x-a2a-notification-token: {TOKEN}\r\n");
        works_if(
            head.contains(&token),
            format!("an event at `{url}`; it needs its token"),
        )
    }

    /// Reads a task that is not there, also without the key.
    async fn refuses(&self) -> Result<String, Fault> {
        let params = json!({"id": "check-unknown"});
        let shown = match self.open(&GET, params.clone()).await?.result().await {
            Err(fault) if fault.code == -32001 || fault.status == 404 => fault.text,
            Err(fault) => return Err(fault),
            Ok(_) => return Err("an unknown task is there".into()),
        };
        let (method, url, body) = self.on.request(&GET, params);
        if self.caller.key_for(&url).is_none() {
            return Ok(shown);
        }
        let request = Request::builder()
            .method(method)
            .uri(url)
            .header("a2a-version", "1.0");
        let status = self.caller.open(request, &body).await?.status;
        works_if(
            matches!(status, 401 | 403),
            format!("{shown}; without the key: status {status}"),
        )
    }
}
