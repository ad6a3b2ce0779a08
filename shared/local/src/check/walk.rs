//! The steps of the walk.

use super::Verdict::{Fails, NotShown, Works};
use super::calls::{Caller, Fault, Reply};
use super::interface::{
    Extras, GET, Interface, Operation, SEND, STREAM, SUBSCRIBE, files, state, task_id, text, words,
};
use super::webhook::Receiver;
use super::{CheckServer, Report, Verdict};
use http::Method;
use serde_json::{Value, json};
use std::pin::pin;
use std::time::{Duration, Instant};
use tokio::time::{sleep, timeout};

/// The most examples of a card that are sent.
const EXAMPLES: usize = 8;
/// The answer to each question, and the most of them.
const ANSWER: &str = "tomorrow";
const ANSWERS: usize = 3;
/// How long the first event of a stream may take.
const FIRST: Duration = Duration::from_secs(5);
/// A shorter stream does not show whether its events come one by one.
const LONG: Duration = Duration::from_millis(300);
/// How long a task in the background may take.
const BACKGROUND: Duration = Duration::from_secs(60);
/// The bytes of the file.
const FILE: usize = 300 * 1024;
const TOKEN: &str = "a2a-lambda-check";

/// Makes all steps.
pub(super) async fn walk(options: &CheckServer, url: &str, caller: &Caller, report: &mut Report) {
    let begin = |name: &str| {
        caller.entries.borrow_mut().push(format!("## {name}"));
        Instant::now()
    };
    let began = begin("card");
    let (verdict, card) = match card(url, caller, options).await {
        Ok((verdict, card)) => (Ok(verdict), card),
        Err(fault) => (Err(fault), Value::Null),
    };
    report.add("card".to_owned(), began, verdict);
    for interface in chosen(&card, options) {
        let mut walk = Walk {
            options,
            caller,
            card: &card,
            interface,
            task: None,
            question: None,
        };
        for name in [
            "send",
            "question",
            "stream",
            "background",
            "file",
            "webhook",
            "refused",
        ] {
            let name = format!("{name} {}", walk.interface.name());
            let began = begin(&name);
            let verdict = Box::pin(walk.step(&name)).await;
            report.add(name, began, verdict);
        }
    }
    let began = begin("preflight");
    report.add(
        "preflight".to_owned(),
        began,
        preflight(url, caller, options).await,
    );
    let began = begin("health");
    let verdict = health(url, caller, report).await;
    report.add("health".to_owned(), began, verdict);
}

/// The interfaces of a card that the options choose.
fn chosen(card: &Value, options: &CheckServer) -> Vec<Interface> {
    let mut all = Interface::of(card);
    let old = all.first().is_some_and(|first| first.old);
    all.retain(|one| {
        options
            .interface
            .as_ref()
            .map_or(one.old == old, |it| *it == one.name())
    });
    all
}

async fn card(
    url: &str,
    caller: &Caller,
    options: &CheckServer,
) -> Result<(Verdict, Value), Fault> {
    let read = async |path: &str| {
        let request = caller.request(Method::GET, &format!("{url}/.well-known/{path}"));
        caller.open(request, None).await?.result().await
    };
    let card = match read("agent-card.json").await {
        // The path of 0.2.
        Err(fault) if fault.status == 404 => read("agent.json").await.map_err(|_| fault)?,
        card => card?,
    };
    let interfaces = chosen(&card, options);
    let name = text(&card, "/name").unwrap_or_default();
    let version = text(&card, "/version").unwrap_or_default();
    let foreign = interfaces
        .iter()
        .find(|one| caller.key_for(&one.url).is_none());
    let verdict = match foreign.filter(|_| options.key.is_some()) {
        _ if interfaces.is_empty() => Fails("it has no interface that can be checked".to_owned()),
        // A key belongs to one server.
        Some(one) => Fails(format!(
            "it names `{}`: check that address with this key",
            one.url
        )),
        None => {
            let names: Vec<String> = interfaces.iter().map(Interface::name).collect();
            Works(format!("{name} {version}: {}", names.join(", ")))
        }
    };
    Ok((verdict, card))
}

async fn preflight(url: &str, caller: &Caller, options: &CheckServer) -> Result<Verdict, Fault> {
    let origin = options.origin.as_deref().unwrap_or("https://example.com");
    let request = caller.request(Method::OPTIONS, &format!("{url}/"));
    let request = request.header("origin", origin);
    let request = request.header("access-control-request-method", "POST");
    let reply = caller.open(request, None).await?;
    let allowed = reply.headers.get("access-control-allow-origin");
    let allowed = allowed.and_then(|it| it.to_str().ok()).unwrap_or("none");
    let text = format!("status {}, allowed origin: {allowed}", reply.status);
    let wanted = options.origin.is_none() || allowed == origin || allowed == "*";
    Ok(match reply.status {
        500.. => Fails(text),
        _ if !wanted => Fails(text),
        400.. => NotShown(text),
        _ => Works(text),
    })
}

