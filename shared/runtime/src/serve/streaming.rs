//! Posts the responses of functions with a streaming integration to the Runtime API.
//!
//! The HTTP client of `lambda_runtime` leaves Nagle's algorithm on and writes head,
//! prelude and body one by one. So each response waits 40 ms for an acknowledgement.
//! This module sends everything that is ready in one write, and each later chunk
//! without delay. `lambda_runtime` still fetches the invocations, makes their context
//! and handles restores.

use crate::http::Body;
use a2a_lambda_model::redact::without_values;
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

/// Identifies one delivery of an invocation. Lambda refuses a response to an earlier
/// delivery by it.
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
/// The bytes between the prelude and the body.
const END_OF_PRELUDE: [u8; 8] = [0; 8];

/// Runs `handler` for each invocation until the Runtime API closes.
///
/// The client opens its first connection for the first response. So after a `SnapStart`
/// restore there is no connection from before the snapshot.
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
    // The layer below ignores its inner service and answers itself.
    let replaced = service_fn(|_| ready(Ok::<_, Infallible>(Response::new(Body::default()))));
    lambda_http::streaming_runtime(replaced)
        .layer(layer_fn(move |_| answering.clone()))
        .layer(TracingLayer::new())
        .run()
        .await
}

/// A connector without Nagle's algorithm: small writes leave without delay.
fn connector() -> HttpConnector {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    connector
}

/// Runs `handler` for one invocation and posts its response, or an error if it
/// panics.
///
/// # Errors
/// When the Runtime API cannot be reached. Then the process ends.
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
    let place = Invocation {
        request_id: context.request_id.clone(),
        invocation_id: parts.headers.get(INVOCATION_ID).cloned(),
    };
    let post = match request(&body) {
        Ok(request) => {
            let request = request.with_lambda_context(context);
            // `begin` polls the first chunk too, so a panic before it is posted as an
            // error instead of an empty response.
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
            tracing::error!("{}", unreadable(&error).error_message);
            place.error(&unreadable(&error))?
        }
    };
    let taken = client.call(post).await?;
    let status = taken.status();
    if !status.is_success() {
        tracing::error!(%status, "the Runtime API refused a response");
    }
    // The pool uses a connection again only after its response has been read.
    taken.into_body().collect().await.ok();
    Ok(())
}

fn request(body: &[u8]) -> Result<lambda_http::Request, serde_json::Error> {
    let text = std::str::from_utf8(body).map_err(serde_json::Error::custom)?;
    lambda_http::request::from_str(text)
}

/// The error of a handler that panicked. It does not repeat the panic message, which is
/// private. The panic hook has logged the place.
fn panicked() -> Diagnostic {
    Diagnostic {
        error_type: "Panic".to_owned(),
        error_message: "the function panicked".to_owned(),
    }
}

/// The error of an invocation that is not one of API Gateway. Its event is not shown.
fn unreadable(error: &serde_json::Error) -> Diagnostic {
    Diagnostic {
        error_type: "UnreadableEvent".to_owned(),
        error_message: format!(
            "failed to read an invocation: {}",
            without_values(&error.to_string())
        ),
    }
}

/// The prelude, the NUL bytes and the body, each in its own chunks: `cargo lambda
/// watch` takes the first chunk for the prelude and drops the second. A first chunk of
/// the body that is ready is sent in the same write.
fn begin(
    response: Response<Body>,
) -> Result<impl Stream<Item = Result<Frame<Bytes>, Infallible>> + Send + 'static, Error> {
    let (parts, body) = response.into_parts();
    let mut headers = parts.headers;
    // As `lambda_runtime` does it.
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

/// The invocation that a response belongs to.
struct Invocation {
    request_id: String,
    invocation_id: Option<HeaderValue>,
}

impl Invocation {
    /// The request that posts a response. Its headers are those of `lambda_runtime`. It
    /// announces trailers for an error but never sends one, since a [`Body`] cannot
    /// fail.
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
