//! A client that bears a server which dies.

use bytes::Bytes;
use http::{Request, Uri};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

/// One event of a stream.
#[derive(Debug, Clone)]
pub(crate) struct Frame {
    pub(crate) id: Option<String>,
    pub(crate) data: Value,
}

/// Begins a call; `None` if the server does not answer.
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
        .header("A2A-Version", "1.0")
        .header("Content-Type", "application/json");
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

/// The answer to a POST; `None` if there is none.
pub(crate) async fn post(url: &str, body: &Value) -> Option<Value> {
    whole(open(url, Some(body), None).await?).await
}

/// The answer to a GET; `None` if there is none.
pub(crate) async fn get(url: &str) -> Option<Value> {
    whole(open(url, None, None).await?).await
}

/// The first frames of a stream, as many as `count`; else all that come.
pub(crate) async fn cut(
    url: &str,
    body: &Value,
    last_event: Option<&str>,
    count: Option<usize>,
) -> Vec<Frame> {
    match open(url, Some(body), last_event).await {
        Some(stream) => read(stream, count).await,
        None => Vec::new(),
    }
}

/// A subscription after `last_event`, to its end.
pub(crate) async fn events(url: &str, last_event: &str) -> Vec<Frame> {
    match open(url, None, Some(last_event)).await {
        Some(stream) => read(stream, None).await,
        None => Vec::new(),
    }
}

async fn read(mut stream: Incoming, count: Option<usize>) -> Vec<Frame> {
    let (mut buffer, mut frames) = (String::new(), Vec::new());
    while let Some(Ok(chunk)) = stream.frame().await {
        let bytes = chunk.into_data().unwrap_or_default();
        buffer.push_str(std::str::from_utf8(&bytes).unwrap());
        while let Some((block, rest)) = buffer.split_once("\n\n") {
            let field = |name: &str| {
                let mut lines = block.lines();
                lines.find_map(|line| line.strip_prefix(name).map(str::to_owned))
            };
            if let Some(data) = field("data: ") {
                let data = serde_json::from_str(&data).unwrap();
                let id = field("id: ");
                frames.push(Frame { id, data });
            }
            buffer = rest.to_owned();
            if count == Some(frames.len()) {
                return frames;
            }
        }
    }
    frames
}
