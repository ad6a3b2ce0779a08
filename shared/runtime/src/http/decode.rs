//! Decodes a request into a call, and makes the checks that need no identity.

use super::ops::OpsPath;
use super::{Function, HttpService};
use crate::task::A2aError;
use a2a_lambda_wire::{
    Endpoint, OpenedRequest, Operation, RawRequest, Rejected, RoutedRequest, WireResponse,
};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request};

/// Checks size and encoding, then decodes the JSON-RPC envelope or the path. A call
/// that belongs to another function is an error.
pub(super) fn open(
    edge: &HttpService,
    request: &Request<Bytes>,
) -> Result<OpenedRequest, Rejected> {
    let headers = request.headers();
    let routed = routed(request);
    if request.body().len() > edge.max_body {
        let allowed = edge.max_body as u64;
        return Err(routed.reject(A2aError::PayloadTooLarge { allowed }));
    }
    // The limit counts bytes of JSON: a small compressed body could unpack to gigabytes.
    if text(headers, "content-encoding").is_some_and(|coding| coding != "identity") {
        return Err(routed.reject(A2aError::UnsupportedMediaType));
    }
    if Function::serving(routed.endpoint(), routed.raw().method) != edge.door {
        return Err(routed.reject(A2aError::MethodNotFound));
    }
    routed.open()
}

/// The error for a request that no operation of the protocol answers.
pub(super) fn reject(request: &Request<Bytes>, refusal: A2aError) -> WireResponse {
    routed(request).reject(refusal).answer()
}

fn routed(request: &Request<Bytes>) -> RoutedRequest<'_> {
    let headers = request.headers();
    RoutedRequest::of(RawRequest {
        method: request.method().as_str(),
        path: request.uri().path(),
        query: request.uri().query(),
        content_type: text(headers, "content-type"),
        accept: text(headers, "accept"),
        version: text(headers, "a2a-version"),
        extensions: text(headers, "a2a-extensions").or_else(|| text(headers, "x-a2a-extensions")),
        last_event_id: text(headers, "last-event-id"),
        idempotency_key: only(headers, "idempotency-key"),
        body: request.body(),
    })
}

/// The value of a header that a request may have once. If it has two different
/// values, the result is empty, which is not valid, so that neither is used.
fn only<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h [u8]> {
    let mut values = headers.get_all(name).iter().map(HeaderValue::as_bytes);
    let first = values.next()?;
    Some(if values.all(|value| value == first) {
        first
    } else {
        b""
    })
}

/// The text of a header; `None` if it is not text.
fn text<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

impl Function {
    /// The function to which API Gateway routes a request, by the routes in
    /// `template.yaml`. A request without a route belongs to `rpc`, which responds
    /// with an error.
    #[must_use]
    pub fn of(method: &str, path: &str) -> Self {
        if OpsPath::of(method, path).is_some() {
            return Self::Ops;
        }
        Self::serving(a2a_lambda_wire::site(method, path), method)
    }

    fn serving(endpoint: Endpoint, method: &str) -> Self {
        use Operation as O;
        match endpoint {
            Endpoint::JsonRpc | Endpoint::Nowhere => Self::Rpc,
            Endpoint::Operation {
                operation,
                below_task,
            } => match operation {
                O::Card | O::LegacyCard => Self::AgentCard,
                O::Stream => Self::TasksStream,
                O::Subscribe if method == "GET" => Self::TasksGet,
                O::Subscribe => Self::TasksStream,
                O::Cancel if below_task => Self::TasksStream,
                O::Get
                | O::List
                | O::GetPushConfig
                | O::ListPushConfigs
                | O::ExtendedCard
                | O::ListContexts
                | O::ListSkills => Self::TasksGet,
                O::Send
                | O::Cancel
                | O::CreatePushConfig
                | O::DeletePushConfig
                | O::CreateUpload
                | O::DeleteContext
                | O::DeleteTask => Self::TasksSend,
            },
        }
    }
}