async fn health(url: &str, caller: &Caller, report: &mut Report) -> Result<Verdict, Fault> {
    let mut shown = NotShown("the server has no health path".to_owned());
    for path in ["/health", "/a2a-lambda/health"] {
        let request = caller.request(Method::GET, &format!("{url}{path}"));
        let mut reply = caller.open(request, None).await?;
        let body: Value = serde_json::from_slice(&reply.bytes().await?).unwrap_or_default();
        match (reply.status, text(&body, "/status")) {
            (200, Some("ok")) => shown = Works("ok".to_owned()),
            (503, _) => return Ok(Fails(body.to_string())),
            _ => continue,
        }
        let known = |name: &str| text(&body, name).map(str::to_owned);
        report.build = known("/build").or_else(|| report.build.take());
        report.settings = known("/settings").or_else(|| report.settings.take());
    }
    Ok(shown)
}

/// The steps on one interface.
struct Walk<'a> {
    options: &'a CheckServer,
    caller: &'a Caller,
    card: &'a Value,
    interface: Interface,
    /// Words that make a task, and words that make the agent ask.
    task: Option<String>,
    question: Option<String>,
}

impl Walk<'_> {
    async fn step(&mut self, name: &str) -> Result<Verdict, Fault> {
        match name.split(' ').next().unwrap_or_default() {
            "send" => self.sends().await,
            "question" => self.question().await,
            "stream" => self.streams().await,
            "background" => self.background().await,
            "file" => self.file().await,
            "webhook" => self.webhook().await,
            _ => self.refused().await,
        }
    }

    async fn open(&self, operation: &Operation, params: Value) -> Result<Reply<'_>, Fault> {
        let (method, url, body) = self.interface.request(operation, params);
        let mut request = self.caller.request(method, &url);
        if !self.interface.old {
            request = request.header("a2a-version", "1.0");
        }
        self.caller.open(request, body).await
    }

    async fn send(&self, said: &str, extras: Extras<'_>) -> Result<Value, Fault> {
        let params = self.interface.params(Some(said), extras);
        self.open(&SEND, params).await?.result().await
    }

    async fn get(&self, id: &str) -> Result<Value, Fault> {
        self.open(&GET, json!({"id": id})).await?.result().await
    }

    /// The words of the options, or the first example of each skill.
    fn examples(&self) -> Vec<String> {
        let skills = self
            .card
            .get("skills")
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        let said = skills.filter_map(|skill| text(skill, "/examples/0").map(str::to_owned));
        let said: Vec<String> = if self.options.say.is_empty() {
            said.take(EXAMPLES).collect()
        } else {
            self.options.say.clone()
        };
        if said.is_empty() {
            vec!["hello".to_owned()]
        } else {
            said
        }
    }

    /// Sends examples until one makes a task and one makes the agent ask.
    async fn sends(&mut self) -> Result<Verdict, Fault> {
        let mut seen = Vec::new();
        for said in self.examples() {
            let result = self.send(&said, Extras::default()).await?;
            let state = state(&result).unwrap_or_else(|| "a message".to_owned());
            seen.push(format!("`{said}`: {state}"));
            match state.as_str() {
                "failed" | "rejected" => {
                    return Ok(Fails(format!("{}: {}", seen.join(", "), words(&result))));
                }
                "input-required" => self.question = Some(said),
                "a message" => {}
                _ => self.task = self.task.take().or(Some(said)),
            }
            if self.task.is_some() && self.question.is_some() {
                break;
            }
        }
        self.task = self.task.take().or_else(|| self.question.clone());
        Ok(Works(seen.join(", ")))
    }

    async fn question(&self) -> Result<Verdict, Fault> {
        let Some(said) = &self.question else {
            return Ok(NotShown(
                "the agent asked nothing back; `--say` names words".to_owned(),
            ));
        };
        let asked = self.send(said, Extras::default()).await?;
        let (end, answers) = self.answer(&asked).await?;
        let text = format!("`{}`, {answers} answers: {end}", words(&asked));
        Ok(if end == "failed" {
            Fails(text)
        } else {
            Works(text)
        })
    }

    /// Answers until the agent asks no more; the last state and the number of answers.
    async fn answer(&self, asked: &Value) -> Result<(String, usize), Fault> {
        let extras = Extras {
            task: Some(asked),
            ..Extras::default()
        };
        for number in 1.. {
            let result = self.send(ANSWER, extras).await?;
            let Some(state) = state(&result).filter(|_| task_id(&result) == task_id(asked)) else {
                return Err(Fault::new("the answer did not continue its task"));
            };
            if state != "input-required" || number == ANSWERS {
                return Ok((state, number));
            }
        }
        Err(Fault::new("nothing was answered"))
    }

    async fn streams(&self) -> Result<Verdict, Fault> {
        if self.card.pointer("/capabilities/streaming") != Some(&Value::Bool(true)) {
            return Ok(NotShown("the card offers no streams".to_owned()));
        }
        let examples = self.examples();
        let said = self.task.as_ref().or(examples.first()).map(String::as_str);
        let began = Instant::now();
        let mut stream = self
            .open(&STREAM, self.interface.params(said, Extras::default()))
            .await?;
        let mut times = Vec::new();
        let mut last = None;
        while let Some(event) = stream.event().await? {
            times.push(began.elapsed());
            last = state(&event).or(last);
        }
        let (Some(first), Some(end)) = (times.first(), times.last()) else {
            return Ok(Fails("it ended without an event".to_owned()));
        };
        let sent = format!(
            "{} events until {}, the first after {} ms, the last after {} ms",
            times.len(),
            last.unwrap_or_else(|| "a message".to_owned()),
            first.as_millis(),
            end.as_millis()
        );
        if let Some(verdict) = self.follows(&sent).await? {
            return Ok(verdict);
        }
        // Without a question only a long task shows whether something holds events back.
        let spread = end.saturating_sub(*first);
        Ok(match spread * 10 < *end {
            _ if spread >= LONG => Works(sent),
            true if *end >= LONG && times.len() > 1 => Fails(format!("{sent}: all at once")),
            _ => NotShown(format!(
                "{sent}: too short to show that they come one by one"
            )),
        })
    }

    /// Follows a task that waits for an answer: its first event has to come before the answer.
    /// None if the server has no such streams.
    async fn follows(&self, sent: &str) -> Result<Option<Verdict>, Fault> {
        let Some(said) = &self.question else {
            return Ok(None);
        };
        let asked = self.send(said, Extras::default()).await?;
        let began = Instant::now();
        let mut opening = pin!(async {
            let mut stream = self
                .open(&SUBSCRIBE, json!({"id": task_id(&asked)}))
                .await?;
            let first = stream.event().await?;
            Ok::<_, Fault>((stream, first))
        });
        let opened = timeout(FIRST, &mut opening).await;
        let early = match opened {
            Ok(Ok((stream, Some(_)))) => Some((stream, began.elapsed())),
            // The server does not stream a task that waits.
            Ok(_) => return Ok(None),
            Err(_) => None,
        };
        self.answer(&asked).await?;
        let Some((mut stream, first)) = early else {
            let late = opening.await.is_ok();
            let came = if late {
                "only with the last one"
            } else {
                "never"
            };
            return Ok(Some(Fails(format!(
                "the first event came {came}; the send: {sent}"
            ))));
        };
        let next = stream.event().await?;
        let first = first.as_millis();
        Ok(Some(match next {
            None => Fails(format!(
                "a followed task showed no answer; the send: {sent}"
            )),
            Some(_) => Works(format!(
                "a followed task in {first} ms, before its answer; {sent}"
            )),
        }))
    }

    async fn background(&self) -> Result<Verdict, Fault> {
        let Some(said) = &self.task else {
            return Ok(NotShown(
                "the agent makes no tasks of these words".to_owned(),
            ));
        };
        let extras = Extras {
            background: true,
            ..Extras::default()
        };
        let result = self.send(said, extras).await?;
        let began = Instant::now();
        let first = state(&result).unwrap_or_else(|| "a message".to_owned());
        if !matches!(first.as_str(), "submitted" | "working") {
            return Ok(NotShown(format!(
                "the response waited for its task: {first}"
            )));
        }
        while began.elapsed() < BACKGROUND {
            let now = state(&self.get(task_id(&result)).await?).unwrap_or_default();
            match now.as_str() {
                "submitted" | "working" => sleep(Duration::from_millis(250)).await,
                "failed" | "rejected" => return Ok(Fails(format!("{first}, then {now}"))),
                _ => return Ok(Works(format!("{first}, then {now}"))),
            }
        }
        Ok(Fails(format!("{first} for {} s", BACKGROUND.as_secs())))
    }

    /// Sends a file, and reads it from the history of its task.
    async fn file(&self) -> Result<Verdict, Fault> {
        let lists = ["/defaultInputModes"]
            .iter()
            .filter_map(|it| self.card.pointer(it));
        let skills = self
            .card
            .get("skills")
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        let lists = skills
            .filter_map(|skill| skill.get("inputModes"))
            .chain(lists);
        let mut modes = lists
            .filter_map(Value::as_array)
            .flatten()
            .filter_map(Value::as_str);
        let plain = |mode: &&str| {
            mode.contains('/') && !mode.ends_with("/json") && !mode.starts_with("text/")
        };
        let Some(mode) = modes.find(plain) else {
            return Ok(NotShown("the card names no media type of files".to_owned()));
        };
        let mode = mode
            .replace("*/*", "application/octet-stream")
            .replace('*', "png");
        let content: Vec<u8> = b"a2a-lambda check\n"
            .iter()
            .copied()
            .cycle()
            .take(FILE)
            .collect();
        let extras = Extras {
            file: Some((&mode, &content)),
            ..Extras::default()
        };
        let params = self.interface.params(None, extras);
        let mut result = self.open(&SEND, params).await?.result().await?;
        if state(&result).is_some_and(|state| state == "failed") {
            return Ok(Fails(format!(
                "the task of a {mode} failed: {}",
                words(&result)
            )));
        }
        if state(&result).is_some() {
            result = self.get(task_id(&result)).await?;
        }
        let mut sizes = Vec::new();
        let mut same = false;
        for file in files(&result) {
            let bytes = match file {
                Ok(bytes) => bytes,
                Err(url) => self.download(&url).await?,
            };
            same |= bytes == content;
            sizes.push(bytes.len().to_string());
        }
        let text = format!("{FILE} bytes of {mode}; back: {} bytes", sizes.join(", "));
        Ok(match sizes.is_empty() {
            true => NotShown("the agent keeps no history with the file".to_owned()),
            false if same => Works(text),
            false => Fails(format!("{text}, and none is the file that was sent")),
        })
    }

    async fn download(&self, url: &str) -> Result<Vec<u8>, Fault> {
        let mut reply = self
            .caller
            .open(self.caller.request(Method::GET, url), None)
            .await?;
        let bytes = reply.bytes().await?;
        match reply.status {
            200 => Ok(bytes.to_vec()),
            status => Err(Fault::new(format!("a file is not served: status {status}"))),
        }
    }

    async fn webhook(&self) -> Result<Verdict, Fault> {
        let offered = self.card.pointer("/capabilities/pushNotifications");
        let Some(said) = self
            .task
            .as_ref()
            .filter(|_| offered == Some(&Value::Bool(true)))
        else {
            return Ok(NotShown(
                "the card offers none, or no words make a task".to_owned(),
            ));
        };
        let receiver = Receiver::open(self.options.webhook_port, TOKEN).await;
        let mut receiver = receiver.map_err(Fault::new)?;
        let url = self
            .options
            .webhook
            .clone()
            .unwrap_or_else(|| receiver.url.clone());
        let local = ["://127.", "://localhost", "://[::1]"]
            .iter()
            .any(|it| self.interface.url.contains(it));
        if self.options.webhook.is_none() && !local {
            return Ok(NotShown(
                "it cannot reach this machine; `--webhook` names a way".to_owned(),
            ));
        }
        let extras = Extras {
            webhook: Some((&url, TOKEN)),
            ..Extras::default()
        };
        match self.send(said, extras).await {
            Err(fault) if fault.status < 500 && self.options.webhook.is_none() => {
                return Ok(NotShown(format!("it refuses `{url}`: {fault}")));
            }
            sent => sent?,
        };
        Ok(match receiver.next().await {
            Some(true) => Works("an event with its token".to_owned()),
            Some(false) => Fails("an event without its token".to_owned()),
            None => Fails(format!("no event came to `{url}`")),
        })
    }

    /// Asks for a task that is not there, and without the key.
    async fn refused(&self) -> Result<Verdict, Fault> {
        let (method, url, body) = self.interface.request(&GET, json!({"id": "check-unknown"}));
        let text = match self.get("check-unknown").await {
            Err(fault) if fault.code == Some(-32001) || fault.status == 404 => fault.to_string(),
            Err(fault) => return Ok(Fails(format!("an unknown task: {fault}"))),
            Ok(_) => return Ok(Fails("an unknown task was found".to_owned())),
        };
        if self.caller.key_for(&url).is_none() {
            return Ok(Works(text));
        }
        let request = http::Request::builder().method(method).uri(&url);
        let status = self
            .caller
            .open(request.header("a2a-version", "1.0"), body)
            .await?
            .status;
        let text = format!("{text}; without the key {status}");
        Ok(if matches!(status, 401 | 403) {
            Works(text)
        } else {
            Fails(text)
        })
    }
}
