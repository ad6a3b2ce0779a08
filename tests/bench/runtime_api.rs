//! The Runtime API of Lambda for one program, which gets one event at a time.
//!
//! Source: AWS Lambda Developer Guide, "Using the Lambda runtime API for custom runtimes". The
//! sockets acknowledge as the operating system does; only their own writes are not delayed.

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::net::TcpListener;
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinHandle;

/// How long a program may take for an event.
const LIMIT: Duration = Duration::from_secs(60);

/// What the program does.
#[derive(Debug)]
pub(crate) enum Heard {
    /// It asks for the next event.
    Next,
    /// It has posted the response to one.
    Response(Posted),
    /// It has posted an error.
    Failed(String),
}

/// A response.
#[derive(Debug)]
pub(crate) struct Posted {
    /// When each piece of the body arrived, and its length.
    pub(crate) pieces: Vec<(Instant, usize)>,
    pub(crate) body: Vec<u8>,
}

/// The service, until this value is dropped.
#[derive(Debug)]
pub(crate) struct RuntimeApi {
    pub(crate) address: SocketAddr,
    pub(crate) events: mpsc::UnboundedSender<Bytes>,
    pub(crate) heard: mpsc::UnboundedReceiver<(Instant, Heard)>,
    service: JoinHandle<()>,
}

impl Drop for RuntimeApi {
    fn drop(&mut self) {
        self.service.abort();
    }
}

#[derive(Debug)]
struct Door {
    events: Mutex<mpsc::UnboundedReceiver<Bytes>>,
    heard: mpsc::UnboundedSender<(Instant, Heard)>,
}

impl RuntimeApi {
    pub(crate) async fn start() -> std::io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let (events, given) = mpsc::unbounded_channel();
        let (tell, heard) = mpsc::unbounded_channel();
        let door = Arc::new(Door {
            events: Mutex::new(given),
            heard: tell,
        });
        let service = tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let _ = socket.set_nodelay(true);
                let door = Arc::clone(&door);
                let answer = service_fn(move |request| {
                    let door = Arc::clone(&door);
                    async move { Ok::<_, Infallible>(door.answer(request).await) }
                });
                let connection = hyper::server::conn::http1::Builder::new();
                tokio::spawn(connection.serve_connection(TokioIo::new(socket), answer));
            }
        });
        Ok(Self {
            address,
            events,
            heard,
            service,
        })
    }
}

fn said(status: StatusCode, body: Bytes) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    response
}

impl Door {
    fn tell(&self, heard: Heard) {
        // The harness has gone: the process is about to be killed.
        let _ = self.heard.send((Instant::now(), heard));
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let path = request.uri().path().to_owned();
        if path.ends_with("/invocation/next") {
            return self.next().await;
        }
        let mut pieces = Vec::new();
        let mut body = Vec::new();
        let mut rest = request.into_body();
        while let Some(Ok(frame)) = rest.frame().await {
            if let Ok(bytes) = frame.into_data() {
                pieces.push((Instant::now(), bytes.len()));
                body.extend_from_slice(&bytes);
            }
        }
        if path.ends_with("/response") {
            self.tell(Heard::Response(Posted { pieces, body }));
        } else {
            let text = String::from_utf8_lossy(&body).into_owned();
            self.tell(Heard::Failed(text));
        }
        said(StatusCode::ACCEPTED, Bytes::new())
    }

    async fn next(&self) -> Response<Full<Bytes>> {
        self.tell(Heard::Next);
        let Some(event) = self.events.lock().await.recv().await else {
            return said(StatusCode::GONE, Bytes::new());
        };
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let deadline = now.unwrap_or_default() + LIMIT;
        let mut response = said(StatusCode::OK, event);
        let headers = [
            (
                "lambda-runtime-aws-request-id",
                "8476a536-e9f4-11e8-9739-2dfe598c3fcd".to_owned(),
            ),
            (
                "lambda-runtime-deadline-ms",
                deadline.as_millis().to_string(),
            ),
            (
                "lambda-runtime-invoked-function-arn",
                "arn:aws:lambda:us-east-1:123456789012:function:bench".to_owned(),
            ),
            (
                "lambda-runtime-trace-id",
                "Root=1-5bef4de7-ad49b0e87f6ef6c87fc2e700;Parent=9a9197af755a6419;Sampled=0"
                    .to_owned(),
            ),
        ];
        for (name, value) in headers {
            if let Ok(value) = value.parse() {
                response.headers_mut().insert(name, value);
            }
        }
        response
    }
}
