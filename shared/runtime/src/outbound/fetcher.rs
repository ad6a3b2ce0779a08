//! Requests to other services.

#[cfg(feature = "fetch")]
use super::client::Client;
use super::response::{FetchError, Fetched, request_error, test_response};
use super::{AddressPolicy, FetchRequest, OutboundUrl};
use crate::telemetry::scope::CallScope;
use crate::telemetry::trace::TRACEPARENT;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method};
#[cfg(feature = "fetch")]
use http_body::Body;
use std::time::Duration;

/// Sends requests to other services. Clones share their connections.
///
/// A program that sends requests has the feature `fetch`, which `aws` includes. Tests do without:
/// there [`SkillTest::on_get`](crate::SkillTest::on_get) gives the responses.
#[derive(Debug, Clone)]
pub struct Fetcher {
    #[cfg(feature = "fetch")]
    client: Client,
    reach: AddressPolicy,
    timeout: Duration,
}

impl Fetcher {
    /// A client that connects to the addresses which `reach` allows, and waits at most
    /// `timeout` for a whole response.
    #[must_use]
    pub fn new(reach: AddressPolicy, timeout: Duration) -> Self {
        Self {
            #[cfg(feature = "fetch")]
            client: Client::new(reach),
            reach,
            timeout,
        }
    }

    /// Which addresses it connects to.
    #[must_use]
    pub const fn reach(&self) -> AddressPolicy {
        self.reach
    }

    /// A request that reads.
    pub fn get<'a>(&'a self, url: &'a OutboundUrl) -> FetchRequest<'a> {
        FetchRequest::new(self, Method::GET, url)
    }

    /// A request that puts something in its place, so that it may be repeated.
    pub fn put<'a>(&'a self, url: &'a OutboundUrl) -> FetchRequest<'a> {
        FetchRequest::new(self, Method::PUT, url)
    }

    /// A request that may do something again when it is repeated.
    pub fn post<'a>(&'a self, url: &'a OutboundUrl) -> FetchRequest<'a> {
        FetchRequest::new(self, Method::POST, url)
    }

    /// A request that deletes.
    pub fn delete<'a>(&'a self, url: &'a OutboundUrl) -> FetchRequest<'a> {
        FetchRequest::new(self, Method::DELETE, url)
    }

    /// Sends `request`, and returns the response when its head is there: its body is a stream.
    ///
    /// # Errors
    /// [`FetchError`] when there is no head in time. A status other than 2xx is not an error.
    #[cfg(feature = "fetch")]
    pub async fn open(
        &self,
        request: http::Request<Bytes>,
    ) -> Result<
        http::Response<impl Body<Data = Bytes, Error: std::fmt::Display> + Unpin + use<>>,
        FetchError,
    > {
        OutboundUrl::parse(&request.uri().to_string(), self.reach).map_err(request_error)?;
        let response = tokio::time::timeout(self.timeout, self.client.open(request)).await;
        let response = response.map_err(|_| FetchError::Timeout(self.timeout))??;
        response.try_into_http1x().map_err(request_error)
    }

    /// Sends `body` to `url` and reads at most `limit` bytes of the response. If the body of a
    /// response to a write breaks off, the status still counts, and [`Fetched::cut`] is set.
    ///
    /// # Errors
    /// [`FetchError`] when there is no response. A status other than 2xx is not an error.
    pub async fn send(
        &self,
        url: &OutboundUrl,
        method: Method,
        headers: HeaderMap,
        body: Bytes,
        limit: usize,
    ) -> Result<Fetched, FetchError> {
        // Checked again: the client does not resolve an IP address in a URL, and the URL
        // may have been stored under settings that allowed more.
        OutboundUrl::parse(url.as_str(), self.reach).map_err(request_error)?;
        let request = http::Request::builder().method(method).uri(url.as_str());
        let mut request = request.body(body).map_err(request_error)?;
        *request.headers_mut() = headers;
        // The service that a skill calls joins the trace of the turn.
        let value = CallScope::current().trace().map(|trace| trace.to_string());
        let value = value.and_then(|value| HeaderValue::from_str(&value).ok());
        if let Some(value) = value.filter(|_| !request.headers().contains_key(TRACEPARENT)) {
            request.headers_mut().insert(TRACEPARENT, value);
        }
        if let Some(response) = test_response(&request) {
            return response;
        }
        tokio::time::timeout(self.timeout, self.exchange(request, limit))
            .await
            .unwrap_or(Err(FetchError::Timeout(self.timeout)))
    }

    #[cfg(feature = "fetch")]
    async fn exchange(
        &self,
        request: http::Request<Bytes>,
        limit: usize,
    ) -> Result<Fetched, FetchError> {
        self.client.exchange(request, limit).await
    }

    #[cfg(not(feature = "fetch"))]
    async fn exchange(&self, _: http::Request<Bytes>, _: usize) -> Result<Fetched, FetchError> {
        let text = "the program is built without the feature `fetch` of a2a-lambda; \
                    a test gives the response with `SkillTest::on_get` or `on_request`";
        Err(FetchError::Request(text.to_owned()))
    }
}
