//! A ring of parsers: rules of clients that no other step runs, each with its source. Every
//! vector passes through every rule: requests are printed by it, and answers are read by it.

use a2a_lambda_tests::dialect::Dialect;
use a2a_lambda_tests::frames::frames;
use a2a_lambda_tests::world::{Reply, Request};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// A rule of a client.
#[derive(Debug)]
pub(crate) struct Rule {
    /// The client.
    pub(crate) client: &'static str,
    /// What it does.
    pub(crate) does: &'static str,
    /// Where its source does so.
    pub(crate) source: &'static str,
    /// What it speaks.
    pub(crate) dialects: &'static [Dialect],
    print: fn(Request, bool) -> Request,
    read: fn(&Request, &Reply, bool) -> Result<(), String>,
}

/// The table.
pub(crate) const RULES: [Rule; 5] = [
    Rule {
        client: "a2a-go 2.3.1",
        does: "names events only on a stream, and reads and joins lines that begin with `data:`",
        source: "a2aclient/jsonrpc.go, internal/sse/sse.go ParseDataStream",
        dialects: &[Dialect::Rpc10],
        print: print_events_only,
        read: read_data_lines,
    },
    Rule {
        client: "a2a-dotnet 1.0",
        does: "names events only on a stream, and reads it with a parser of the whole standard",
        source: "src/A2A/Client/A2AClient.cs:213, :231 SseParser",
        dialects: &[Dialect::Rpc10],
        print: print_events_only,
        read: read_standard_events,
    },
    Rule {
        client: "a2a-dotnet 1.0, REST",
        does: "names no type but events, and reads errors of the type `application/json` only",
        source: "src/A2A/Client/A2AHttpJsonClient.cs:349, :415",
        dialects: &[Dialect::Rest10],
        print: print_events_only,
        read: read_plain_json,
    },
    Rule {
        client: "a2a-js 1.3.0, 0.3.14",
        does: "compares the id of each answer and of each event with that of the request",
        source: "src/client/transports/json_rpc_transport.ts:258, :358",
        dialects: &[Dialect::Rpc10, Dialect::Rpc03],
        print: |request, _| request,
        read: read_ids,
    },
    Rule {
        client: "a2a-java 1.2.0",
        does: "prints every field without presence",
        source: "spec-grpc/…/JSONRPCUtils.java:580 alwaysPrintFieldsWithNoPresence",
        dialects: &[Dialect::Rpc10],
        print: |request, _| print_every_field(request),
        read: |_, _, _| Ok(()),
    },
];

impl Rule {
    /// The request as the client prints it. `streams`: its method streams.
    pub(crate) fn print(&self, request: Request, streams: bool) -> Request {
        (self.print)(request, streams)
    }

    /// Reads the answer as the client does. An error that the vector `expects` is returned as a
    /// plain answer, however it came.
    ///
    /// # Errors
    /// What the client does not see.
    pub(crate) fn read(
        &self,
        request: &Request,
        reply: Reply,
        streams: bool,
        expects: bool,
    ) -> Result<Reply, String> {
        let fault = |why| format!("{}: {why}\n      {}", self.client, reply.text());
        (self.read)(request, &reply, streams).map_err(fault)?;
        Ok(if expects {
            without_stream(reply)
        } else {
            reply
        })
    }
}

/// An error that is the only event of a stream, as a plain answer.
fn without_stream(mut reply: Reply) -> Reply {
    if let Ok([only]) = frames(&reply).as_deref()
        && only.data.get("error").is_some()
    {
        reply.body = only.data.to_string().into_bytes();
        let json = http::HeaderValue::from_static("application/json");
        reply.headers.insert("content-type", json);
    }
    reply
}

fn print_events_only(request: Request, streams: bool) -> Request {
    let is_named = request.headers.iter().any(|(name, _)| name == "accept");
    match streams && !is_named {
        true => request.header("accept", "text/event-stream"),
        false => request,
    }
}

/// What a parser has made of a stream, against what the strict parser of these tests makes.
fn compare(payloads: &[String], reply: &Reply) -> Result<(), String> {
    let events: Vec<Value> = frames(reply)?.into_iter().map(|it| it.data).collect();
    let payloads = payloads.iter().map(|text| serde_json::from_str(text));
    let payloads: Vec<Value> = payloads
        .collect::<Result<_, _>>()
        .map_err(|it| it.to_string())?;
    match payloads == events {
        true => Ok(()),
        false => Err(format!("it sees {payloads:?}")),
    }
}

/// Whether the client reads the body as a stream: it looks at the HTTP status only.
fn is_read_as_stream(request: &Request, reply: &Reply, streams: bool) -> bool {
    let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    // The official kit demands a plain error here: docs/clients.md has this row.
    let is_ended = body["method"] == "SubscribeToTask" && reply.json()["error"]["code"] == -32004;
    streams && reply.status == 200 && !is_ended
}

