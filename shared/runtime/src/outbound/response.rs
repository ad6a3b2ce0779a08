//! The response of another service, or why there is none.

use bytes::Bytes;
use std::fmt::Display;
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
