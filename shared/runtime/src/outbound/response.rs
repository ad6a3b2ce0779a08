//! The response of another service, or why there is none. A test can give its own.

use bytes::Bytes;
use std::fmt::{self, Display};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

/// A response.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Fetched {
    /// The HTTP status. A redirect is returned like any other status.
    pub status: u16,
    /// The `Content-Type` header, if there is one.
    pub content_type: Option<String>,
    /// The seconds of the header `Retry-After`, if it has some.
    pub retry_after: Option<u64>,
    /// The body, up to the limit of the request.
    pub body: Bytes,
    /// Whether the body is incomplete: it was longer, or broke off.
    pub cut: bool,
}

/// Why there is no response. The text names no address.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The URL or a header is not valid.
    #[error("the request cannot be made: {0}")]
    Request(String),
    /// The client could not connect, or the host has an address that is not allowed.
    #[error("no connection: {0}")]
    Unconnected(String),
    /// The connection broke.
    #[error("no answer: {0}")]
    Connection(String),
    /// There was no whole response in time.
    #[error("no answer within {0:?}")]
    Timeout(Duration),
}

pub(super) fn request_error(error: impl Display) -> FetchError {
    FetchError::Request(error.to_string())
}

type Respond = dyn Fn(&http::Request<Bytes>) -> Option<Result<Fetched, FetchError>> + Send + Sync;

tokio::task_local! {
    static CURRENT: Responses;
}

/// What answers the requests of a test: the last one that knows the request.
#[derive(Clone, Default)]
pub(crate) struct Responses(Vec<Arc<Respond>>);

impl Responses {
    pub(crate) fn add(
        &mut self,
        respond: impl Fn(&http::Request<Bytes>) -> Option<Result<Fetched, FetchError>>
        + Send
        + Sync
        + 'static,
    ) {
        self.0.push(Arc::new(respond));
    }

    /// `future`, whose requests get these responses.
    pub(crate) fn run<F: Future>(self, future: F) -> impl Future<Output = F::Output> {
        CURRENT.scope(self, future)
    }

    fn respond(&self, request: &http::Request<Bytes>) -> Option<Result<Fetched, FetchError>> {
        // A test without responses may have a server of its own.
        if self.0.is_empty() {
            return None;
        }
        let response = self.0.iter().rev().find_map(|respond| respond(request));
        Some(response.unwrap_or_else(|| {
            let (method, uri) = (request.method(), request.uri());
            let text = format!("the test has no response to {method} {uri}");
            Err(FetchError::Request(text))
        }))
    }
}

impl fmt::Debug for Responses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} responses", self.0.len())
    }
}

/// The response of the running test; `None` if the request goes to the network.
pub(super) fn test_response(request: &http::Request<Bytes>) -> Option<Result<Fetched, FetchError>> {
    let respond = |responses: &Responses| responses.respond(request);
    CURRENT.try_with(respond).ok().flatten()
}
