//! Sends what turns do to a collector of OpenTelemetry: OTLP over HTTP, as JSON.
//!
//! A span is a row of a trace, without its content. `docs/local.md` has the table of names.

use crate::process::RunError;
use crate::traces::TraceKey;
use a2a_lambda::outbound::{AddressPolicy, Fetcher, OutboundUrl};
use a2a_lambda::settings::{ModelProvider, Settings};
use a2a_lambda::skill::{AgentDefinition, TraceRow};
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Method};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// Spans that wait for the collector, and tasks whose last turn is known.
const MOST: usize = 1024;
/// Spans of one request, and how long it may take.
const BATCH: usize = 256;
const PATIENCE: Duration = Duration::from_secs(10);
/// The facts of rows that are attributes.
const ATTRIBUTES: [(&str, &str); 7] = [
    ("model", "gen_ai.request.model"),
    ("inputTokens", "gen_ai.usage.input_tokens"),
    ("outputTokens", "gen_ai.usage.output_tokens"),
    ("cachedTokens", "gen_ai.usage.cache_read.input_tokens"),
    ("task", "a2a.task"),
    ("turn", "a2a.turn"),
    ("error", "error.type"),
];

/// The spans for a collector.
#[derive(Debug)]
pub(crate) struct Spans {
    queue: Sender<Value>,
    agent: String,
    provider: &'static str,
    /// The last turn of each task: other rows are below it.
    turns: Mutex<BTreeMap<TraceKey, TraceRow>>,
}

impl Spans {
    /// Sends spans to the collector at `base`, if there is one.
    ///
    /// # Errors
    /// When the URL cannot be used.
    pub(crate) fn start(
        base: Option<&str>,
        agent: &AgentDefinition,
        settings: &Settings,
    ) -> Result<Option<Self>, RunError> {
        let Some(base) = base else { return Ok(None) };
        let url = format!("{}/v1/traces", base.trim_end_matches('/'));
        let url = OutboundUrl::parse(&url, AddressPolicy::Anything)
            .map_err(|error| format!("`--otlp {base}` cannot be used: the URL {error}"))?;
        let (queue, spans) = channel(MOST);
        let agent = agent.manifest().name.clone();
        tokio::spawn(send(url, agent.clone(), spans));
        let provider = match settings.model.as_ref().map(|model| model.provider) {
            Some(ModelProvider::Bedrock) => "aws.bedrock",
            Some(ModelProvider::OpenAi | ModelProvider::OpenAiResponses) => "openai",
            None => "_OTHER",
        };
        let spans = Self {
            queue,
            agent,
            provider,
            turns: Mutex::default(),
        };
        Ok(Some(spans))
    }

    /// Takes a row. It does not wait: what the queue has no place for is not sent.
    pub(crate) fn record(&self, key: &TraceKey, row: &TraceRow) {
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        if row.kind == "turn" {
            if turns.len() >= MOST {
                turns.clear();
            }
            turns.insert(key.clone(), row.clone());
        }
        let turn = turns.get(key).cloned().unwrap_or_default();
        drop(turns);
        if let Some(span) = self.span(row, &turn) {
            let _full = self.queue.try_send(span);
        }
    }

