//! Tests the bytes on the wire against a Runtime API in this process, which leaves
//! delayed acknowledgements on.

use super::*;
use crate::settings::{Environment, Source as _};
use a2a_lambda_rows::each_row;
use http_body_util::Full;
use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// How long a test waits for a post.
const PATIENCE: Duration = Duration::from_secs(60);

const JSON: &str = r#"{"jsonrpc":"2.0"}"#;

/// The function under test: its response depends on the path.
async fn handler(request: lambda_http::Request) -> Response<Body> {
    respond(request.uri().path()).await
}

async fn respond(path: &str) -> Response<Body> {
    let body = match path {
        "/json" => Full::from(JSON).boxed_unsync(),
        "/empty" => Full::default().boxed_unsync(),
        "/stream" => later(vec!["data: 1\n\n", "data: 2\n\n", "data: 3\n\n"]),
        "/half" => {
            let chunks = stream::iter(["data: 1\n\n"]).map(|text| Ok(Frame::data(text.into())));
            let dies = stream::once(async {
                // So that the chunk before it is sent first.
                tokio::task::yield_now().await;
                panic!("in the middle")
            });
            StreamBody::new(chunks.chain(dies)).boxed_unsync()
        }
        _ => panic!("secret words"),
    };
    let mut response = Response::new(body);
    if path == "/json" {
        let json = HeaderValue::from_static("application/json");
        response.headers_mut().insert(CONTENT_TYPE, json);
    }
    response
}

/// A body that is not ready between its chunks.
fn later(chunks: Vec<&'static str>) -> Body {
    let chunks = stream::iter(chunks).then(|text| async move {
        tokio::task::yield_now().await;
        Ok(Frame::data(text.into()))
    });
    StreamBody::new(chunks).boxed_unsync()
}

/// An API Gateway event with the path `path`.
fn event(path: &str) -> String {
    let event = serde_json::json!({
        "version": "2.0", "routeKey": "$default", "rawPath": path, "rawQueryString": "",
        "headers": {}, "isBase64Encoded": false,
        "requestContext": {
            "accountId": "1", "apiId": "a", "domainName": "localhost", "domainPrefix": "l",
            "requestId": "r", "routeKey": "$default", "stage": "$default",
            "time": "01/Jan/2026:00:00:00 +0000", "timeEpoch": 1,
            "http": { "method": "GET", "path": path, "protocol": "HTTP/1.1",
                      "sourceIp": "127.0.0.1", "userAgent": "t" },
        },
    });
    event.to_string()
}

/// What a function posted.
#[derive(Debug)]
struct Post {
    /// The request line.
    line: String,
    /// Sorted, and without `Host`, which holds a random port.
    headers: Vec<String>,
    /// The chunks of a chunked body; otherwise the whole body as one.
    chunks: Vec<Vec<u8>>,
    /// Whether the body ended as HTTP requires.
    whole: bool,
    /// How often the connection had bytes to read.
    reads: usize,
}

impl Post {
    fn body(&self) -> Vec<u8> {
        self.chunks.concat()
    }

    /// The body after the prelude.
    fn answer(&self) -> String {
        let text = String::from_utf8(self.body()).unwrap();
        text.split_once("\0\0\0\0\0\0\0\0").unwrap().1.to_owned()
    }
}

/// How the Runtime API treats connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    /// It keeps them open.
    Keeps,
    /// It closes each after its response, before it sends anything on another. Otherwise
    /// the function may post on a connection that closes at that moment.
    Closes,
    /// It closes each that posts, without a response.
    HangsUp,
}

/// A Runtime API that gives out its events and then no more.
struct Api {
    address: SocketAddr,
    posts: Receiver<Post>,
}

impl Api {
    fn open(manner: Manner, events: Vec<String>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let events = Arc::new(Mutex::new(VecDeque::from(events)));
        let (sender, posts) = channel();
        std::thread::spawn(move || {
            for connection in listener.incoming().map_while(Result::ok) {
                let (events, sender) = (events.clone(), sender.clone());
                std::thread::spawn(move || serve(connection, manner, &events, &sender));
            }
        });
        Self { address, posts }
    }

    fn post(&self) -> Post {
        self.posts.recv_timeout(PATIENCE).unwrap()
    }
}

/// Counts how often a connection brings bytes.
struct Counted {
    stream: TcpStream,
    reads: usize,
}

impl std::io::Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.reads += 1;
        self.stream.read(buffer)
    }
}

