//! Requests and responses, and what the transcript shows of them.

use super::interface::text;
use a2a_lambda::outbound::{Fetcher, OutboundUrl, Reach};
use bytes::{Bytes, BytesMut};
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, Method, Request, Uri, request};
use http_body_util::BodyExt as _;
use http_body_util::combinators::UnsyncBoxBody;
use serde_json::Value;
use std::cell::RefCell;
use std::fmt::Display;
use std::time::{Duration, Instant};
use tokio::time::timeout;

/// How long the head of a response may take, and each piece of its body.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The most bytes of a response.
const LIMIT: usize = 64 * 1024 * 1024;
/// The most characters of a text, and lines of a value, in a transcript.
const SHOWN: usize = 120;
const LINES: usize = 40;

/// Why a step has no result.
pub(super) enum Fault {
    NotShown(String),
    Fails(String),
    /// A status of 400 or more, or an error of JSON-RPC: status, code, text.
    Refused(u16, i64, String),
}

impl<E: Display> From<E> for Fault {
    fn from(cause: E) -> Self {
        Self::Fails(cause.to_string())
    }
}

/// Sends requests, with the key to one server only.
pub(super) struct CheckClient {
    fetcher: Fetcher,
    pub(super) base: String,
    key: Option<String>,
    /// The transcript: a text for each call and heading.
    pub(super) entries: RefCell<Vec<String>>,
}

impl CheckClient {
    /// A caller of the server at `base`; none if that is not a URL to which the key may go.
    pub(super) fn new(base: &str, key: Option<String>) -> Option<Self> {
        // The operator named the address, so it may be in a private network. A key goes to
        // another machine encrypted only.
        let reach = match &key {
            Some(_) if !base.starts_with("https://") => Reach::Loopback,
            _ => Reach::Anything,
        };
        OutboundUrl::parse(base, reach).ok()?;
        Some(Self {
            fetcher: Fetcher::new(reach, TIMEOUT),
            base: base.trim_end_matches('/').to_owned(),
            key,
            entries: RefCell::default(),
        })
    }

    /// The key, if there is one and `url` is of its server.
    pub(super) fn key_for(&self, url: &str) -> Option<&String> {
        let server = |url: &str| {
            let url = url.parse::<Uri>().ok()?.into_parts();
            Some((url.scheme?, url.authority?))
        };
        let is_own_server = server(url) == server(&self.base);
        self.key.as_ref().filter(|_| is_own_server)
    }

    pub(super) fn request(&self, method: Method, url: &str) -> request::Builder {
        let request = Request::builder().method(method).uri(url);
        match self.key_for(url) {
            Some(key) => request.header(AUTHORIZATION, format!("Bearer {key}")),
            None => request,
        }
    }

    /// Sends a request; the reply is there when its head is.
    pub(super) async fn open(
        &self,
        request: request::Builder,
        body: &Value,
    ) -> Result<ServerReply<'_>, Fault> {
        let bytes = body.is_null().then(String::new);
        let bytes = Bytes::from(bytes.unwrap_or_else(|| body.to_string()));
        let request = request.header(ACCEPT, "application/json, text/event-stream");
        let request = request.header(CONTENT_TYPE, "application/json");
        let request = request.body(bytes)?;
        let (method, url) = (request.method(), cut(&request.uri().to_string()));
        let entry = format!("{method} {url}{}", short(body));
        self.entries.borrow_mut().push(entry);
        let number = self.entries.borrow().len();
        let began = Instant::now();
        let (head, body) = self.fetcher.open(request).await?.into_parts();
        Ok(ServerReply {
            caller: self,
            number,
            began,
            status: head.status.as_u16(),
            headers: head.headers,
            body: body.map_err(|cause| cause.to_string()).boxed_unsync(),
            read: BytesMut::new(),
        })
    }

    /// Reads a path of the server.
    pub(super) async fn get(&self, path: &str) -> Result<Value, Fault> {
        let request = self.request(Method::GET, &format!("{}{path}", self.base));
        self.open(request, &Value::Null).await?.result().await
    }
}

