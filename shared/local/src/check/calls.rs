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
use std::time::{Duration, Instant};

/// How long the head of a response may take, and each piece of its body.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The most bytes of a response.
const LIMIT: usize = 64 * 1024 * 1024;
/// The most characters of a text in a transcript.
const SHOWN: usize = 120;

/// Why a call has no result.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
pub(super) struct Fault {
    /// The HTTP status, 0 without a response.
    pub(super) status: u16,
    /// The code of a JSON-RPC error.
    pub(super) code: Option<i64>,
    text: String,
}

impl Fault {
    pub(super) fn new(cause: impl ToString) -> Self {
        let text = cause.to_string();
        Self {
            status: 0,
            code: None,
            text,
        }
    }
}

/// Sends requests, with the key to one host only.
pub(super) struct Caller {
    fetcher: Fetcher,
    base: Uri,
    key: Option<String>,
    /// The transcript: a text for each call and heading.
    pub(super) entries: RefCell<Vec<String>>,
}

impl Caller {
    /// A caller with a key for the host of `url`; none if that is not a URL to which a key may go.
    pub(super) fn new(url: &str, key: Option<String>) -> Option<Self> {
        // The operator named the address, so it may be in a private network. A key goes to
        // another machine encrypted only.
        let plain = key.is_some() && !url.starts_with("https://");
        let reach = if plain {
            Reach::Loopback
        } else {
            Reach::Anything
        };
        OutboundUrl::parse(url, reach).ok()?;
        Some(Self {
            fetcher: Fetcher::new(reach, TIMEOUT),
            base: url.parse().ok()?,
            key,
            entries: RefCell::default(),
        })
    }

    /// The key, if it may go to `url`.
    pub(super) fn key_for(&self, url: &str) -> Option<&String> {
        let url: Option<Uri> = url.parse().ok();
        let own = url.is_some_and(|url| {
            url.authority() == self.base.authority() && url.scheme() == self.base.scheme()
        });
        self.key.as_ref().filter(|_| own)
    }

    /// A request with the key, if there is one for `url`.
    pub(super) fn request(&self, method: Method, url: &str) -> request::Builder {
        let request = Request::builder().method(method).uri(url);
        let request = request.header(ACCEPT, "application/json, text/event-stream");
        match self.key_for(url) {
            Some(key) => request.header(AUTHORIZATION, format!("Bearer {key}")),
            None => request,
        }
    }

    /// Sends a request; the reply is there when its head is.
    pub(super) async fn open(
        &self,
        request: request::Builder,
        body: Option<Value>,
    ) -> Result<Reply<'_>, Fault> {
        let shown = body.as_ref().map(short).unwrap_or_default();
        let body = body.map(|body| body.to_string()).unwrap_or_default();
        let request = request
            .header(CONTENT_TYPE, "application/json")
            .body(Bytes::from(body));
        let request = request.map_err(Fault::new)?;
        let url = cut(&request.uri().to_string());
        let mut entries = self.entries.borrow_mut();
        entries.push(format!("{} {url}{shown}", request.method()));
        let entry = entries.len();
        drop(entries);
        let began = Instant::now();
        let (head, body) = self
            .fetcher
            .open(request)
            .await
            .map_err(Fault::new)?
            .into_parts();
        let body = body.map_err(|error| error.to_string()).boxed_unsync();
        let (status, headers) = (head.status.as_u16(), head.headers);
        let read = BytesMut::new();
        let reply = Reply {
            caller: self,
            entry,
            began,
            status,
            headers,
            body,
            read,
        };
        reply.note(&format!("status {status}"));
        Ok(reply)
    }
}

/// A response whose body arrives.
pub(super) struct Reply<'a> {
    caller: &'a Caller,
    /// The number of its entries when it was sent.
    entry: usize,
    began: Instant,
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    body: UnsyncBoxBody<Bytes, String>,
    read: BytesMut,
}