fn serve(
    stream: TcpStream,
    manner: Manner,
    left: &Mutex<VecDeque<String>>,
    posts: &Sender<Post>,
) -> Option<()> {
    let mut out = stream.try_clone().ok()?;
    let mut input = BufReader::with_capacity(1 << 20, Counted { stream, reads: 0 });
    loop {
        input.get_mut().reads = 0;
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            (input.read_line(&mut head).ok()? > 0).then_some(())?;
        }
        let mut lines = head.trim_end().split("\r\n").map(str::to_owned);
        let line = lines.next()?;
        // A connection keeps this lock until it has sent its response and may have closed.
        let (mut events, response);
        if line.starts_with("GET") {
            events = left.lock().unwrap();
            let event = match line.contains("/restore/") {
                true => Some(String::new()),
                false => events.pop_front(),
            };
            let Some(event) = event else {
                drop(events);
                // No event is left: the function waits until the test ends it.
                std::thread::park();
                return None;
            };
            let length = event.len();
            response = format!(
                "HTTP/1.1 200 OK\r\nlambda-runtime-aws-request-id: id-1\r\n\
                 lambda-runtime-invocation-id: turn-7\r\nlambda-runtime-deadline-ms: 4102444800000\r\n\
                 lambda-runtime-invoked-function-arn: arn\r\ncontent-length: {length}\r\n\r\n{event}"
            );
        } else {
            let mut headers: Vec<_> = lines.map(|line| line.to_lowercase()).collect();
            headers.retain(|header| !header.starts_with("host:"));
            headers.sort();
            let (chunks, whole) = body(&mut input, &headers);
            let reads = input.get_ref().reads;
            let post = Post {
                line,
                headers,
                chunks,
                whole,
                reads,
            };
            posts.send(post).ok()?;
            if manner == Manner::HangsUp {
                return None;
            }
            events = left.lock().unwrap();
            response = "HTTP/1.1 202 Accepted\r\ncontent-length: 2\r\n\r\n{}".to_owned();
        }
        out.write_all(response.as_bytes()).ok()?;
        if manner == Manner::Closes {
            out.shutdown(Shutdown::Both).ok()?;
            return None;
        }
        drop(events);
    }
}

/// The body of a request, in its chunks, and whether it is complete.
fn body(input: &mut impl std::io::BufRead, headers: &[String]) -> (Vec<Vec<u8>>, bool) {
    let length = headers
        .iter()
        .find_map(|header| header.strip_prefix("content-length: "));
    if let Some(length) = length {
        let mut all = vec![0; length.parse().unwrap()];
        let whole = input.read_exact(&mut all).is_ok();
        return (vec![all], whole);
    }
    let mut chunks = Vec::new();
    loop {
        let mut size = String::new();
        if input.read_line(&mut size).unwrap_or(0) == 0 {
            return (chunks, false);
        }
        let size = usize::from_str_radix(size.trim(), 16).unwrap();
        let mut chunk = vec![0; size + 2];
        if input.read_exact(&mut chunk).is_err() {
            return (chunks, false);
        }
        chunk.truncate(size);
        if size == 0 {
            return (chunks, true);
        }
        chunks.push(chunk);
    }
}

/// Answers one event in this process.
async fn answered(
    integration: Integration,
    manner: Manner,
    event: &str,
) -> (Result<(), Error>, Post) {
    let api = Api::open(manner, Vec::new());
    let client = PooledClient::builder()
        .with_connector(connector())
        .with_endpoint(format!("http://{}", api.address).parse().unwrap())
        .build();
    let mut headers = Response::new(());
    headers
        .headers_mut()
        .insert(INVOCATION_ID, HeaderValue::from_static("turn-7"));
    let mut context = Context::default();
    "id-1".clone_into(&mut context.request_id);
    let invocation = LambdaInvocation {
        parts: headers.into_parts().0,
        body: event.to_owned().into(),
        context,
    };
    let done = answer(&client, integration, (handler, None), invocation).await;
    (done, api.post())
}

async fn posted(path: &str) -> Post {
    let (done, post) = answered(Integration::Streaming, Manner::Keeps, &event(path)).await;
    done.unwrap();
    post
}

#[tokio::test]
async fn a_ready_response_is_sent_in_one_write() {
    let post = posted("/json").await;
    assert_eq!(post.reads, 1, "{post:?}");
    let prelude =
        r#"{"statusCode":200,"headers":{"content-type":"application/json"},"cookies":[]}"#;
    // `cargo lambda watch` expects exactly these chunks.
    let expected = [prelude.as_bytes(), &END_OF_PRELUDE, JSON.as_bytes()];
    assert_eq!(post.chunks, expected);
    assert!(post.whole);
}

#[tokio::test]
async fn connections_are_opened_without_nagles_algorithm() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let uri = format!("http://{}", listener.local_addr().unwrap());
    let stream = connector().call(uri.parse().unwrap()).await.unwrap();
    assert!(stream.inner().nodelay().unwrap());
}

#[tokio::test]
async fn a_response_without_a_body_is_only_the_prelude() {
    let post = posted("/empty").await;
    assert_eq!(post.answer(), "");
    assert_eq!((post.chunks.len(), post.whole), (2, true));
}

#[tokio::test]
async fn the_prelude_does_not_wait_for_a_slow_body() {
    let post = posted("/stream").await;
    assert_eq!(post.chunks[1], END_OF_PRELUDE, "{post:?}");
    assert_eq!(post.answer(), "data: 1\n\ndata: 2\n\ndata: 3\n\n");
    assert!(post.whole);
}

