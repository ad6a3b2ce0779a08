//! Lets the pages of one origin call the agent from a browser (Fetch standard, "CORS
//! protocol"; <https://fetch.spec.whatwg.org/#http-cors-protocol>).
//!
//! The headers are the same in each response, as those that API Gateway sends itself. They
//! allow no cookies: a caller is known by its `Authorization` header only.

use super::body::Body;
use super::encode;
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, ORIGIN,
};
use http::uri::{Parts, Uri};
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

/// An origin whose pages may read responses: `https://app.example.com`, or `*` for all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CorsOrigin(HeaderValue);

impl CorsOrigin {
    /// An origin as browsers write it (RFC 6454 §6.2): scheme, host in lower case, and the
    /// port unless it is the scheme's own. Or `*`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if text != "*" {
            let Parts {
                scheme, authority, ..
            } = text.parse::<Uri>().ok()?.into_parts();
            let (scheme, authority) = (scheme?, authority?);
            let own_port = match scheme.as_str() {
                "http" => ":80",
                "https" => ":443",
                _ => return None,
            };
            let canonical = format!("{scheme}://{authority}");
            if canonical != text
                || text.to_ascii_lowercase() != text
                || text.contains('@')
                || text.ends_with(own_port)
            {
                return None;
            }
        }
        HeaderValue::from_str(text).ok().map(Self)
    }

    /// Whether pages of every origin are allowed.
    #[must_use]
    pub(crate) fn is_any(&self) -> bool {
        self.0 == "*"
    }

    /// Whether a page of this very origin sent a request.
    pub(super) fn is_sender(&self, headers: &HeaderMap) -> bool {
        let mut origins = headers.get_all(ORIGIN).iter();
        origins.next() == Some(&self.0) && origins.next().is_none()
    }

    /// The answer to a preflight: a browser asks whether a page may make a request.
    /// `None` for any other request.
    pub(super) fn preflight(&self, method: &Method, headers: &HeaderMap) -> Option<Response<Body>> {
        if method != Method::OPTIONS || !headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD) {
            return None;
        }
        let mut response = Response::new(encode::whole(Vec::new()));
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

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_lambda_rows::each_row;

    #[test]
    fn an_origin_is_what_browsers_send_and_nothing_else() {
        let rows = [
            "*",
            "https://app.example.com",
            "http://localhost:3000",
            "https://[::1]:8443",
        ];
        each_row(rows, |text| {
            assert!(CorsOrigin::parse(text).is_some(), "{text}");
        });
        let cases = [
            "",
            "null",
            "app.example.com",
            "https://",
            "https://app.example.com/",
            "https://app.example.com/a",
            "https://App.example.com",
            "https://app.example.com:443",
            "http://app.example.com:80",
            "https://ann@app.example.com",
            "https://a.example,https://b.example",
            "https://*.example.com x",
            "ftp://app.example.com",
            "https://app.example.com\r\nset-cookie: a=b",
        ];
        each_row(cases, |text| {
            assert!(CorsOrigin::parse(text).is_none(), "{text}");
        });
    }
}
