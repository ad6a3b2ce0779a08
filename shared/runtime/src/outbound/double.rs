//! The responses that a test gives in place of other services.

use super::response::{FetchError, Fetched};
use bytes::Bytes;
use std::fmt;
use std::future::Future;
use std::sync::Arc;

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
pub(super) fn respond(request: &http::Request<Bytes>) -> Option<Result<Fetched, FetchError>> {
    let respond = |responses: &Responses| responses.respond(request);
    CURRENT.try_with(respond).ok().flatten()
}