#[tokio::test]
async fn a_panic_before_the_first_byte_is_an_error_without_its_message() {
    let post = posted("/panics").await;
    assert!(post.line.contains("/id-1/error "), "{post:?}");
    let reported: Diagnostic = serde_json::from_slice(&post.body()).unwrap();
    assert_eq!(reported, panic_diagnostic());
}

#[tokio::test]
async fn a_panic_in_a_buffered_body_is_an_error_without_its_message() {
    let half = event("/half");
    let (done, post) = answered(Integration::Buffered, Manner::Keeps, &half).await;
    done.unwrap();
    let reported: Diagnostic = serde_json::from_slice(&post.body()).unwrap();
    assert_eq!(reported, panic_diagnostic());
}

#[tokio::test]
async fn a_panic_in_the_body_breaks_the_response_off() {
    let (done, post) = answered(Integration::Streaming, Manner::Keeps, &event("/half")).await;
    assert!(done.is_err());
    assert!(!post.whole, "{post:?}");
}

#[tokio::test]
async fn an_unreadable_event_is_an_error() {
    for other in ["{}", "{", "\u{0}"] {
        let (done, post) = answered(Integration::Streaming, Manner::Keeps, other).await;
        done.unwrap();
        assert!(post.line.contains("/id-1/error "), "{post:?}");
        let reported: Diagnostic = serde_json::from_slice(&post.body()).unwrap();
        assert_eq!(reported.error_type, "UnreadableEvent");
    }
}

#[tokio::test]
async fn a_post_without_a_response_is_an_error() {
    let (done, _) = answered(Integration::Streaming, Manner::HangsUp, &event("/json")).await;
    done.unwrap_err();
}

/// A function in its own process, since `lambda_runtime` reads the environment.
struct Function(Child);

impl Function {
    fn start(of: &str, api: &Api, starts: &str) -> Self {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "serve::invocation::tests::function"])
            .env("TEST_INVOCATION_OF", of)
            .env("AWS_LAMBDA_RUNTIME_API", api.address.to_string())
            .env("AWS_LAMBDA_FUNCTION_NAME", "f")
            .env("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "128")
            .env("AWS_LAMBDA_FUNCTION_VERSION", "1")
            .env("AWS_LAMBDA_INITIALIZATION_TYPE", starts)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self(child)
    }
}

impl Drop for Function {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// The same function with `lambda_http`.
async fn theirs(request: lambda_http::Request) -> Result<Response<Body>, Infallible> {
    use lambda_http::RequestExt as _;
    Ok(respond(request.raw_http_path()).await)
}

#[tokio::test]
#[ignore = "the process of the tests below"]
async fn function() {
    let done = match Environment.get("TEST_INVOCATION_OF").as_deref() {
        Some("lambda_http streaming") => {
            lambda_http::run_with_streaming_response(service_fn(theirs)).await
        }
        Some("lambda_http buffered") => lambda_http::run(service_fn(theirs)).await,
        Some("buffered") => run(Integration::Buffered, handler, None).await,
        Some(_) => run(Integration::Streaming, handler, None).await,
        None => Ok(()),
    };
    done.unwrap();
}

fn events(paths: &[&str]) -> Vec<String> {
    paths.iter().map(|path| event(path)).collect()
}

#[test]
fn lambda_http_posts_the_same() {
    let paths = ["/json", "/empty", "/stream", "/panics", "/json"];
    let posts = |of: String| {
        let api = Api::open(Manner::Keeps, events(&paths));
        let _function = Function::start(&of, &api, "on-demand");
        paths.map(|_| api.post())
    };
    let said = |post: &Post| -> serde_json::Value {
        let mut envelope: serde_json::Value = serde_json::from_slice(&post.body()).unwrap();
        // `lambda_http` leaves an empty body out.
        let members = envelope.as_object_mut().unwrap();
        members.entry("body").or_insert_with(|| "".into());
        envelope
    };
    let without_length = |post: &Post| {
        let mut headers = post.headers.clone();
        headers.retain(|header| !header.starts_with("content-length"));
        headers
    };
    for of in ["streaming", "buffered"] {
        let theirs = posts(format!("lambda_http {of}"));
        for (ours, theirs) in posts(of.to_owned()).iter().zip(theirs) {
            assert_eq!(ours.line, theirs.line);
            assert_eq!(without_length(ours), without_length(&theirs));
            if ours.line.contains("/error ") {
                continue;
            }
            if of == "buffered" {
                assert_eq!(said(ours), said(&theirs));
            } else {
                assert_eq!(ours.body(), theirs.body());
            }
        }
    }
}

#[test]
fn a_restore_and_closed_connections_lose_no_response() {
    let paths = ["/json", "/panics", "/stream", "/json"];
    let rows = [
        ("streaming", "on-demand"),
        ("streaming", "snap-start"),
        ("buffered", "on-demand"),
        ("buffered", "snap-start"),
    ];
    each_row(rows, |(of, starts)| {
        let api = Api::open(Manner::Closes, events(&paths));
        let _function = Function::start(of, &api, starts);
        each_row(paths, |path| {
            let post = api.post();
            assert_eq!(post.line.contains("/response "), path != "/panics");
        });
    });
}