fn read_data_lines(request: &Request, reply: &Reply, streams: bool) -> Result<(), String> {
    if !is_read_as_stream(request, reply, streams) {
        return Ok(());
    }
    let text = reply.text();
    let blocks = text.split("\n\n").map(|block| {
        let lines = block.lines().filter_map(|line| line.strip_prefix("data:"));
        let lines: Vec<&str> = lines.map(|it| it.strip_prefix(' ').unwrap_or(it)).collect();
        lines.join("\n")
    });
    let payloads: Vec<String> = blocks.filter(|data| !data.is_empty()).collect();
    match payloads.is_empty() {
        true => Err("a stream without events that ended well".to_owned()),
        false => compare(&payloads, reply),
    }
}

/// The standard (HTML, §9.2.6): an event is dispatched at a blank line, if it has data.
fn read_standard_events(request: &Request, reply: &Reply, streams: bool) -> Result<(), String> {
    if !is_read_as_stream(request, reply, streams) {
        return Ok(());
    }
    let (mut payloads, mut data) = (Vec::new(), Vec::new());
    for line in reply.text().split('\n') {
        let line = line.strip_suffix('\r').unwrap_or(line);
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        match field {
            "" if line.is_empty() && !data.is_empty() => {
                payloads.push(data.join("\n"));
                data.clear();
            }
            "data" => data.push(value.strip_prefix(' ').unwrap_or(value).to_owned()),
            // A comment, a blank line without data, or another field.
            _ => {}
        }
    }
    match payloads.is_empty() {
        true => Err("a stream without events that ended well".to_owned()),
        false => compare(&payloads, reply),
    }
}

fn read_plain_json(request: &Request, reply: &Reply, _: bool) -> Result<(), String> {
    let has = |value: &str| request.headers.iter().any(|(_, it)| it.contains(value));
    let media = reply.header("content-type");
    // A vector that names the type of A2A is not this client.
    let is_other = has("application/a2a+json") || has("*/*");
    match reply.status < 300 || media == "application/json" || is_other {
        true => Ok(()),
        false => Err(format!("it does not read an error of the type {media}")),
    }
}

/// Whether a printer wrote the body. None writes a member twice, for example.
fn is_printed(request: &Request, body: &Value) -> bool {
    body["method"].is_string() && body.to_string().as_bytes() == request.body
}

fn read_ids(request: &Request, reply: &Reply, _: bool) -> Result<(), String> {
    let asked: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    let answers = match reply.header("content-type") {
        "text/event-stream" => frames(reply)?.into_iter().map(|it| it.data).collect(),
        _ => vec![reply.json()],
    };
    let is_client = is_printed(request, &asked) && asked["id"].is_u64() && reply.status == 200;
    match answers.iter().find(|answer| answer["id"] != asked["id"]) {
        Some(answer) if is_client => Err(format!("it expects the id {}: {answer}", asked["id"])),
        _ => Ok(()),
    }
}

/// The methods and the request types of A2A 1.0, each with its fields without presence. They are
/// those of the official proto: `tests/interop/python/values_v1.py` compares them.
#[derive(Debug, Deserialize)]
pub(crate) struct Proto {
    pub(crate) methods: BTreeMap<String, String>,
    messages: BTreeMap<String, Map<String, Value>>,
}

impl Proto {
    pub(crate) fn read() -> Self {
        serde_json::from_str(include_str!("printed.json")).unwrap()
    }

    /// Adds the fields that a message of this type lacks, also to those inside.
    pub(crate) fn print(&self, name: &str, message: &mut Value) {
        let Value::Object(members) = message else {
            return;
        };
        for (field, default) in &self.messages[name] {
            let inner = default.get("of").or_else(|| default.get(0));
            let inner = inner.and_then(Value::as_str);
            let has_proto_name = members.contains_key(&snake(field));
            match (members.get_mut(field), inner) {
                (Some(Value::Array(items)), Some(inner)) => {
                    items.iter_mut().for_each(|item| self.print(inner, item));
                }
                (Some(value), Some(inner)) => self.print(inner, value),
                (Some(_), None) => {}
                // A message has presence. No printer writes the name of the proto.
                (None, _) if default.is_object() || has_proto_name => {}
                (None, inner) => {
                    let empty = inner.map_or(default.clone(), |_| Value::Array(Vec::new()));
                    members.insert(field.clone(), empty);
                }
            }
        }
    }
}

fn snake(name: &str) -> String {
    let split = |letter: char| match letter.is_ascii_uppercase() {
        true => format!("_{}", letter.to_ascii_lowercase()),
        false => letter.to_string(),
    };
    name.chars().map(split).collect()
}

fn print_every_field(request: Request) -> Request {
    /// A vector of a limit stays at its limit.
    const LARGE: usize = 32 * 1024;
    let proto = Proto::read();
    let mut body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    let is_printed = is_printed(&request, &body) && request.body.len() < LARGE;
    let method = body.get("method").and_then(Value::as_str);
    match method.and_then(|method| proto.methods.get(method)) {
        Some(name) if is_printed => {
            proto.print(name, &mut body["params"]);
            request.body(body.to_string())
        }
        _ => request,
    }
}
