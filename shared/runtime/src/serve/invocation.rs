//! Answers the invocations of the functions behind API Gateway.
//!
//! `lambda_runtime` fetches the invocations, makes their context and handles restores. This
//! module reads the event, runs the handler, and posts the response or an error to the
//! Runtime API. The HTTP client of `lambda_runtime` leaves Nagle's algorithm on, so a stream
//! would wait 40 ms for each acknowledgement. So responses have a client of their own.

use super::event;
use crate::http::Body;
use a2a_lambda_model::redact::without_values;
use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt, stream};
use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, TRAILER, TRANSFER_ENCODING};
use http::{Method, Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt as _, BodyStream, StreamBody};
use hyper_util::client::legacy::connect::HttpConnector;
use lambda_http::request::LambdaRequest;
use lambda_http::{Adapter, RequestExt as _};
use lambda_runtime::tower::Service as _;
use lambda_runtime::tower::layer::layer_fn;
use lambda_runtime::{
    Context, Diagnostic, Error, LambdaEvent, LambdaInvocation, MetadataPrelude, Runtime, service_fn,
};
use lambda_runtime_api_client::{PooledClient, body, build_request};
use serde::de::IgnoredAny;
use std::convert::Infallible;
use std::future::{Future, ready};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use tokio::task::JoinError;

/// Identifies one delivery of an invocation. Lambda refuses a response to an earlier
/// delivery by it.
const INVOCATION_ID: HeaderName = HeaderName::from_static("lambda-runtime-invocation-id");
const ERROR_TYPE: HeaderName = HeaderName::from_static("lambda-runtime-function-error-type");

// The headers of a response in chunks.
const MODE: HeaderName = HeaderName::from_static("lambda-runtime-function-response-mode");
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

/// The deadline of every invocation under `cargo lambda watch`, in milliseconds since 1970.
const WATCH_DEADLINE: u64 = 600_000;

/// How API Gateway takes the responses of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Integration {
    /// As one whole object.
    Buffered,
    /// As a stream, also those that are ready.
    Streaming,
}

/// Answers the invocations that API Gateway has not made; `None` for an unknown one.
pub(super) type OtherEvents = Arc<dyn Fn(&[u8]) -> Option<BoxFuture<'static, ()>> + Send + Sync>;

