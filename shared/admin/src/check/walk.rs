//! The steps of the walk.

use super::calls::{CheckClient, Fault, ServerReply};
use super::interface::{GET, SEND, STREAM, SUBSCRIBE};
use super::interface::{
    Interface, MethodNames, files, id, kind_of_event, missing_members, state, text, words,
};
use super::{CheckServer, Report};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::future::{Ready, ready};
use std::io;
use std::pin::pin;
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

/// The most examples of a card that are sent.
const EXAMPLES: usize = 8;
/// The answer to each question, and the most of them.
const ANSWER: &str = "tomorrow";
const ANSWERS: usize = 3;
/// How long the first event of a stream may take, and that of a webhook.
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
pub(super) async fn walk<'a>(options: &CheckServer, caller: &'a CheckClient) -> Report<'a> {
    let mut report = Report {
        caller,
        steps: Vec::new(),
        health: Value::Null,
    };
    let mut card = Value::Null;
    report.step("card", "", read_card(caller, &mut card)).await;
    for on in Interface::of(&card) {
        let (card, name) = (&card, on.name.clone());
        let mut walk = Walk {
            options,
            caller,
            card,
            on,
            task: None,
            asking_words: None,
        };
        report.step("send", &name, walk.sends()).await;
        report.step("question", &name, walk.asks()).await;
        report.step("stream", &name, walk.streams()).await;
        report.step("background", &name, walk.runs_on()).await;
        report.step("file", &name, walk.keeps_a_file()).await;
        report.step("webhook", &name, walk.calls_back()).await;
        report.step("refused", &name, walk.refuses()).await;
    }
    report.step("preflight", "", preflight(caller)).await;
    let mut health = Value::Null;
    let outcome = read_health(caller, &mut health);
    report.step("health", "", outcome).await;
    report.health = health;
    report
}

fn works_if(works: bool, text: String) -> Result<String, Fault> {
    if works {
        Ok(text)
    } else {
        Err(Fault::Fails(text))
    }
}

fn not_shown<T>(text: impl Into<String>) -> Result<T, Fault> {
    Err(Fault::NotShown(text.into()))
}

/// Answers the requests at a listener until that fails.
async fn receive<H>(listener: &TcpListener, handler: H) -> io::Error
where
    H: Fn(Request<Incoming>) -> Ready<Result<Response<Full<Bytes>>, Infallible>>,
    H: Clone + Send + 'static,
{
    loop {
        let socket = match listener.accept().await {
            Ok((socket, _)) => TokioIo::new(socket),
            Err(error) => return error,
        };
        tokio::spawn(http1::Builder::new().serve_connection(socket, service_fn(handler.clone())));
    }
}

/// Reads the card; it stays null if it cannot be used.
async fn read_card(caller: &CheckClient, card: &mut Value) -> Result<String, Fault> {
    let document = caller.get("/.well-known/agent-card.json").await?;
    let [name, version] = ["/name", "/version"].map(|it| text(&document, it).unwrap_or_default());
    let all = Interface::of(&document);
    if all.is_empty() {
        let text = "names no interface over JSONRPC or HTTP+JSON of A2A 1.0 or 0.3";
        return Err(format!("{name} {version} {text}").into());
    }
    let names: Vec<&str> = all.iter().map(|one| one.name.as_str()).collect();
    let summary = format!("{name} {version}: {}", names.join(", "));
    if let Some(one) = all.iter().find(|one| !caller.is_own(&one.url)) {
        return Err(format!("{summary} at `{}`: check that address", one.url).into());
    }
    let missing = missing_members(&document);
    *card = document;
    Ok(match missing.is_empty() {
        true => summary,
        false => format!(
            "{summary}; strict clients refuse it without {}",
            missing.join(", ")
        ),
    })
}

async fn preflight(caller: &CheckClient) -> Result<String, Fault> {
    let request = caller.request(Method::OPTIONS, &format!("{}/", caller.base))?;
    let request = request.header("origin", "https://example.com");
    let request = request.header("access-control-request-method", "POST");
    let reply = caller.open(request, &Value::Null).await?;
    let origin = reply.headers.get("access-control-allow-origin");
    let origin = origin.map_or("none".into(), |it| String::from_utf8_lossy(it.as_bytes()));
    let summary = format!("status {}, allowed origin: {origin}", reply.status);
    match reply.status {
        400..500 => not_shown(summary),
        status => works_if(status < 400, summary),
    }
}

