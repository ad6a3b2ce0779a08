//! Lets the pages of one origin call the agent from a browser (Fetch standard, "CORS
//! protocol"; <https://fetch.spec.whatwg.org/#http-cors-protocol>).
//!
//! The headers are the same in each response, as those that API Gateway sends itself. They
//! allow no cookies: a caller is known by its `Authorization` header only.

use super::encode;
use super::encode::Body;
use crate::origin::CorsOrigin;
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD,
};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};

/// The methods that a page may use.
pub const METHODS: &str = "DELETE, GET, POST";
/// The request headers that a page may set.
pub const REQUEST_HEADERS: &str = "a2a-extensions, a2a-version, authorization, content-type, \
     idempotency-key, if-none-match, last-event-id, traceparent, x-a2a-extensions";
/// The response headers that a page may read, beside those that every page may.
pub const RESPONSE_HEADERS: &str = "a2a-extensions, etag, retry-after, www-authenticate, \
     x-a2a-extensions";
/// For how many seconds a browser may remember the answer to a preflight. Browsers allow
/// two hours at most.
pub const MAX_AGE: u32 = 7200;

impl CorsOrigin {
    /// The answer to a preflight: a browser asks whether a page may make a request.
    /// `None` for any other request.
    pub(super) fn preflight(&self, method: &Method, headers: &HeaderMap) -> Option<Response<Body>> {
        if method != Method::OPTIONS || !headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD) {
            return None;
        }
        let mut response = Response::new(encode::full_body(Vec::new()));
        *response.status_mut() = StatusCode::NO_CONTENT;
        let headers = response.headers_mut();
        for (name, value) in [
            (ACCESS_CONTROL_ALLOW_METHODS, METHODS),
            (ACCESS_CONTROL_ALLOW_HEADERS, REQUEST_HEADERS),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        headers.insert(ACCESS_CONTROL_MAX_AGE, MAX_AGE.into());
        Some(response)
    }

    /// Lets the page read a response.
    pub(super) fn allow(&self, response: &mut Response<Body>) {
        let headers = response.headers_mut();
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, self.0.clone());
        headers.insert(
            ACCESS_CONTROL_EXPOSE_HEADERS,
            HeaderValue::from_static(RESPONSE_HEADERS),
        );
    }
}
