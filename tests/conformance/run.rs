//! Runs vectors against an agent and compares its responses.

use crate::ask::request;
use crate::official::Kind;
use crate::parsers::Rule;
use crate::pattern::{Names, compare, filled};
use crate::vector::{Asked, Expect, Given, Step, Vector};
use a2a_lambda::engine::{Clock as _, relay};
use a2a_lambda::prelude::*;
use a2a_lambda::store::queue::{TaskImage, WorkItem};
use a2a_lambda::task::{Owner, Subject, TaskId, TenantId, Timestamp};
use a2a_lambda_tests::dialect::{Dialect, RPC_ID, at};
use a2a_lambda_tests::error_rows::{Fault, Row};
use a2a_lambda_tests::frames::{Frame, frames};
use a2a_lambda_tests::remote;
use a2a_lambda_tests::world::{Live, Reply, Request, World, behind_a_gateway};
use a2a_local::queue::LocalQueue;
use serde_json::{Value, json};
use std::time::Duration;

/// The agent under test.
pub(crate) enum Agent {
    /// The conformance agent, in this process.
    Here(Box<World>),
    /// An agent that runs at a URL.
    There(String),
}

impl Agent {
    /// The agent in this process, in the given state.
    pub(crate) fn here(given: Given) -> Self {
        let agent = conformance_agent::builder(Duration::from_secs(2));
        let agent = match given {
            Given::Extended => agent.extended_skill(hidden),
            _ => agent,
        };
        let agent = agent.build();
        let world = World::serving(
            |_| agent,
            |settings| {
                settings.deployed_at = Timestamp::parse_rfc3339("2026-05-28T10:00:00Z");
                settings.push = given != Given::PushOff;
                settings.streaming = given != Given::StreamingOff;
                if given == Given::NoIdentity {
                    behind_a_gateway(settings);
                }
            },
        );
        let world = world.unwrap();
        world.store.refuse_commits(given == Given::StoreAway);
        Self::Here(Box::new(world))
    }

    /// The number of writes so far. It is 0 for an agent elsewhere and for a store that
    /// accepts no writes.
    fn writes(&self) -> usize {
        match self {
            Self::Here(world) if !world.store.refuses_commits() => world.store.writes(),
            Self::Here(_) | Self::There(_) => 0,
        }
    }

    /// Runs the queued turn of a task in the background, as a worker does. Elsewhere one does.
    async fn work_on(&self, task: &Value) {
        let Self::Here(world) = self else { return };
        let id = task.as_str().and_then(|id| TaskId::parse(id).ok());
        let owner = Owner {
            tenant: TenantId::parse("local").unwrap(),
            subject: Subject::parse("local").unwrap(),
        };
        let now = world.clock.now();
        let record = world
            .store
            .memory()
            .records
            .load(&owner, &id.unwrap(), now)
            .await;
        let image = TaskImage::of(&record.unwrap().unwrap());
        let queue: LocalQueue<WorkItem> =
            LocalQueue::new(world.clock.clone(), Duration::from_secs(60));
        assert!(relay(&queue, &[image], now).await.is_empty());
        let engine = world.engine().clone();
        tokio::spawn(async move {
            let delivery = queue.receive().await;
            engine
                .turns
                .work(&delivery.item, &delivery.receipt, None)
                .await;
        });
    }

    async fn open(&self, request: &Request) -> Result<Live, String> {
        match self {
            Self::Here(world) => Ok(world.open(request).await),
            Self::There(base) => remote::open(base, request)
                .await
                .map_err(|error| error.to_string()),
        }
    }
}

/// A skill that only the extended card shows.
#[skill(id = "hidden", name = "Hidden", tags = ["test"])]
async fn hidden(_: String) -> AgentResult<String> {
    Ok("hidden".to_owned())
}

/// The dialects that a list of selectors names.
pub(crate) fn selected(selectors: &[String]) -> Vec<Dialect> {
    let chosen = |dialect: &Dialect| selectors.iter().any(|it| fits(it, *dialect));
    Dialect::ALL.into_iter().filter(chosen).collect()
}