    /// The span of a row that has ended; `None` if it is in no trace.
    fn span(&self, row: &TraceRow, turn: &TraceRow) -> Option<Value> {
        let (own, of_turn) = (context(row, "traceparent"), context(turn, "traceparent"));
        let (trace, ..) = own.or(of_turn)?;
        let around = row.parent.as_deref();
        let parent = match (row.kind, around) {
            // A caller that does not record its trace has no span.
            ("turn", _) => context(row, "calledBy").filter(|(.., flags)| *flags == "01"),
            (_, Some(around)) if around != turn.id => None,
            _ => of_turn.filter(|(of_turn, ..)| *of_turn == trace),
        };
        let parent = parent.map(|(_, span, _)| span.to_owned());
        let parent = parent.or_else(|| around.filter(|it| it.contains('.')).map(span_id));
        let tool = row.name.rsplit(['>', '#']).nth(1).unwrap_or(&row.name);
        let model = row.facts.get("model").and_then(Value::as_str);
        let rest = row.name.strip_prefix(row.kind).unwrap_or(&row.name);
        let (operation, of, own_name, own_value) = match (row.kind, model) {
            ("turn", _) => ("invoke_agent", &*self.agent, "a2a.skill", &*row.name),
            ("tool", _) => ("execute_tool", tool, "gen_ai.tool.name", tool),
            ("model", Some(model)) => ("chat", model, "gen_ai.provider.name", self.provider),
            ("delivery", _) => ("push", "", "", ""),
            (kind, _) => (kind, rest, "", ""),
        };
        let is_client = operation == "chat" || operation == "push";
        let is_failed = row.facts.get("error").is_some_and(Value::is_string);
        let mut values = ATTRIBUTES
            .map(|(fact, name)| (name, json!(row.facts.get(fact))))
            .to_vec();
        values.push(("gen_ai.agent.name", json!(self.agent)));
        values.push(("gen_ai.conversation.id", json!(turn.facts.get("context"))));
        if !own_name.is_empty() {
            values.push(("gen_ai.operation.name", json!(operation)));
            values.push((own_name, json!(own_value)));
        }
        Some(json!({
            "traceId": trace,
            "spanId": own.map_or_else(|| span_id(&row.id), |(_, span, _)| span.to_owned()),
            "parentSpanId": parent.unwrap_or_default(),
            "name": format!("{operation} {of}").trim_end(),
            // CLIENT or INTERNAL, and ERROR, as OTLP numbers them.
            "kind": if is_client { 3 } else { 1 },
            "status": {"code": if is_failed { 2 } else { 0 }},
            "startTimeUnixNano": format!("{}000000", row.start),
            "endTimeUnixNano": format!("{}000000", row.end?),
            "attributes": values.iter().filter_map(attribute).collect::<Vec<_>>(),
        }))
    }
}

/// Sends the spans, as many at once as wait. Without an answer they are lost, with one warning.
async fn send(url: OutboundUrl, agent: String, mut spans: Receiver<Value>) {
    let fetcher = Fetcher::new(AddressPolicy::Anything, PATIENCE);
    let mut has_failed = false;
    let mut batch = Vec::new();
    while spans.recv_many(&mut batch, BATCH).await > 0 {
        let body = json!({"resourceSpans": [{
            "resource": {"attributes": [attribute(&("service.name", json!(agent)))]},
            "scopeSpans": [{"scope": {"name": "a2a-local"}, "spans": std::mem::take(&mut batch)}],
        }]});
        let body = Bytes::from(body.to_string());
        let json = HeaderValue::from_static("application/json");
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, json)]);
        let response = fetcher.send(&url, Method::POST, headers, body, 0).await;
        let is_taken = matches!(&response, Ok(response) if response.status < 300);
        if !is_taken && !has_failed {
            let (url, status) = (url.as_str(), response.map(|response| response.status));
            tracing::warn!("spans are lost until `{url}` takes them: {status:?}");
        }
        has_failed = !is_taken;
    }
}

/// Trace, span and flags of a fact that is a `traceparent`.
fn context<'r>(row: &'r TraceRow, fact: &str) -> Option<(&'r str, &'r str, &'r str)> {
    let mut members = row.facts.get(fact)?.as_str()?.split('-').skip(1);
    Some((members.next()?, members.next()?, members.next()?))
}

/// The id of the span of a row without one.
fn span_id(row: &str) -> String {
    hex::encode(
        Sha256::digest(row)
            .iter()
            .take(8)
            .copied()
            .collect::<Vec<_>>(),
    )
}

/// An attribute in the form of OTLP; `None` without a value.
fn attribute((name, value): &(&str, Value)) -> Option<Value> {
    let value = match value {
        Value::Null => return None,
        Value::String(text) => json!({"stringValue": text}),
        number => json!({"intValue": number.to_string()}),
    };
    Some(json!({"key": name, "value": value}))
}