impl Reply<'_> {
    fn note(&self, text: &str) {
        let took = self.began.elapsed().as_millis();
        let mut entries = self.caller.entries.borrow_mut();
        if let Some(entry) = entries.get_mut(self.entry.saturating_sub(1)) {
            entry.push_str(&format!("\n\nAfter {took} ms: {text}"));
        }
    }

    /// Reads on; false at the end.
    async fn more(&mut self) -> Result<bool, Fault> {
        let frame = tokio::time::timeout(TIMEOUT, self.body.frame()).await;
        let Some(frame) = frame.map_err(|_| Fault::new("the response stopped for 60 s"))? else {
            return Ok(false);
        };
        if let Ok(data) = frame.map_err(Fault::new)?.into_data() {
            self.read.extend_from_slice(&data);
        }
        if self.read.len() > LIMIT {
            return Err(Fault::new("the response has more than 64 MB"));
        }
        Ok(true)
    }

    /// The whole body.
    pub(super) async fn bytes(&mut self) -> Result<Bytes, Fault> {
        while self.more().await? {}
        Ok(self.read.split().freeze())
    }

    /// The result in the body, out of its JSON-RPC envelope.
    pub(super) async fn result(&mut self) -> Result<Value, Fault> {
        while self.more().await? {}
        self.read_result(&self.read)
    }

    fn read_result(&self, data: &[u8]) -> Result<Value, Fault> {
        let mut value: Value = serde_json::from_slice(data).unwrap_or_default();
        self.note(&short(&value));
        let status = self.status;
        let fault = |code: Option<i64>, public: &str| {
            let text = code.map_or(String::new(), |code| format!(" {code}"));
            let text = format!("{status}{text}: {public}");
            Err(Fault { status, code, text })
        };
        if status >= 400 || value.get("error").is_some() {
            let error = value.get("error").unwrap_or(&value);
            let mut names = ["/message", "/detail", "/title"].iter();
            let public = names
                .find_map(|name| text(error, name))
                .unwrap_or("without a text");
            return fault(error.get("code").and_then(Value::as_i64), public);
        }
        if value.is_null() {
            return fault(None, "the response is not JSON");
        }
        let result = value.get_mut("result").map(Value::take);
        Ok(result.unwrap_or(value))
    }

    /// The next event of a stream; none at its end.
    pub(super) async fn event(&mut self) -> Result<Option<Value>, Fault> {
        let kind = self
            .headers
            .get(CONTENT_TYPE)
            .and_then(|it| it.to_str().ok());
        if !kind.is_some_and(|kind| kind.starts_with("text/event-stream")) {
            self.result().await?;
            return Err(Fault::new("the response is not a stream"));
        }
        loop {
            let find = |end: &[u8]| {
                let at = self.read.windows(end.len()).position(|it| it == end);
                at.map(|at| at + end.len())
            };
            let Some(end) = find(b"\n\n").or_else(|| find(b"\r\n\r\n")) else {
                if self.more().await? {
                    continue;
                }
                return Ok(None);
            };
            let event = self.read.split_to(end);
            let event = String::from_utf8_lossy(&event);
            let data: String = event
                .lines()
                .filter_map(|it| it.strip_prefix("data:"))
                .collect();
            if !data.is_empty() {
                return self.read_result(data.as_bytes()).map(Some);
            }
        }
    }
}

/// A value for people: long texts are cut.
fn short(value: &Value) -> String {
    fn cut_all(value: &mut Value) {
        match value {
            Value::String(text) => *text = cut(text),
            Value::Array(all) => all.iter_mut().for_each(cut_all),
            Value::Object(members) => members.values_mut().for_each(cut_all),
            _ => {}
        }
    }
    let mut value = value.clone();
    cut_all(&mut value);
    format!("\n\n```json\n{value:#}\n```")
}

/// A text without the signature of a URL, cut if it is long.
fn cut(text: &str) -> String {
    let text = text.split("?X-Amz-").next().unwrap_or_default();
    let shown: String = text.chars().take(SHOWN).collect();
    if shown.len() == text.len() {
        shown
    } else {
        format!("{shown}… ({} bytes)", text.len())
    }
}