/// The generation and the binding of a dialect.
const fn words(dialect: Dialect) -> (&'static str, &'static str) {
    match dialect {
        Dialect::Rpc10 => ("1.0", "jsonrpc"),
        Dialect::Rest10 => ("1.0", "rest"),
        Dialect::Rpc03 => ("0.3", "jsonrpc"),
        Dialect::Rest03 => ("0.3", "rest"),
        Dialect::Rpc01 => ("0.1", "jsonrpc"),
        Dialect::Path01 => ("0.1", "paths"),
    }
}

fn fits(selector: &str, dialect: Dialect) -> bool {
    let (generation, binding) = words(dialect);
    let known =
        |word: &str| ["1.0", "0.3", "0.1", "jsonrpc", "rest", "paths", "all"].contains(&word);
    assert!(
        selector.split(' ').all(known),
        "unknown dialect selector {selector:?}"
    );
    selector
        .split(' ')
        .all(|word| word == "all" || word == generation || word == binding)
}

/// What a step expects in a dialect.
pub(crate) fn expected(step: &Step, dialect: Dialect) -> Expect {
    let others = step.otherwise.iter();
    let others = others.filter(|(selector, _)| fits(selector, dialect));
    others.fold(step.expect.clone(), |expect, (_, other)| expect.but(other))
}

/// One vector in one dialect.
pub(crate) struct Run<'v> {
    pub(crate) agent: &'v Agent,
    pub(crate) dialect: Dialect,
    pub(crate) names: Names,
    /// The open stream, if there is one.
    pub(crate) live: Option<Live>,
    /// Every response of 1.0.
    pub(crate) answers: Vec<(Kind, Value)>,
    /// Every JSON-RPC request of 1.0 that is not refused.
    pub(crate) requests: Vec<Value>,
    /// The rule of a client by which requests are printed and answers are read.
    pub(crate) rule: Option<&'static Rule>,
}

