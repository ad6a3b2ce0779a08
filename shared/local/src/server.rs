//! Serves the edges of all functions over HTTP/1.1.

use crate::accept::{ConnectionLimits, accept};
use crate::page::AgentPage;
use a2a_lambda::auth::Identity;
use a2a_lambda::http::{Body, Edges, MAX_BODY};
use a2a_lambda::runtime::Runtime;
use bytes::{Bytes, BytesMut};
use http::header::CONNECTION;
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::time::timeout;

/// Most bytes beyond the limit of a body that are read and dropped: 16 MiB. Most clients
/// read the 413 response only after they have sent their whole body.
const DRAIN: usize = 16 * 1024 * 1024;
/// How long a client may take to send its body.
const BODY: Duration = Duration::from_secs(30);
/// Each open stream is one connection.
const LIMITS: ConnectionLimits = ConnectionLimits {
    connections: 512,
    headers: Duration::from_secs(30),
};

/// The edges of all functions, behind one base URL.
#[derive(Debug)]
pub(crate) struct Functions {
    edges: Edges,
    page: Option<AgentPage>,
}

impl Functions {
    /// The functions of `runtime`, and the page for the developer.
    #[must_use]
    pub(crate) fn new(runtime: &Runtime, page: Option<AgentPage>) -> Self {
        Self {
            edges: runtime.edges(),
            page,
        }
    }

    /// Answers one request with the function that API Gateway would choose.
    pub(crate) async fn handle(&self, request: Request<Incoming>) -> Response<Body> {
        if let Some(page) = &self.page {
            if AgentPage::is_upload(&request) {
                return Box::pin(page.upload(request)).await;
            }
            if let Some(response) = Box::pin(page.answer(&request)).await {
                return response;
            }
        }
        let (method, path) = (request.method().as_str(), request.uri().path());
        let edge = self.edges.for_route(method, path);
        let identity = Identity::of(request.headers());
        let (parts, body) = request.into_parts();
        let body = match timeout(BODY, read(body)).await {
            Ok(Ok(body)) => body,
            Ok(Err(error)) => {
                tracing::debug!("failed to read the body of a request: {error}");
                return plain(
                    StatusCode::BAD_REQUEST,
                    "the body of the request broke off\n",
                );
            }
            Err(_) => {
                return plain(
                    StatusCode::REQUEST_TIMEOUT,
                    "the body of the request took too long\n",
                );
            }
        };
        edge.handle(Request::from_parts(parts, body), identity, None)
            .await
    }
}

/// The response to an incomplete request. It closes the connection, since the rest of
/// the body could look like the next request.
fn plain(status: StatusCode, text: &'static str) -> Response<Body> {
    let mut response = Response::new(Full::from(text).boxed_unsync());
    *response.status_mut() = status;
    let close = HeaderValue::from_static("close");
    response.headers_mut().insert(CONNECTION, close);
    response
}

/// The body, cut one byte above [`MAX_BODY`], so that the edge refuses it. Up to [`DRAIN`] more
/// bytes are read and dropped, so that the client reads the response.
///
/// # Errors
/// When the body breaks off.
async fn read(mut body: Incoming) -> Result<Bytes, hyper::Error> {
    let mut bytes = BytesMut::new();
    let mut count = 0_usize;
    let enough = MAX_BODY + 1;
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else {
            continue;
        };
        count = count.saturating_add(data.len());
        let space = enough.saturating_sub(bytes.len());
        bytes.extend_from_slice(data.get(..space.min(data.len())).unwrap_or_default());
        if count.saturating_sub(MAX_BODY) > DRAIN {
            break;
        }
    }
    Ok(bytes.freeze())
}

/// Serves until `stop` is ready, then drops open connections.
pub(crate) async fn serve(
    listener: TcpListener,
    functions: Arc<Functions>,
    stop: impl Future<Output = ()>,
) {
    let handle = move |request| {
        let functions = Arc::clone(&functions);
        async move { functions.handle(request).await }
    };
    accept(listener, LIMITS, handle, stop).await;
}

#[cfg(test)]
mod tests {
    use super::{Functions, serve};
    use a2a_lambda::runtime::Runtime;
    use a2a_lambda::settings::{Settings, Source};
    use std::future::pending;
    use std::sync::Arc;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};

    struct Development;

    impl Source for Development {
        fn get(&self, name: &str) -> Option<String> {
            (name == "A2A_AUTH").then(|| "dev".to_owned())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_never_arrives_ends_its_connection() {
        let settings = Settings::read(&Development).unwrap();
        let agent = reference_agent::agent().unwrap();
        let runtime = Runtime::builder(agent, settings).build().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap())
            .await
            .unwrap();
        let functions = Arc::new(Functions::new(&runtime, None));
        let serving = tokio::spawn(serve(listener, functions, pending()));
        let half = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n{";
        client.write_all(half.as_bytes()).await.unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
        serving.abort();
    }
}
