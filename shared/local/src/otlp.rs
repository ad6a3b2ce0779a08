//! Sends what turns do to a collector of OpenTelemetry: OTLP over HTTP, as JSON.
//!
//! A span is a row of a trace, without its content. `docs/local.md` has the table of names.

use crate::config::Serve;
use crate::process::RunError;
use crate::traces::TraceKey;
use a2a_lambda::outbound::{Fetcher, OutboundUrl, Reach};
use a2a_lambda::settings::{ModelProvider, Settings};
use a2a_lambda::skill::{AgentDefinition, TraceRow};
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Method};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// Spans that wait for the collector; more are dropped.
const QUEUE: usize = 1024;
/// Spans of one request.
const BATCH: usize = 256;
/// Tasks whose last turn is known.
const TASKS: usize = 1024;
/// How long a request may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// The kinds of spans, as OTLP numbers them.
const INTERNAL: u8 = 1;
const CLIENT: u8 = 3;
/// The facts of rows that are attributes.
const ATTRIBUTES: [(&str, &str); 10] = [
    ("model", "gen_ai.request.model"),
    ("inputTokens", "gen_ai.usage.input_tokens"),
    ("outputTokens", "gen_ai.usage.output_tokens"),
    ("cachedTokens", "gen_ai.usage.cache_read.input_tokens"),
    ("stop", "gen_ai.response.finish_reasons"),
    ("task", "a2a.task"),
    ("turn", "a2a.turn"),
    ("attempt", "a2a.attempt"),
    ("state", "a2a.state"),
    ("error", "error.type"),
];

/// The spans for a collector.
#[derive(Debug)]
pub(crate) struct Spans {
    queue: Sender<Value>,
    agent: String,
    provider: Option<&'static str>,
    /// The last turn of each task.
    turns: Mutex<BTreeMap<TraceKey, TurnSpan>>,
}

/// The span of a turn: the rows of its run are below it.
#[derive(Debug, Clone)]
struct TurnSpan {
    run: String,
    trace: String,
    span: String,
    context: Option<Value>,
}

impl Spans {
    /// Sends spans to the collector that the options name, if they name one.
    ///
    /// # Errors
    /// When the URL cannot be used.
    pub(crate) fn start(
        options: &Serve,
        agent: &AgentDefinition,
        settings: &Settings,
    ) -> Result<Option<Self>, RunError> {
        let Some(url) = &options.otlp else {
            return Ok(None);
        };
        let place = format!("{}/v1/traces", url.trim_end_matches('/'));
        let place = OutboundUrl::parse(&place, Reach::Anything)
            .map_err(|error| format!("`--otlp {url}` cannot be used: the URL {error}"))?;
        let (queue, spans) = channel(QUEUE);
        let agent = agent.manifest().name.clone();
        tokio::spawn(send(place, agent.clone(), spans));
        let provider = settings.model.as_ref().map(|model| match model.provider {
            ModelProvider::Bedrock => "aws.bedrock",
            ModelProvider::OpenAi | ModelProvider::OpenAiResponses => "openai",
        });
        Ok(Some(Self {
            queue,
            agent,
            provider,
            turns: Mutex::default(),
        }))
    }

    /// Takes a row. It does not wait: what the queue has no place for is not sent.
    pub(crate) fn record(&self, key: &TraceKey, row: &TraceRow) {
        if let Some(span) = self.span(key, row) {
            let _full = self.queue.try_send(span);
        }
    }

    /// The span of a row that has ended, if it is known which trace it is in.
    fn span(&self, key: &TraceKey, row: &TraceRow) -> Option<Value> {
        let context = |fact| {
            row.facts
                .get(fact)
                .and_then(Value::as_str)
                .and_then(members)
        };
        let (own, caller) = (context("traceparent"), context("calledBy"));
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        if let (Some((trace, span, _)), "turn") = (own, row.kind) {
            if turns.len() >= TASKS {
                turns.clear();
            }
            let turn = TurnSpan {
                run: row.id.clone(),
                trace: trace.to_owned(),
                span: span.to_owned(),
                context: row.facts.get("context").cloned(),
            };
            turns.insert(key.clone(), turn);
        }
        let (end, turn) = (row.end?, turns.get(key).cloned());
        drop(turns);
        let trace = own.or(caller).map(|(trace, ..)| trace.to_owned());
        let trace = trace.or_else(|| turn.as_ref().map(|turn| turn.trace.clone()))?;
        let turn = turn.filter(|turn| turn.trace == trace);
        let parent = match (caller, row.parent.as_deref(), &turn) {
            // A caller that records nothing has no span.
            (Some((_, span, is_sampled)), ..) => is_sampled.then(|| span.to_owned()),
            (None, Some(parent), _) if parent.contains('.') => Some(span_id(parent)),
            (None, Some(parent), Some(turn)) if turn.run == parent => Some(turn.span.clone()),
            (None, None, Some(turn)) if row.kind == "delivery" => Some(turn.span.clone()),
            _ => None,
        };
        let span = own.map_or_else(|| span_id(&row.id), |(_, span, _)| span.to_owned());
        let (name, kind, operation) = self.name(row);
        let mut attributes = self.attributes(row, operation);
        if let Some(context) = turn.and_then(|turn| turn.context) {
            attributes.insert("gen_ai.conversation.id".to_owned(), context);
        }
        let error = row.facts.get("error").filter(|error| !error.is_null());
        Some(json!({
            "traceId": trace, "spanId": span, "parentSpanId": parent.unwrap_or_default(),
            "name": name, "kind": kind, "attributes": key_values(attributes),
            "startTimeUnixNano": nanos(row.start), "endTimeUnixNano": nanos(end),
            "status": error.map_or_else(|| json!({}), |error| json!({"code": 2, "message": error})),
        }))
    }