/// A response whose body arrives.
pub(super) struct ServerReply<'a> {
    caller: &'a CheckClient,
    /// The number of entries when it was sent.
    number: usize,
    began: Instant,
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    body: UnsyncBoxBody<Bytes, String>,
    read: BytesMut,
}

impl ServerReply<'_> {
    /// Reads on; false at the end.
    async fn more(&mut self) -> Result<bool, Fault> {
        let Some(frame) = timeout(TIMEOUT, self.body.frame()).await? else {
            return Ok(false);
        };
        self.read.extend(frame?.into_data().ok());
        match self.read.len() {
            ..=LIMIT => Ok(true),
            _ => Err("the response is above 64 MB".into()),
        }
    }

    /// The whole body.
    pub(super) async fn bytes(&mut self) -> Result<Bytes, Fault> {
        while self.more().await? {}
        Ok(self.read.split().freeze())
    }

    /// The result in the body, out of its JSON-RPC envelope.
    pub(super) async fn result(&mut self) -> Result<Value, Fault> {
        let bytes = self.bytes().await?;
        self.read_result(&bytes)
    }

    fn read_result(&self, data: &[u8]) -> Result<Value, Fault> {
        let mut value: Value = serde_json::from_slice(data).unwrap_or_default();
        let (status, took) = (self.status, self.began.elapsed().as_millis());
        let note = format!("\n\nAfter {took} ms, status {status}:{}", short(&value));
        let mut entries = self.caller.entries.borrow_mut();
        if let Some(entry) = entries.get_mut(self.number.saturating_sub(1)) {
            entry.push_str(&note);
        }
        if status >= 400 || value.get("error").is_some() || value.is_null() {
            let error = value.get("error").unwrap_or(&value);
            let code = error
                .get("code")
                .and_then(Value::as_i64)
                .unwrap_or_default();
            let public = text(error, "/message").or(text(error, "/detail"));
            let all = || value.to_string().chars().take(SHOWN * 4).collect();
            let public: String = public.map_or_else(all, str::to_owned);
            let text = format!("status {status}, code {code}: {public}");
            return Err(Fault::Refused(status, code, text));
        }
        let result = value.get_mut("result").map(Value::take);
        Ok(result.unwrap_or(value))
    }

    /// The next event of a stream; none at its end.
    pub(super) async fn event(&mut self) -> Result<Option<Value>, Fault> {
        let kind = self.headers.get(CONTENT_TYPE);
        if !kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream")) {
            self.result().await?;
            return Err("the response is not a stream".into());
        }
        loop {
            let ends = [b"\n\n".as_slice(), b"\r\n\r\n"];
            let end = ends.iter().find_map(|end| {
                let at = self.read.windows(end.len()).position(|it| it == *end);
                at.map(|at| at + end.len())
            });
            let Some(end) = end else {
                if self.more().await? {
                    continue;
                }
                return Ok(None);
            };
            let event = self.read.split_to(end);
            let event = String::from_utf8_lossy(&event);
            let data = event.lines().filter_map(|it| it.strip_prefix("data:"));
            let data: String = data.collect();
            if !data.is_empty() {
                return self.read_result(data.as_bytes()).map(Some);
            }
        }
    }
}

/// A value for people, cut if it is long.
fn short(value: &Value) -> String {
    if value.is_null() {
        return String::new();
    }
    let text = format!("{value:#}");
    let lines: Vec<String> = text.lines().take(LINES).map(cut).collect();
    let rest = if text.lines().nth(LINES).is_some() {
        "\n…"
    } else {
        ""
    };
    format!("\n\n```json\n{}{rest}\n```", lines.join("\n"))
}

/// A line without the signature of a URL, cut if it is long.
fn cut(line: &str) -> String {
    let plain = line.split("?X-Amz-").next().unwrap_or_default();
    let text: String = plain.chars().take(SHOWN).collect();
    let rest = if text.len() < line.len() { "…" } else { "" };
    text + rest
}
