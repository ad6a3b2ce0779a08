//! Writes the responses of functions with a streaming integration.
//!
//! Everything that is ready is sent in one write, and each later chunk without delay.

use crate::http::Body;
use bytes::Bytes;
use futures::{FutureExt as _, StreamExt, stream};
use http::Response;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, TRAILER, TRANSFER_ENCODING};
use http_body::Frame;
use http_body_util::{BodyStream, StreamBody};
use lambda_runtime::{Error, MetadataPrelude};
use lambda_runtime_api_client::body;
use std::convert::Infallible;

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
pub(super) const END_OF_PRELUDE: [u8; 8] = [0; 8];

/// Adds the headers of a response in chunks, which are those of `lambda_runtime`. They
/// announce trailers for an error, but none is ever sent, since a [`Body`] cannot fail.
pub(super) fn add_headers(headers: &mut HeaderMap) {
    headers.insert(TRANSFER_ENCODING, CHUNKED);
    headers.insert(MODE, STREAMING);
    for trailer in TRAILERS {
        headers.append(TRAILER, trailer);
    }
    headers.insert(CONTENT_TYPE, PRELUDE);
}

/// The prelude, the NUL bytes and the body, each in its own chunks: `cargo lambda
/// watch` takes the first chunk for the prelude and drops the second. A first chunk of
/// the body that is ready is sent in the same write.
pub(super) fn body(response: Response<Body>) -> Result<body::Body, Error> {
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