    /// The name of a span, its kind, and its operation in the conventions for generative AI.
    fn name(&self, row: &TraceRow) -> (String, u8, Option<&'static str>) {
        let model = row.facts.get("model").and_then(Value::as_str);
        match (row.kind, model) {
            ("turn", _) => (
                format!("invoke_agent {}", self.agent),
                INTERNAL,
                Some("invoke_agent"),
            ),
            ("tool", _) => (
                format!("execute_tool {}", tool(&row.name)),
                INTERNAL,
                Some("execute_tool"),
            ),
            ("model", Some(model)) => (format!("chat {model}"), CLIENT, Some("chat")),
            ("delivery", _) => ("push".to_owned(), CLIENT, None),
            (kind, _) if kind == row.name => (kind.to_owned(), INTERNAL, None),
            (kind, _) => (format!("{kind} {}", row.name), INTERNAL, None),
        }
    }

    fn attributes(&self, row: &TraceRow, operation: Option<&str>) -> Map<String, Value> {
        let facts = ATTRIBUTES.iter().filter_map(|(fact, name)| {
            let value = row.facts.get(*fact).filter(|value| !value.is_null())?;
            Some(((*name).to_owned(), value.clone()))
        });
        let mut all: Map<String, Value> = facts.collect();
        let mut add = |name: &str, text: &str| drop(all.insert(name.to_owned(), text.into()));
        match operation {
            Some("invoke_agent") => {
                add("gen_ai.agent.name", &self.agent);
                add("a2a.skill", &row.name);
            }
            Some("execute_tool") => add("gen_ai.tool.name", tool(&row.name)),
            Some(_) => add("gen_ai.provider.name", self.provider.unwrap_or("_OTHER")),
            // The error of a delivery is a sentence, which is in the status.
            None if row.facts.contains_key("error") => add("error.type", "_OTHER"),
            None => {}
        }
        if let Some(operation) = operation {
            add("gen_ai.operation.name", operation);
        }
        all
    }
}

/// Sends the spans, as many at once as wait. Without an answer they are lost, with one warning.
async fn send(url: OutboundUrl, agent: String, mut spans: Receiver<Value>) {
    let fetcher = Fetcher::new(Reach::Anything, PATIENCE);
    let mut has_failed = false;
    let mut batch = Vec::new();
    while spans.recv_many(&mut batch, BATCH).await > 0 {
        let service = key_values(Map::from_iter([(
            "service.name".to_owned(),
            agent.clone().into(),
        )]));
        let scope = json!({"name": "a2a-local", "version": env!("CARGO_PKG_VERSION")});
        let scope_spans = json!({"scope": scope, "spans": std::mem::take(&mut batch)});
        let resource = json!({"resource": {"attributes": service}, "scopeSpans": [scope_spans]});
        let body = Bytes::from(json!({"resourceSpans": [resource]}).to_string());
        let json = HeaderValue::from_static("application/json");
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, json)]);
        let error = match fetcher.send(&url, Method::POST, headers, body, 0).await {
            Ok(response) if (200..300).contains(&response.status) => None,
            Ok(response) => Some(format!("it answered {}", response.status)),
            Err(error) => Some(error.to_string()),
        };
        if let (Some(error), false) = (&error, has_failed) {
            let url = url.as_str();
            tracing::warn!("spans are lost until `{url}` takes them: {error}");
        }
        has_failed = error.is_some();
    }
}

/// Trace, span and whether it is sampled, of a `traceparent`.
fn members(text: &str) -> Option<(&str, &str, bool)> {
    let mut members = text.split('-').skip(1);
    Some((members.next()?, members.next()?, members.next()? == "01"))
}

/// The id of the span of a row: rows have ids of their own.
fn span_id(row: &str) -> String {
    let mut id = hex::encode(Sha256::digest(row));
    id.truncate(16);
    id
}

/// The name of a tool, without the path of its step.
fn tool(step: &str) -> &str {
    let name = step.rsplit('>').next().unwrap_or(step);
    name.split('#').next().unwrap_or(name)
}

fn nanos(millis: i64) -> String {
    format!("{millis}000000")
}

/// Attributes in the form of OTLP. The reasons why a model stopped are a list.
fn key_values(attributes: Map<String, Value>) -> Vec<Value> {
    let of = |(name, value): (String, Value)| {
        let is_list = name == "gen_ai.response.finish_reasons";
        let value = match value {
            Value::String(text) => json!({"stringValue": text}),
            Value::Bool(flag) => json!({"boolValue": flag}),
            other => json!({"intValue": other.to_string()}),
        };
        let list = |value| json!({"arrayValue": {"values": [value]}});
        json!({"key": name, "value": if is_list { list(value) } else { value }})
    };
    attributes.into_iter().map(of).collect()
}
