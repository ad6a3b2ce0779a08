//! Answers of functions with a streaming integration.
//!
//! The client of `lambda_runtime` leaves Nagle's algorithm on and writes head,
//! prelude and body one by one: every answer waits 40 ms for an acknowledgement.
//! Here what is ready leaves in one write, and each later chunk at once.
//! `Runtime` keeps what comes before: `next`, context and restore.

use crate::http::Body;
use bytes::Bytes;
use futures::{FutureExt as _, Stream, StreamExt, stream};
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue, TRAILER, TRANSFER_ENCODING};
use http::{Method, Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt as _, BodyStream, StreamBody};
use hyper_util::client::legacy::connect::HttpConnector;
use lambda_http::RequestExt as _;
use lambda_runtime::layers::TracingLayer;
use lambda_runtime::tower::layer::layer_fn;
use lambda_runtime::{Diagnostic, Error, LambdaInvocation, MetadataPrelude, service_fn};
use lambda_runtime_api_client::{PooledClient, body, build_request};
use serde::de::Error as _;
use std::convert::Infallible;
use std::future::{Future, ready};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

/// Names one delivery of a request, so that the platform can refuse an answer
/// to an earlier one.
const INVOCATION_ID: HeaderName = HeaderName::from_static("lambda-runtime-invocation-id");
const MODE: HeaderName = HeaderName::from_static("lambda-runtime-function-response-mode");
const ERROR_TYPE: HeaderName = HeaderName::from_static("lambda-runtime-function-error-type");
const STREAMING: HeaderValue = HeaderValue::from_static("streaming");
const CHUNKED: HeaderValue = HeaderValue::from_static("chunked");
const PRELUDE: HeaderValue =
    HeaderValue::from_static("application/vnd.awslambda.http-integration-response");
const BYTES: HeaderValue = HeaderValue::from_static("application/octet-stream");
const TRAILERS: [HeaderValue; 2] = [
    HeaderValue::from_static("Lambda-Runtime-Function-Error-Type"),
    HeaderValue::from_static("Lambda-Runtime-Function-Error-Body"),
];
/// What stands between the prelude and the body.
const END_OF_PRELUDE: [u8; 8] = [0; 8];

/// Answers invocations with `handler` until the Runtime API is gone.
///
/// The client opens its first connection for the first answer, so none is older
/// than a restore.
pub(super) async fn run<H, F>(handler: H) -> Result<(), Error>
where
    H: Fn(lambda_http::Request) -> F + Clone,
    F: Future<Output = Response<Body>>,
{
    let client = Arc::new(PooledClient::builder().with_connector(connector()).build());
    let answering = service_fn(move |invocation| {
        let (client, handler) = (client.clone(), handler.clone());
        async move { answer(&client, handler, invocation).await }
    });
    // The layer takes the place of all that it is put around.
    let replaced = service_fn(|_| ready(Ok::<_, Infallible>(Response::new(Body::default()))));
    lambda_http::streaming_runtime(replaced)
        .layer(layer_fn(move |_| answering.clone()))
        .layer(TracingLayer::new())
        .run()
        .await
}

/// Sends small writes at once.
fn connector() -> HttpConnector {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    connector
}

/// Runs `handler` and posts what comes of it. An error ends the process: the
/// Runtime API cannot be reached.
async fn answer<H, F>(
    client: &PooledClient,
    handler: H,
    invocation: LambdaInvocation,
) -> Result<(), Error>
where
    H: Fn(lambda_http::Request) -> F,
    F: Future<Output = Response<Body>>,
{
    let LambdaInvocation {
        parts,
        body,
        context,
    } = invocation;
    let place = Place {
        request_id: context.request_id.clone(),
        invocation_id: parts.headers.get(INVOCATION_ID).cloned(),
    };
    let post = match request(&body) {
        Ok(request) => {
            let request = request.with_lambda_context(context);
            // The first bytes are awaited too: a panic before them is no answer.
            let begun = AssertUnwindSafe(async { begin(handler(request).await) });
            match begun.catch_unwind().await {
                Ok(begun) => place.response(begun?)?,
                Err(_) => {
                    tracing::error!("a call panicked");
                    place.error(&panicked())?
                }
            }
        }
        Err(error) => {
            tracing::error!("failed to read an invocation: {error}");
            place.error(&unreadable(&error))?
        }
    };
    let taken = client.call(post).await?;
    let status = taken.status();
    if !status.is_success() {
        tracing::error!(%status, "the Runtime API refused an answer");
    }
    // A connection is used again when its last answer has been read.
    taken.into_body().collect().await.ok();
    Ok(())
}

