//! A client for a server that may die during a call.

use bytes::Bytes;
use http::{Request, Uri};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use std::collections::VecDeque;
use tokio::net::TcpStream;

/// One event of a stream.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Frame {
    pub(crate) id: Option<String>,
    pub(crate) data: Value,
}

/// Starts a call; `None` without a response, or for an error status.
async fn open(url: &str, body: Option<&Value>, last_event: Option<&str>) -> Option<Incoming> {
    let uri: Uri = url.parse().unwrap();
    let authority = uri.authority()?.as_str().to_owned();
    let socket = TokioIo::new(TcpStream::connect(&authority).await.ok()?);
    let (mut sender, connection) = hyper::client::conn::http1::handshake(socket).await.ok()?;
    tokio::spawn(connection);
    let mut request = Request::builder()
        .method(if body.is_some() { "POST" } else { "GET" })
        .uri(uri.path_and_query()?.as_str())
        .header("Host", authority)
        .header("Content-Type", "application/json");
    // 0.1 has no version header, and its paths exist in 0.1 only.
    if !uri.path().starts_with("/tasks/send") {
        request = request.header("A2A-Version", "1.0");
    }
    if let Some(id) = last_event {
        request = request.header("Last-Event-ID", id);
    }
    let body = body.map(Value::to_string).unwrap_or_default();
    let request = request.body(Full::new(Bytes::from(body))).unwrap();
    let answer = sender.send_request(request).await.ok()?;
    answer.status().is_success().then(|| answer.into_body())
}

async fn whole(body: Incoming) -> Option<Value> {
    let bytes = body.collect().await.ok()?.to_bytes();
    serde_json::from_slice(&bytes).ok()
}

/// The response to a POST; `None` without a response, or for an error status.
pub(crate) async fn post(url: &str, body: &Value) -> Option<Value> {
    whole(open(url, Some(body), None).await?).await
}

/// The response to a GET; `None` without a response, or for an error status.
pub(crate) async fn get(url: &str) -> Option<Value> {
    whole(open(url, None, None).await?).await
}

/// An open stream.
#[derive(Debug)]
pub(crate) struct Live {
    body: Incoming,
    text: String,
    ready: VecDeque<Frame>,
}

impl Live {
    /// Opens the stream of a POST.
    pub(crate) async fn post(url: &str, body: &Value) -> Option<Self> {
        Some(Self::of(open(url, Some(body), None).await?))
    }

    /// Opens a subscription that continues after an event.
    pub(crate) async fn resume(url: &str, last_event: &str) -> Option<Self> {
        Some(Self::of(open(url, None, Some(last_event)).await?))
    }

    fn of(body: Incoming) -> Self {
        Self {
            body,
            text: String::new(),
            ready: VecDeque::new(),
        }
    }

    /// The next event; `None` at the end of the stream or when the connection breaks.
    pub(crate) async fn next(&mut self) -> Option<Frame> {
        while self.ready.is_empty() {
            let bytes = self.body.frame().await?.ok()?.into_data();
            let bytes = bytes.unwrap_or_default();
            self.text.push_str(std::str::from_utf8(&bytes).unwrap());
            while let Some((block, rest)) = self.text.split_once("\n\n") {
                self.ready.extend(frame(block));
                self.text = rest.to_owned();
            }
        }
        self.ready.pop_front()
    }

    /// All remaining events.
    pub(crate) async fn rest(mut self) -> Vec<Frame> {
        let mut frames = Vec::new();
        while let Some(frame) = self.next().await {
            frames.push(frame);
        }
        frames
    }
}

/// The event of a block; `None` for a comment.
fn frame(block: &str) -> Option<Frame> {
    let field = |name: &str| {
        let mut lines = block.lines();
        lines.find_map(|line| line.strip_prefix(name).map(str::to_owned))
    };
    let data = serde_json::from_str(&field("data: ")?).unwrap();
    let id = field("id: ");
    Some(Frame { id, data })
}

/// All events after `last_event`; empty if there is no such stream.
pub(crate) async fn events(url: &str, last_event: &str) -> Vec<Frame> {
    match Live::resume(url, last_event).await {
        Some(stream) => stream.rest().await,
        None => Vec::new(),
    }
}
