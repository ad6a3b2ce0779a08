//! The body of a response.

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use std::convert::Infallible;

/// A response body. Its error type is empty, since Lambda would write an error as
/// text into the body. A stream that fails ends with a protocol event instead.
pub type Body = UnsyncBoxBody<Bytes, Infallible>;
