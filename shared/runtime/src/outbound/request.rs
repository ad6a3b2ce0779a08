//! A request of a skill, and whether its failure is worth another try.

use super::response::{FetchError, Fetched, request_error};
use super::{Fetcher, OutboundUrl};
use a2a_lambda_skill::{AgentError, AgentResult, StepRequests};
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderName};
use http::{HeaderMap, HeaderValue, Method};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The most bytes of a response that are read.
const LIMIT: usize = 1024 * 1024;
/// The header with the key by which a service recognises a repeated write
/// (draft-ietf-httpapi-idempotency-key-header).
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// A request of a skill to another service.
///
/// A write in a step carries the [key](a2a_lambda_skill::TaskContext::step_key) of the step as
/// `Idempotency-Key`, and its further writes that key with their number: the same in each try.
///
/// An error has the code `NETWORK`. It is [transient](AgentError::transient), so that a step with
/// tries left is tried again, if there was no answer, or the status is 429 or 5xx. Of a `POST`,
/// which might then be done twice, it is so only if there was no connection, or the status is
/// 429, or 503 with `Retry-After`; and no later error of the same step is, since the step would send
/// the `POST` again. [`FetchRequest::idempotent`] says that a `POST` may be repeated.
#[derive(Debug)]
#[must_use = "a request is sent by `send` or `json`"]
pub struct FetchRequest<'a> {
    fetcher: &'a Fetcher,
    url: &'a OutboundUrl,
    method: Method,
    headers: Result<HeaderMap, FetchError>,
    body: AgentResult<Bytes>,
    limit: usize,
    is_repeatable: bool,
}

impl<'a> FetchRequest<'a> {
    pub(super) fn new(fetcher: &'a Fetcher, method: Method, url: &'a OutboundUrl) -> Self {
        Self {
            fetcher,
            url,
            is_repeatable: method != Method::POST,
            method,
            headers: Ok(HeaderMap::new()),
            body: Ok(Bytes::new()),
            limit: LIMIT,
        }
    }

    /// Adds a header. A value that is no header value is an error of `send`.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        let (name, value) = (name.parse::<HeaderName>(), HeaderValue::from_str(value));
        self.headers = self.headers.and_then(|mut headers| {
            headers.insert(name.map_err(request_error)?, value.map_err(request_error)?);
            Ok(headers)
        });
        self
    }

    /// Sends `value` as JSON.
    pub fn body(mut self, value: &impl Serialize) -> Self {
        let json = serde_json::to_vec(value).map_err(AgentError::serialization);
        self.body = json.map(Bytes::from);
        self
    }

    /// The most bytes of the response that are read: 1 MiB if it is not set.
    pub const fn limit(mut self, bytes: usize) -> Self {
        self.limit = bytes;
        self
    }

    /// Says that the service does the same work once, however often it gets this `POST`: for
    /// example because it knows `Idempotency-Key`.
    pub const fn idempotent(mut self) -> Self {
        self.is_repeatable = true;
        self
    }

    /// Sends the request. A status that is not worth another try is not an error.
    ///
    /// # Errors
    /// `NETWORK` when there is no answer, or the status is 429 or 5xx. `SERIALIZATION` for a body
    /// that is no JSON.
    pub async fn send(self) -> AgentResult<Fetched> {
        let is_write = self.method != Method::GET;
        let requests = StepRequests::current();
        let (mut headers, body) = (self.headers.map_err(AgentError::network)?, self.body?);
        if !body.is_empty() && !headers.contains_key(CONTENT_TYPE) {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        if let Some(requests) = requests.as_ref().filter(|_| is_write) {
            let key = HeaderValue::from_str(&requests.next_key())?;
            headers.entry(IDEMPOTENCY_KEY).or_insert(key);
        }
        let Self { fetcher, url, .. } = self;
        let response = if url.reach() == fetcher.reach() {
            let exchange = fetcher.send(url, self.method, headers, body, self.limit);
            exchange.await
        } else {
            let (url, client) = (url.reach(), fetcher.reach());
            let text = format!("the URL is one for {url:?}, the client one for {client:?}");
            Err(FetchError::Request(text))
        };
        let is_undone = match &response {
            Err(FetchError::Request(_) | FetchError::Unconnected(_)) => true,
            Err(FetchError::Connection(_) | FetchError::Timeout(_)) => false,
            Ok(it) => it.status == 429 || it.status == 503 && it.retry_after.is_some(),
        };
        if let Some(requests) = requests.filter(|_| !self.is_repeatable && !is_undone) {
            requests.note_post();
        }
        let retry_after = response.as_ref().ok().and_then(|it| it.retry_after);
        let error = match response {
            Err(FetchError::Request(text)) => return Err(AgentError::network(text)),
            Err(error) => AgentError::network(error),
            Ok(it) if matches!(it.status, 429 | 500..=599) => status_error(it.status),
            Ok(response) => return Ok(response),
        };
        let error = match retry_after {
            Some(seconds) => error.with_detail("retryAfter", seconds),
            None => error,
        };
        if is_undone || self.is_repeatable {
            return Err(error.transient());
        }
        Err(error)
    }

    /// Sends the request and reads the JSON of its response.
    ///
    /// # Errors
    /// As [`FetchRequest::send`]. `NETWORK`, not transient, when the status is not 2xx, and when
    /// the response is longer than the limit or is no JSON of a `T`.
    pub async fn json<T: DeserializeOwned>(self) -> AgentResult<T> {
        let limit = self.limit;
        let response = self.send().await?;
        match response.status {
            200..=299 if response.cut => {
                let text = format!("the answer is incomplete, or has more than {limit} bytes");
                Err(AgentError::network(text))
            }
            200..=299 => serde_json::from_slice(&response.body).map_err(AgentError::network),
            status => Err(status_error(status)),
        }
    }
}

fn status_error(status: u16) -> AgentError {
    AgentError::network(format!("the service answered with status {status}"))
}

#[cfg(test)]
mod tests;
