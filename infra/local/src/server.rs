//! An HTTP/1.1 listener in front of the functions' edges.

use crate::host::Hosts;
use a2a_lambda::auth::Identity;
use a2a_lambda::http::{Body, Door, Edge};
use a2a_lambda::runtime::Runtime;
use bytes::{Bytes, BytesMut};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};

/// What a body may send beyond the limit before the connection is cut:
/// enough for a client to read its refusal.
const DRAIN: usize = 16 * 1024 * 1024;
/// How long a client may take for its headers.
const HEADERS: Duration = Duration::from_secs(30);

/// The edges of all functions, behind one base URL.
#[derive(Debug)]
pub struct Functions {
    agent_card: Edge,
    tasks_send: Edge,
    tasks_get: Edge,
    tasks_stream: Edge,
    rpc: Edge,
    max_body: usize,
    hosts: Hosts,
}

impl Functions {
    /// The functions of `runtime`, for requests that name one of `hosts`; bodies
    /// above `max_body` bytes are cut.
    #[must_use]
    pub fn new(runtime: &Runtime, max_body: usize, hosts: Hosts) -> Self {
        Self {
            agent_card: runtime.edge(Door::AgentCard),
            tasks_send: runtime.edge(Door::TasksSend),
            tasks_get: runtime.edge(Door::TasksGet),
            tasks_stream: runtime.edge(Door::TasksStream),
            rpc: runtime.edge(Door::Rpc),
            max_body,
            hosts,
        }
    }

    /// Answers one request by the function that API Gateway would choose.
    pub async fn handle(&self, request: Request<Incoming>) -> Response<Body> {
        if !self.hosts.serve(request.headers()) {
            return misdirected();
        }
        let edge = match Door::of(request.method().as_str(), request.uri().path()) {
            Door::AgentCard => &self.agent_card,
            Door::TasksSend => &self.tasks_send,
            Door::TasksGet => &self.tasks_get,
            Door::TasksStream => &self.tasks_stream,
            Door::Rpc => &self.rpc,
        };
        let authorization = request.headers().get(http::header::AUTHORIZATION);
        let authorization = authorization
            .and_then(|v| v.to_str().ok())
            .map(str::to_owned);
        let identity = Identity {
            authorizer: None,
            authorization,
        };
        let (parts, body) = request.into_parts();
        let body = read(body, self.max_body).await;
        edge.handle(Request::from_parts(parts, body), identity, None)
            .await
    }
}

/// The answer to a request for another host (RFC 9110 §15.5.20).
fn misdirected() -> Response<Body> {
    let text = "this agent is not served under the host of the request\n";
    let mut response = Response::new(Full::from(text).boxed_unsync());
    *response.status_mut() = StatusCode::MISDIRECTED_REQUEST;
    response
}

/// The body, cut one byte above `max` so that the edge refuses it. What follows
/// is read and dropped, in bounds, so that the refusal can be read.
async fn read(mut body: Incoming, max: usize) -> Bytes {
    let mut kept = BytesMut::new();
    let mut seen = 0_usize;
    let enough = max.saturating_add(1);
    while let Some(Ok(frame)) = body.frame().await {
        let Ok(data) = frame.into_data() else {
            continue;
        };
        seen = seen.saturating_add(data.len());
        let room = enough.saturating_sub(kept.len());
        kept.extend_from_slice(data.get(..room.min(data.len())).unwrap_or_default());
        if seen.saturating_sub(max) > DRAIN {
            break;
        }
    }
    kept.freeze()
}

/// Serves until `stop` is ready. Connections that are open then are dropped.
pub async fn serve(
    listener: TcpListener,
    functions: Arc<Functions>,
    stop: impl Future<Output = ()>,
) {
    tokio::pin!(stop);
    loop {
        tokio::select! {
            biased;
            () = &mut stop => return,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    tokio::spawn(connection(stream, Arc::clone(&functions)));
                }
                // Out of descriptors, or the client left: nothing is lost.
                Err(error) => tracing::warn!("failed to accept a connection: {error}"),
            },
        }
    }
}

async fn connection(stream: TcpStream, functions: Arc<Functions>) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!("failed to set nodelay: {error}");
    }
    let service = service_fn(move |request| {
        let functions = Arc::clone(&functions);
        async move { Ok::<_, Infallible>(functions.handle(request).await) }
    });
    let served = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS)
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(error) = served {
        tracing::debug!("a connection ended: {error}");
    }
}