async fn read_health(caller: &CheckClient, health: &mut Value) -> Result<String, Fault> {
    let details = caller.get("/a2a-lambda/health").await;
    match details.or(caller.get("/health").await) {
        Err(Fault::Refused(..500, ..)) => not_shown("the server shows no health"),
        report => {
            *health = report?;
            let warnings = health.get("warnings").and_then(Value::as_array);
            let warnings = warnings.into_iter().flatten().filter_map(Value::as_str);
            let words = text(health, "/status").into_iter().chain(warnings);
            Ok(words.collect::<Vec<_>>().join("; "))
        }
    }
}

/// The steps on one interface.
struct Walk<'a> {
    options: &'a CheckServer,
    caller: &'a CheckClient,
    card: &'a Value,
    on: Interface,
    /// Words that make a task, and words that make the agent ask.
    task: Option<String>,
    asking_words: Option<String>,
}

impl Walk<'_> {
    async fn open(&self, operation: MethodNames, params: &Value) -> Result<ServerReply<'_>, Fault> {
        let (method, url, body) = self.on.request(operation, params);
        let request = self.caller.request(method, &url)?;
        let version = if self.on.old { "0.3" } else { "1.0" };
        let request = request.header("a2a-version", version);
        self.caller.open(request, &body).await
    }

    async fn call(&self, operation: MethodNames, params: &Value) -> Result<Value, Fault> {
        self.open(operation, params).await?.result().await
    }

    /// Sends words as a new task.
    async fn say(&self, words: &str, configuration: Value) -> Result<Value, Fault> {
        let part = json!({"text": words});
        let params = self.on.params(&part, &Value::Null, &configuration);
        self.call(SEND, &params).await
    }

    /// Says the words that made the agent ask a question before.
    async fn provoke_question(&self) -> Result<Value, Fault> {
        match &self.asking_words {
            Some(words) => self.say(words, json!({})).await,
            None => not_shown("the agent asked nothing back; `--say` names other words"),
        }
    }

    fn offers(&self, capability: &str) -> bool {
        let flag = self.card.pointer(&format!("/capabilities/{capability}"));
        flag.and_then(Value::as_bool) == Some(true)
    }

    /// Words that make a task.
    fn task_words(&self) -> Result<&str, Fault> {
        match self.task.as_deref().or(self.asking_words.as_deref()) {
            Some(words) => Ok(words),
            None => not_shown("no words made a task"),
        }
    }

    /// The lists `name` of the skills on the card.
    fn skills(&self, name: &str) -> Vec<&Value> {
        let skills = self.card.get("skills").and_then(Value::as_array);
        let lists = skills.into_iter().flatten();
        lists.filter_map(|skill| skill.get(name)).collect()
    }

    /// Sends the first examples of skills, or the name of the first one, until one makes a task and one makes the agent ask.
    async fn sends(&mut self) -> Result<String, Fault> {
        let examples = self.skills("examples").into_iter();
        let examples = examples.filter_map(|all| text(all, "/0").map(str::to_owned));
        let mut sentences: Vec<String> = examples.take(EXAMPLES).collect();
        if !self.options.say.is_empty() {
            sentences.clone_from(&self.options.say);
        } else if sentences.is_empty() {
            let name = text(self.card, "/skills/0/name").map(str::to_owned);
            sentences.extend(name);
        }
        let mut summaries = Vec::new();
        for sentence in sentences {
            let result = self.say(&sentence, json!({})).await?;
            let state = state(&result);
            let one = format!("`{sentence}`: {state} {}", words(&result));
            summaries.push(one.trim_end().to_owned());
            match state.as_str() {
                "failed" | "rejected" => return Err(summaries.join(", ").into()),
                "input-required" => self.asking_words = Some(sentence),
                "a message" => {}
                _ => self.task = Some(sentence),
            }
            if self.task.is_some() && self.asking_words.is_some() {
                break;
            }
        }
        if summaries.is_empty() {
            return Err("the card has no skill; `--say` names words".into());
        }
        Ok(summaries.join(", "))
    }

    async fn asks(&self) -> Result<String, Fault> {
        let task = self.provoke_question().await?;
        let (end, answers) = self.answer(&task).await?;
        let summary = format!("`{}`, {answers} answers, {end}", words(&task));
        works_if(end != "failed", summary)
    }

    /// Answers until the agent asks no more: the last state, and the number of answers.
    async fn answer(&self, task: &Value) -> Result<(String, usize), Fault> {
        let mut answers = 0;
        loop {
            let part = json!({"text": ANSWER});
            let params = self.on.params(&part, task, &json!({}));
            let result = self.call(SEND, &params).await?;
            answers += 1;
            if id(&result) != id(task) {
                return Err("the answer did not continue its task".into());
            }
            if state(&result) != "input-required" || answers == ANSWERS {
                return Ok((state(&result), answers));
            }
        }
    }

    async fn streams(&self) -> Result<String, Fault> {
        if !self.offers("streaming") {
            return not_shown("the card offers no streams");
        }
        let part = json!({"text": self.task_words()?});
        let params = self.on.params(&part, &Value::Null, &json!({}));
        let mut stream = self.open(STREAM, &params).await?;
        // From the head on: what comes before is the way to the server.
        let began = Instant::now();
        let (mut times, mut last, mut kind) = (Vec::new(), String::new(), None);
        while let Some(event) = stream.event().await? {
            times.push(began.elapsed());
            last = state(&event);
            kind.get_or_insert_with(|| kind_of_event(&event).to_owned());
        }
        let (Some(first), Some(end)) = (times.first(), times.last()) else {
            return Err("it ended without an event".into());
        };
        let mut summary = format!(
            "{} events from {first:.0?} to {end:.0?}, {last}",
            times.len()
        );
        // A2A 1.0 §3.1.2.
        let kind = kind.unwrap_or_default();
        if !self.on.old && !matches!(kind.as_str(), "task" | "message") {
            summary += &format!("; begins with `{kind}`, and not with its task");
        }
        if let Some(note) = self.follows().await? {
            return Ok(format!("{summary}; {note}"));
        }
        // Without a question only a long task shows whether something holds events back.
        match (end.saturating_sub(*first), times.len()) {
            (spread, _) if spread >= LONG => Ok(summary),
            (spread, 2..) if *end >= LONG && spread < *end / 10 => {
                Err(format!("{summary}: all at once").into())
            }
            _ => not_shown(format!(
                "{summary}: too short to tell whether they come one by one"
            )),
        }
    }

    /// Follows a task that waits: its first event has to come before the answer. None if the
    /// server has no such streams.
    async fn follows(&self) -> Result<Option<String>, Fault> {
        if self.asking_words.is_none() {
            return Ok(None);
        }
        let (task, began) = (self.provoke_question().await?, Instant::now());
        let mut opening = pin!(async {
            let params = json!({"id": id(&task)});
            let mut stream = self.open(SUBSCRIBE, &params).await?;
            let first = stream.event().await?;
            Ok::<_, Fault>(first.map(|_| stream))
        });
        let early = timeout(FIRST, &mut opening).await;
        let took = began.elapsed();
        if matches!(early, Ok(Err(_) | Ok(None))) {
            return Ok(None);
        }
        self.answer(&task).await?;
        let Ok(Ok(Some(mut stream))) = early else {
            opening.await?;
            return Err("the first event of a followed task came only with its last".into());
        };
        match stream.event().await? {
            Some(_) => Ok(Some(format!(
                "a followed task in {took:.0?}, before its answer"
            ))),
            None => Err("a followed task did not show its answer".into()),
        }
    }

    async fn runs_on(&self) -> Result<String, Fault> {
        let configuration = json!({"returnImmediately": true});
        let response = self.say(self.task_words()?, configuration).await?;
        let open = |state: &str| matches!(state, "submitted" | "working");
        let (first, began) = (state(&response), Instant::now());
        if !open(&first) {
            return not_shown(format!("the response waited for the task: {first}"));
        }
        let mut now = first.clone();
        while open(&now) && began.elapsed() < BACKGROUND {
            sleep(PAUSE).await;
            now = state(&self.call(GET, &json!({"id": id(&response)})).await?);
        }
        works_if(
            !open(&now) && now != "failed",
            format!("{first}, then {now}"),
        )
    }

    /// The media type of a file that the agent takes.
    fn file_type(&self) -> Result<String, Fault> {
        let lists = self.card.get("defaultInputModes").into_iter();
        let lists = lists.chain(self.skills("inputModes"));
        let mut modes = lists
            .filter_map(Value::as_array)
            .flatten()
            .filter_map(Value::as_str);
        let text = |mode: &str| mode.starts_with("text") || mode.ends_with("json");
        match modes.find(|mode| mode.contains('/') && !text(mode)) {
            Some("*/*") => Ok("application/octet-stream".to_owned()),
            Some(mode) => Ok(mode.replace('*', "png")),
            None => not_shown("the card names no media type of files"),
        }
    }

    /// Sends a file, and reads it from the history of its task.
    async fn keeps_a_file(&self) -> Result<String, Fault> {
        let media_type = self.file_type()?;
        let upload = b"a2a-lambda check\n".iter().copied().cycle();
        let upload: Vec<u8> = upload.take(FILE).collect();
        let content = STANDARD.encode(&upload);
        let part = json!({"raw": content, "mediaType": media_type, "filename": "check"});
        let params = self.on.params(&part, &Value::Null, &json!({}));
        let mut result = self.call(SEND, &params).await?;
        if state(&result) != "a message" {
            result = self.call(GET, &json!({"id": id(&result)})).await?;
        }
        let (mut sizes, mut same) = (Vec::new(), false);
        for file in files(&result) {
            let bytes = match file {
                Ok(bytes) => bytes,
                Err(url) => self.download(url).await?,
            };
            same |= bytes == upload;
            sizes.push(bytes.len().to_string());
        }
        let (end, sizes) = (state(&result), sizes.join(", "));
        let summary = format!("{FILE} bytes of {media_type}: {end}; back: {sizes} bytes");
        match sizes.is_empty() && end != "failed" {
            true => not_shown("the agent returns no file and keeps none in the history"),
            false => works_if(same && end != "failed", summary),
        }
    }

    async fn download(&self, url: &str) -> Result<Vec<u8>, Fault> {
        let request = self.caller.file_request(url)?;
        let mut reply = self.caller.open(request, &Value::Null).await?;
        match reply.status {
            200 => Ok(reply.bytes().await?.to_vec()),
            status => Err(format!("a file is not served: status {status}").into()),
        }
    }

    async fn calls_back(&self) -> Result<String, Fault> {
        let (words, public) = (self.task_words()?, self.options.webhook.as_ref());
        let mut local = ["//127.", "//localhost", "//[::1]"].iter();
        let is_reachable = public.is_some() || local.any(|it| self.on.url.contains(it));
        if !is_reachable || !self.offers("pushNotifications") {
            return not_shown("not offered, or no way to this machine; `--webhook` names one");
        }
        let listener = TcpListener::bind(("127.0.0.1", self.options.webhook_port)).await?;
        let own_url = format!("http://{}/", listener.local_addr()?);
        let (sender, mut events) = mpsc::unbounded_channel();
        let handler = move |request: Request<Incoming>| {
            let token = request.headers().get("x-a2a-notification-token");
            // The walk may have ended.
            let _gone = sender.send(token.is_some_and(|token| token == TOKEN));
            ready(Ok(Response::new(Full::default())))
        };
        let url = public.unwrap_or(&own_url);
        let config = json!({"taskPushNotificationConfig": {"url": url, "token": TOKEN}});
        let call = async {
            match self.say(words, config).await {
                Err(Fault::Refused(..500, _, text)) if public.is_none() => {
                    return not_shown(format!("`{url}` is refused: {text}"));
                }
                result => drop(result?),
            }
            let event = timeout(WEBHOOK, events.recv()).await.ok().flatten();
            let how = match event {
                Some(true) => "with its token",
                Some(false) => "without its token",
                None => "that did not come",
            };
            works_if(event == Some(true), format!("an event at `{url}`, {how}"))
        };
        // A server may call before it answers the send.
        tokio::select! {
            result = call => result,
            error = receive(&listener, handler) => Err(error.into()),
        }
    }

    /// Reads a task that is not there, also without the key.
    async fn refuses(&self) -> Result<String, Fault> {
        let params = json!({"id": "check-unknown"});
        let summary = match self.call(GET, &params).await {
            // Any server has a 404 for what it does not serve; an error of A2A has a code.
            Err(Fault::Refused(404, code, text)) if code != 0 => text,
            Err(Fault::Refused(_, -32001, text)) => text,
            Err(fault) => return Err(fault),
            Ok(_) => return Err("an unknown task is there".into()),
        };
        let (method, url, body) = self.on.request(GET, &params);
        if self.caller.key.is_none() {
            return Ok(summary);
        }
        let request = self.caller.keyless_request(method, &url)?;
        let request = request.header("a2a-version", "1.0");
        let status = self.caller.open(request, &body).await?.status;
        let summary = format!("{summary}; without the key: status {status}");
        works_if(matches!(status, 401 | 403), summary)
    }
}
