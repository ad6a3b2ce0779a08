//! Makes HTTP responses of the protocol's answers.

use crate::origin::HostError;
use a2a_lambda_wire::WireResponse;
use bytes::Bytes;
use http::header::{HeaderName, HeaderValue};
use http::{HeaderMap, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use std::convert::Infallible;

/// A response body. Its error type is empty, since Lambda would write an error as
/// text into the body. A stream that fails ends with a protocol event instead.
pub type Body = UnsyncBoxBody<Bytes, Infallible>;

/// Forbids browsers to guess a media type.
const NOSNIFF: HeaderName = HeaderName::from_static("x-content-type-options");

/// A response with its whole body.
pub(super) fn answer(wire_response: WireResponse) -> Response<Body> {
    let mut response = Response::new(full_body(wire_response.body));
    *response.status_mut() =
        StatusCode::from_u16(wire_response.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    set(response.headers_mut(), wire_response.headers);
    response
}

/// A response whose body is a stream of events.
pub(super) fn stream(headers: Vec<(&'static str, String)>, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    set(response.headers_mut(), headers);
    response
}

/// Sets each header once. The streaming prelude of Lambda would write a repeated
/// header as an array, and API Gateway does not document what it does with one.
fn set(headers: &mut HeaderMap, values: Vec<(&'static str, String)>) {
    for (name, value) in values {
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.insert(HeaderName::from_static(name), value);
        }
    }
    headers.insert(NOSNIFF, HeaderValue::from_static("nosniff"));
}

/// A body in one chunk.
pub(super) fn full_body(bytes: Vec<u8>) -> Body {
    Full::new(Bytes::from(bytes)).boxed_unsync()
}

/// The response to a request from elsewhere. It is plain text, since the sender is not an A2A client.
pub(super) fn refuse(error: HostError) -> Response<Body> {
    let mut response = Response::new(full_body(error.text().into()));
    *response.status_mut() = error.status();
    response
}