impl Run<'_> {
    /// Runs the steps in order.
    ///
    /// # Errors
    /// The first difference, with its step and the response.
    pub(crate) async fn vector(&mut self, vector: &Vector) -> Result<(), String> {
        for (number, step) in vector.steps.iter().enumerate() {
            let here = step.dialects.is_empty() || selected(&step.dialects).contains(&self.dialect);
            if here {
                let done = self.step(step).await;
                done.map_err(|why| format!("step {}: {why}", number + 1))?;
            }
        }
        Ok(())
    }

    async fn step(&mut self, step: &Step) -> Result<(), String> {
        let expect = expected(step, self.dialect);
        if step.after_ms > 0 {
            tokio::time::sleep(Duration::from_millis(step.after_ms)).await;
        }
        if step.ask == Asked::Read {
            let mut live = self.live.take().ok_or("no stream is open")?;
            let seen = read(&mut live, step.leave_open_after).await?;
            if step.leave_open_after.is_some() {
                self.live = Some(live);
            }
            return self.seen(&expect, &seen);
        }
        let mut request = request(step, self.dialect, &self.names);
        let streams = matches!(step.ask, Asked::Stream | Asked::Subscribe);
        if let Some(rule) = self.rule {
            request = rule.print(request, streams);
        }
        if self.dialect == Dialect::Rpc10 && expect.error.is_none() && expect.status.is_none() {
            // Not a batch, not the body of another binding.
            let body = serde_json::from_slice(&request.body).ok();
            self.requests.extend(body.filter(Value::is_object));
        }
        let written = self.agent.writes();
        let mut live = self.agent.open(&request).await?;
        let mut reply = if let Some(count) = step.leave_open_after {
            let seen = read(&mut live, Some(count)).await?;
            let reported = self.seen(&expect, &seen);
            if let Some(id) = seen.iter().rev().find_map(|frame| frame.id.clone()) {
                self.names.insert("cut".to_owned(), id.into());
            }
            let status = live.status;
            self.live = Some(live);
            return reported.map_err(|why| format!("{why}\n      {status} {seen:?}"));
        } else {
            live.finish().await
        };
        if let Some(rule) = self.rule {
            reply = rule.read(&request, reply, streams, expect.error.is_some())?;
        }
        let mut compared = self.answer(step, &expect, &reply);
        if step.wait == Some(false) && compared.is_ok() {
            let task = self.dialect.task(&reply);
            self.agent.work_on(at(&task, "/id")).await;
        }
        let more = self.agent.writes() - written;
        if compared.is_ok() && expect.error.is_some() && more > 0 {
            compared = Err(format!("refused after {more} writes, expected 0"));
        }
        compared.map_err(|why| {
            let sent = String::from_utf8_lossy(&request.body);
            let shown: String = sent.chars().take(2000).collect();
            let text: String = reply.text().chars().take(4000).collect();
            format!(
                "{why}\n      {} {} {shown}\n      {} {text}",
                request.method, request.target, reply.status
            )
        })
    }

    fn answer(&mut self, step: &Step, expect: &Expect, reply: &Reply) -> Result<(), String> {
        for (name, pattern) in &expect.headers {
            let found = reply
                .headers
                .contains_key(name)
                .then(|| json!(reply.header(name)));
            self.compare(name, pattern, found.as_ref())?;
        }
        let body = reply.json();
        if let Some(pattern) = &expect.body {
            self.compare("body", pattern, Some(&body))?;
        }
        self.keep(step, reply, &body);
        if let Some(name) = &expect.error {
            return self.fault(Row::named(name)?, expect).check(reply);
        }
        self.compare(
            "HTTP status",
            &json!(expect.status.unwrap_or(200)),
            Some(&json!(reply.status)),
        )?;
        if reply.header("content-type") == "text/event-stream" {
            let frames = frames(reply)?;
            self.seen(expect, &frames)?;
            return self.closed(step, &frames);
        }
        let result = self.dialect.result(reply);
        if self.dialect.is_rpc() && step.ask != Asked::Raw {
            let default = json!(RPC_ID);
            let id = expect.rpc_id.as_ref().unwrap_or(&default);
            self.compare("id", id, body.get("id"))?;
            self.compare("jsonrpc", &json!("2.0"), body.get("jsonrpc"))?;
        }
        if let Some(pattern) = &expect.result {
            self.compare("result", pattern, Some(&result))?;
        }
        for (name, pointer) in &expect.save {
            let value = result
                .pointer(pointer)
                .ok_or_else(|| format!("nothing at {pointer}"))?;
            self.names.insert(name.clone(), value.clone());
        }
        self.task(expect, &self.dialect.task(reply))
    }

    /// Stores a response of 1.0 for the test with the official types.
    fn keep(&mut self, step: &Step, reply: &Reply, body: &Value) {
        let Some(kind) = Kind::of(step.ask).filter(|_| self.dialect.is_v10()) else {
            return;
        };
        if kind == Kind::Event || step.path.is_some() {
            return;
        }
        if body.get("error").is_none() {
            let result = self.dialect.result(reply);
            self.answers.push((kind, result));
        } else if self.dialect.is_rpc() && body.get("id").is_some_and(|id| !id.is_null()) {
            self.answers.push((Kind::Error, body.clone()));
        }
    }

    /// The error that a step expects.
    fn fault(&self, row: Row, expect: &Expect) -> Fault {
        let mut fault = Fault::new(self.dialect, row);
        if let Some(id) = &expect.rpc_id {
            fault = fault.id(id.clone());
        }
        match &expect.field {
            Some(field) => {
                let parts = format!("message.{}", self.dialect.parts());
                fault.at(field.replacen("message.parts", &parts, 1))
            }
            None => fault,
        }
    }

    fn task(&mut self, expect: &Expect, task: &Value) -> Result<(), String> {
        self.remember(task);
        let dialect = self.dialect;
        if let Some(pattern) = &expect.task {
            self.compare("task", pattern, Some(task))?;
        }
        if let Some(state) = &expect.state {
            self.compare("state", &json!(state), Some(&json!(dialect.state(task))))?;
        }
        if let Some(text) = &expect.artifact {
            let found = dialect.words(at(task, "/artifacts/0"));
            self.compare("artifact", &json!(text), Some(&json!(found)))?;
        }
        if let Some(texts) = &expect.said {
            let history = at(task, "/history").as_array().cloned().unwrap_or_default();
            let found: Vec<String> = history.iter().map(|it| dialect.words(it)).collect();
            self.compare("history", &json!(texts), Some(&json!(found)))?;
        }
        Ok(())
    }

    /// Stores the ids of a task for the placeholders.
    fn remember(&mut self, task: &Value) {
        let id = task.get("id").or_else(|| task.get("taskId"));
        if let Some(id) = id.filter(|id| id.is_string() && task.get("status").is_some()) {
            self.names.insert("task".to_owned(), id.clone());
            let context = self.dialect.context(task);
            self.names.insert("context".to_owned(), context.into());
        }
    }

    fn seen(&mut self, expect: &Expect, seen: &[Frame]) -> Result<(), String> {
        let payloads: Vec<Value> = seen.iter().map(|frame| self.payload(frame)).collect();
        if self.dialect.is_v10() {
            let events = payloads.iter().filter(|it| it.get("code").is_none());
            self.answers
                .extend(events.map(|it| (Kind::Event, it.clone())));
        }
        for payload in &payloads {
            let task = payload.get("task").or_else(|| payload.get("statusUpdate"));
            self.remember(task.unwrap_or(payload));
        }
        let reported: Vec<String> = seen
            .iter()
            .map(|frame| self.dialect.described(frame))
            .collect();
        if let Some(events) = &expect.events {
            self.compare("events", &json!(events), Some(&json!(reported)))?;
        }
        let mut rest = reported.iter();
        for wanted in &expect.among {
            if !rest.any(|found| found == wanted) {
                return Err(format!(
                    "{wanted:?} is missing or out of order: {reported:?}"
                ));
            }
        }
        for (place, pattern, found) in [
            ("first", &expect.first, payloads.first()),
            ("last", &expect.last, payloads.last()),
        ] {
            if let Some(pattern) = pattern {
                self.compare(place, pattern, found)?;
            }
        }
        Ok(())
    }

    /// Checks that hold for every stream that was read to its end.
    fn closed(&self, step: &Step, frames: &[Frame]) -> Result<(), String> {
        let finals: Vec<Option<bool>> = frames.iter().map(|it| self.dialect.is_final(it)).collect();
        let flagged = finals.iter().filter(|it| **it == Some(true)).count();
        // 1.0 has no member `final`; 0.3 and 0.1 set it on the last event only.
        match (self.dialect.is_v10(), step.ask) {
            (true, _) if finals.iter().any(Option::is_some) => {
                Err("a stream of 1.0 has a member `final`".to_owned())
            }
            (false, Asked::Stream | Asked::Subscribe)
                if flagged > 1 || flagged == 1 && finals.last() != Some(&Some(true)) =>
            {
                Err(format!(
                    "`final` is not on the last event alone: {finals:?}"
                ))
            }
            _ => Ok(()),
        }
    }

    fn payload(&self, frame: &Frame) -> Value {
        let result = frame.data.get("result").or_else(|| frame.data.get("error"));
        match result {
            Some(result) if self.dialect.is_rpc() => result.clone(),
            _ => frame.data.clone(),
        }
    }

    fn compare(&self, place: &str, pattern: &Value, found: Option<&Value>) -> Result<(), String> {
        let pattern = match pattern {
            Value::String(text) => &filled(text, &self.names),
            other => other,
        };
        compare(place, pattern, found, &self.names)
    }
}

/// Reads the next `count` events, or all of them.
async fn read(live: &mut Live, count: Option<usize>) -> Result<Vec<Frame>, String> {
    let mut seen = Vec::new();
    while count.is_none_or(|count| seen.len() < count) {
        match live.next().await? {
            Some(frame) => seen.push(frame),
            None if count.is_none() => break,
            None => return Err(format!("the stream ended after {} events", seen.len())),
        }
    }
    Ok(seen)
}
