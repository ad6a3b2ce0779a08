//! Decodes a request into a call, and makes the checks that need no identity.

use super::function::Function;
use super::{HttpService, MAX_BODY};
use crate::task::A2aError;
use a2a_lambda_wire::{OpenedRequest, RawRequest, Rejected, RoutedRequest, WireResponse};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request};
use std::borrow::Cow;

/// Checks size and encoding, then decodes the JSON-RPC envelope or the path. A call
/// that belongs to another function is an error.
pub(super) fn open(
    edge: &HttpService,
    request: &Request<Bytes>,
) -> Result<OpenedRequest, Rejected> {
    let headers = request.headers();
    let lists = Lists::of(headers);
    let routed_request = route(request, &lists);
    if request.body().len() > MAX_BODY {
        let limit = MAX_BODY as u64;
        return Err(routed_request.reject(A2aError::PayloadTooLarge { limit }));
    }
    // The limit counts bytes of JSON: a small compressed body could unpack to gigabytes.
    if text(headers, "content-encoding").is_some_and(|coding| coding != "identity") {
        return Err(routed_request.reject(A2aError::UnsupportedMediaType));
    }
    if Function::serving(routed_request.endpoint(), routed_request.raw().method) != edge.function {
        return Err(routed_request.reject(A2aError::MethodNotFound));
    }
    routed_request.open()
}

/// The error for a request that no operation of the protocol answers.
pub(super) fn reject(request: &Request<Bytes>, error: A2aError) -> WireResponse {
    let lists = Lists::of(request.headers());
    route(request, &lists).reject(error).response()
}

fn route<'r>(request: &'r Request<Bytes>, lists: &'r Lists<'r>) -> RoutedRequest<'r> {
    let headers = request.headers();
    RoutedRequest::of(RawRequest {
        method: request.method().as_str(),
        path: request.uri().path(),
        query: request.uri().query(),
        content_type: text(headers, "content-type"),
        accept: lists.accept.as_deref(),
        version: text(headers, "a2a-version"),
        extensions: lists.extensions.as_deref(),
        last_event_id: text(headers, "last-event-id"),
        idempotency_key: only(headers, "idempotency-key"),
        body: request.body(),
    })
}

/// The headers that hold lists.
struct Lists<'h> {
    accept: Option<Cow<'h, str>>,
    extensions: Option<Cow<'h, str>>,
}

impl<'h> Lists<'h> {
    fn of(headers: &'h HeaderMap) -> Self {
        let extensions = list(headers, "a2a-extensions");
        Self {
            accept: list(headers, "accept"),
            extensions: extensions.or_else(|| list(headers, "x-a2a-extensions")),
        }
    }
}

/// The text of a header that holds a list. A list in several headers is one list (RFC 9110
/// §5.3). Values that are no text are left out.
fn list<'h>(headers: &'h HeaderMap, name: &str) -> Option<Cow<'h, str>> {
    let values = headers.get_all(name).iter();
    let mut texts = values.filter_map(|value| value.to_str().ok());
    let mut all = Cow::Borrowed(texts.next()?);
    for text in texts {
        let all = all.to_mut();
        all.push_str(", ");
        all.push_str(text);
    }
    Some(all)
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

/// The text of a header, of several the first; `None` if it is not text.
fn text<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

#[cfg(test)]
mod tests {
    use super::list;
    use http::{HeaderMap, HeaderValue};

    #[test]
    fn a_list_in_several_headers_is_one_list() {
        let mut headers = HeaderMap::new();
        assert_eq!(list(&headers, "accept"), None);
        for (value, joined) in [
            (&b"a"[..], Some("a")),
            (b"\xff", Some("a")),
            (b"b, c", Some("a, b, c")),
        ] {
            headers.append("accept", HeaderValue::from_bytes(value).unwrap());
            assert_eq!(list(&headers, "accept").as_deref(), joined);
        }
    }
}