fn request(body: &[u8]) -> Result<lambda_http::Request, serde_json::Error> {
    let text = std::str::from_utf8(body).map_err(serde_json::Error::custom)?;
    lambda_http::request::from_str(text)
}

/// The panic itself is in the log, where its hook has written it.
fn panicked() -> Diagnostic {
    Diagnostic {
        error_type: "Panic".to_owned(),
        error_message: "the function panicked".to_owned(),
    }
}

fn unreadable(error: &serde_json::Error) -> Diagnostic {
    Diagnostic {
        error_type: "UnreadableEvent".to_owned(),
        error_message: error.to_string(),
    }
}

/// The prelude, the NULs and the body, each a chunk of its own: `cargo lambda
/// watch` takes the first for the prelude and drops the second. What is ready of
/// the body is polled here, and leaves with them.
fn begin(
    response: Response<Body>,
) -> Result<impl Stream<Item = Result<Frame<Bytes>, Infallible>> + Send + 'static, Error> {
    let (parts, body) = response.into_parts();
    let mut headers = parts.headers;
    headers.entry(CONTENT_TYPE).or_insert(BYTES);
    let prelude = serde_json::to_vec(&MetadataPrelude {
        status_code: parts.status,
        headers,
        cookies: Vec::new(),
    })?;
    let end = Bytes::from_static(&END_OF_PRELUDE);
    let mut rest = StreamExt::fuse(BodyStream::new(body));
    let first = rest.next().now_or_never().flatten();
    let prelude = [Bytes::from(prelude), end].map(|bytes| Ok(Frame::data(bytes)));
    Ok(stream::iter(prelude).chain(stream::iter(first)).chain(rest))
}

/// The invocation that an answer belongs to.
struct Place {
    request_id: String,
    invocation_id: Option<HeaderValue>,
}

impl Place {
    /// The headers are those of `lambda_runtime`; trailers are announced and
    /// never sent, since a body of ours does not fail.
    fn response<S>(&self, chunks: S) -> Result<Request<body::Body>, Error>
    where
        S: Stream<Item = Result<Frame<Bytes>, Infallible>> + Send + 'static,
    {
        let body = body::Body::new(StreamBody::new(chunks));
        let mut request = self.post("response", body)?;
        let headers = request.headers_mut();
        headers.insert(TRANSFER_ENCODING, CHUNKED);
        headers.insert(MODE, STREAMING);
        for trailer in TRAILERS {
            headers.append(TRAILER, trailer);
        }
        headers.insert(CONTENT_TYPE, PRELUDE);
        Ok(request)
    }

    fn error(&self, diagnostic: &Diagnostic) -> Result<Request<body::Body>, Error> {
        let body = body::Body::from(serde_json::to_vec(diagnostic)?);
        let mut request = self.post("error", body)?;
        let unhandled = HeaderValue::from_static("unhandled");
        request.headers_mut().insert(ERROR_TYPE, unhandled);
        Ok(request)
    }

    fn post(&self, what: &str, body: body::Body) -> Result<Request<body::Body>, Error> {
        let id = &self.request_id;
        let mut request = build_request()
            .method(Method::POST)
            .uri(format!("/2018-06-01/runtime/invocation/{id}/{what}"))
            .body(body)?;
        if let Some(id) = &self.invocation_id {
            request.headers_mut().insert(INVOCATION_ID, id.clone());
        }
        Ok(request)
    }
}

#[cfg(test)]
mod tests;