/// Runs `handler` for each invocation until the Runtime API closes, and `also` for those that
/// are not of API Gateway.
///
/// The client opens its first connection for the first response. So after a `SnapStart`
/// restore there is no connection from before the snapshot.
pub(super) async fn run<H, F>(
    integration: Integration,
    handler: H,
    also: Option<OtherEvents>,
) -> Result<(), Error>
where
    H: Fn(lambda_http::Request) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<Body>> + Send + 'static,
{
    let client = Arc::new(PooledClient::builder().with_connector(connector()).build());
    let answering = service_fn(move |invocation| {
        let (client, handler, also) = (client.clone(), handler.clone(), also.clone());
        async move { answer(&client, integration, (handler, also), invocation).await }
    });
    // The layer below ignores its inner service and answers itself.
    let inner = service_fn(|_: LambdaEvent<IgnoredAny>| ready(Ok::<_, Infallible>(())));
    let runtime = Runtime::new(inner).layer(layer_fn(move |_| answering.clone()));
    // A task of its own: before Tokio polls the future of `main` again it asks the system for
    // events, and before it polls a task it does not.
    let result = tokio::spawn(async move { runtime.run().await }).await;
    match result.map_err(JoinError::try_into_panic) {
        Ok(result) => result,
        // As without the task: the text of the panic is not printed.
        Err(Ok(panic)) => std::panic::resume_unwind(panic),
        Err(Err(error)) => Err(error.into()),
    }
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
/// When the Runtime API cannot be reached, or a request to it cannot be made. Then the
/// process ends.
async fn answer<H, F>(
    client: &PooledClient,
    integration: Integration,
    (handler, also): (H, Option<OtherEvents>),
    invocation: LambdaInvocation,
) -> Result<(), Error>
where
    H: Fn(lambda_http::Request) -> F,
    F: Future<Output = Response<Body>> + Send + 'static,
{
    let LambdaInvocation {
        parts,
        body,
        context,
    } = invocation;
    let invocation = Invocation {
        request_id: context.request_id.clone(),
        invocation_id: parts.headers.get(INVOCATION_ID).cloned(),
    };
    let id = &invocation.request_id;
    // `cargo lambda watch` 1.9 takes a whole response only on the connection of its event.
    let integration = match context.deadline {
        WATCH_DEADLINE => Integration::Streaming,
        _ => integration,
    };
    let post = match event::decode(&body) {
        Ok(event) => {
            // A first chunk is polled here too, so a panic before it is posted as an
            // error instead of an empty response.
            // OtherEvents `lambda_http` panics, if it cannot read what a client has sent.
            let exchange = AssertUnwindSafe(async {
                match integration {
                    Integration::Buffered => invocation.post_whole(&handler, event, context).await,
                    Integration::Streaming => {
                        let request = lambda_http::Request::from(event);
                        invocation.post_stream(handler(request.with_lambda_context(context)).await)
                    }
                }
            });
            match exchange.catch_unwind().await {
                Ok(result) => result?,
                Err(_) => {
                    tracing::error!(aws.request_id = id, "a call panicked");
                    invocation.error(&panic_diagnostic())?
                }
            }
        }
        Err(error) => match also.and_then(|also| also(&body)) {
            Some(future) => {
                future.await;
                invocation.post("response", body::Body::from("null"))?
            }
            None => {
                let error = unreadable(&error);
                tracing::error!(aws.request_id = id, "{}", error.error_message);
                invocation.error(&error)?
            }
        },
    };
    let response = client.call(post).await?;
    let status = response.status();
    if !status.is_success() {
        tracing::error!(aws.request_id = id, %status, "the Runtime API refused a response");
    }
    // The pool uses a connection again only after its response has been read.
    response.into_body().collect().await.ok();
    Ok(())
}

/// The error of a handler that panicked. It does not repeat the panic message, which is
/// private. The panic hook has logged the place.
fn panic_diagnostic() -> Diagnostic {
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

/// The invocation that a response belongs to.
struct Invocation {
    request_id: String,
    invocation_id: Option<HeaderValue>,
}

impl Invocation {
    /// The request that posts the whole response to an event, in its envelope.
    async fn post_whole<H, F>(
        &self,
        handler: &H,
        event: LambdaRequest,
        context: Context,
    ) -> Result<Request<body::Body>, Error>
    where
        H: Fn(lambda_http::Request) -> F,
        F: Future<Output = Response<Body>> + Send + 'static,
    {
        let answering = service_fn(|request| handler(request).map(Ok::<_, Infallible>));
        let response = Adapter::from(answering).call(LambdaEvent::new(event, context));
        let Ok(envelope) = response.await;
        self.post("response", body::Body::from(serde_json::to_vec(&envelope)?))
    }

    /// The request that posts a response in chunks.
    fn post_stream(&self, response: Response<Body>) -> Result<Request<body::Body>, Error> {
        let mut request = self.post("response", streaming_body(response)?)?;
        add_streaming_headers(request.headers_mut());
        Ok(request)
    }

    fn error(&self, diagnostic: &Diagnostic) -> Result<Request<body::Body>, Error> {
        let body = body::Body::from(serde_json::to_vec(diagnostic)?);
        let mut request = self.post("error", body)?;
        let error_type = HeaderValue::from_static("unhandled");
        request.headers_mut().insert(ERROR_TYPE, error_type);
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

/// Adds the headers of a response in chunks, which are those of `lambda_runtime`. They
/// announce trailers for an error, but none is ever sent, since a [`Body`] cannot fail.
fn add_streaming_headers(headers: &mut HeaderMap) {
    headers.insert(TRANSFER_ENCODING, CHUNKED);
    headers.insert(MODE, STREAMING);
    for trailer in TRAILERS {
        headers.append(TRAILER, trailer);
    }
    headers.insert(CONTENT_TYPE, PRELUDE);
}

/// The prelude, the NUL bytes and the body, each in its own chunks: `cargo lambda
/// watch` takes the first chunk for the prelude and drops the second. A first chunk of
/// the body that is ready is sent in the same write, and each later chunk without delay.
fn streaming_body(response: Response<Body>) -> Result<body::Body, Error> {
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
    let prelude = [Bytes::from(prelude), end].map(|bytes| Ok::<_, Infallible>(Frame::data(bytes)));
    let chunks = stream::iter(prelude).chain(stream::iter(first)).chain(rest);
    Ok(body::Body::new(StreamBody::new(chunks)))
}

#[cfg(test)]
mod tests;
