//! Sends requests to the service and reads its answers, with limits on time and bytes.
//!
//! It is the HTTP client of the AWS SDK. An operator names the service, so every address is
//! allowed, also loopback and plain HTTP. It uses no proxy and follows no redirect.

use super::failure::{no_answer, no_rest, refused};
use crate::provider::ModelCallError;
use aws_smithy_http_client::{
    Connector,
    tls::{self, rustls_provider::CryptoMode},
};
use aws_smithy_runtime_api::client::http::{HttpConnector as _, HttpConnectorSettings};
use aws_smithy_runtime_api::http::{Request as SdkRequest, Response as SdkResponse};
use aws_smithy_types::body::SdkBody;
use bytes::{Bytes, BytesMut};
use futures::stream::{self, BoxStream, StreamExt as _};
use http::{HeaderValue, header};
use http_body_util::BodyExt as _;
use std::fmt;
use std::sync::OnceLock;
use std::time::Duration;
use tokio::time::Instant;

/// How long a client waits for a connection.
const CONNECT: Duration = Duration::from_secs(5);
/// How long an idle connection is kept. Short, since servers close connections while
/// Lambda freezes the function.
const KEEP: Duration = Duration::from_secs(20);
/// The most bytes of a refusal that are read.
const REFUSAL_LIMIT: usize = 64 * 1024;

/// Some services refuse requests without one.
const USER_AGENT: &str = concat!("a2a-lambda/", env!("CARGO_PKG_VERSION"));

/// The limits of a call.
#[derive(Debug, Clone, Copy)]
pub(super) struct CallLimits {
    /// The time of the whole call.
    pub(super) total: Duration,
    /// The time between two chunks. In a stream also the time before the first byte: an answer
    /// that is not streamed is silent while the model works.
    pub(super) idle: Duration,
    /// The bytes of the answer.
    pub(super) bytes: usize,
}

/// The longest run of a Lambda function, 2 minutes of silence, and 16 MiB.
impl Default for CallLimits {
    fn default() -> Self {
        Self {
            total: Duration::from_secs(900),
            idle: Duration::from_secs(120),
            bytes: 16 * 1024 * 1024,
        }
    }
}

/// The client of one endpoint.
pub(super) struct Transport {
    url: String,
    authorization: Option<HeaderValue>,
    limits: CallLimits,
    /// Made at the first call: TLS loads the certificates of the system.
    connector: OnceLock<Connector>,
}

/// The body of an answer.
pub(super) struct ReplyBody {
    body: SdkBody,
    limits: CallLimits,
    deadline: Instant,
    /// The bytes that the answer may still have.
    remaining: usize,
}

impl Transport {
    pub(super) const fn new(
        url: String,
        authorization: Option<HeaderValue>,
        limits: CallLimits,
    ) -> Self {
        Self {
            url,
            authorization,
            limits,
            connector: OnceLock::new(),
        }
    }

    /// Posts JSON and returns the body of the answer. If `streams`, the first byte counts as a
    /// chunk.
    ///
    /// # Errors
    /// [`ModelCallError`] when there is no answer with a status of 2xx.
    pub(super) async fn post(
        &self,
        json: Vec<u8>,
        streams: bool,
    ) -> Result<ReplyBody, ModelCallError> {
        let deadline = deadline(self.limits.total);
        let request = self.request(json, streams)?;
        let connector = self.connector.get_or_init(connector);
        let wait = if streams {
            self.limits.idle.min(self.limits.total)
        } else {
            self.limits.total
        };
        let response = tokio::time::timeout(wait, connector.call(request)).await;
        let response: SdkResponse = response
            .map_err(|_| ModelCallError::Slow(wait))?
            .map_err(|error| no_answer(&root(&error)))?;
        let status = response.status();
        let mut body = ReplyBody {
            body: response.into_body(),
            limits: self.limits,
            deadline,
            remaining: self.limits.bytes,
        };
        if status.is_success() {
            return Ok(body);
        }
        body.remaining = REFUSAL_LIMIT;
        // The status counts, whatever happens to the body.
        let bytes = body.whole().await.unwrap_or_default();
        Err(refused(status.as_u16(), &bytes))
    }

    fn request(&self, json: Vec<u8>, streams: bool) -> Result<SdkRequest, ModelCallError> {
        let fault = |error: &dyn fmt::Display| ModelCallError::Request(error.to_string());
        let accept = if streams {
            "text/event-stream"
        } else {
            "application/json"
        };
        let mut request = http::Request::post(&self.url)
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::ACCEPT, accept)
            .header(header::USER_AGENT, USER_AGENT)
            .body(SdkBody::from(json))
            .map_err(|error| fault(&error))?;
        if let Some(value) = &self.authorization {
            let headers = request.headers_mut();
            headers.insert(header::AUTHORIZATION, value.clone());
        }
        SdkRequest::try_from(request).map_err(|error| fault(&error))
    }
}

impl ReplyBody {
    /// The next chunk; `None` at the end.
    async fn chunk(&mut self) -> Result<Option<Bytes>, ModelCallError> {
        loop {
            let idle = deadline(self.limits.idle);
            let frame = tokio::time::timeout_at(idle.min(self.deadline), self.body.frame()).await;
            let slow = |_| {
                ModelCallError::Slow(if idle < self.deadline {
                    self.limits.idle
                } else {
                    self.limits.total
                })
            };
            let Some(frame) = frame.map_err(slow)? else {
                return Ok(None);
            };
            let frame = frame.map_err(|error| no_rest(&root(&*error)))?;
            // A frame without data has trailers.
            let Ok(data) = frame.into_data() else {
                continue;
            };
            let remaining = self.remaining.checked_sub(data.len());
            self.remaining = remaining.ok_or(ModelCallError::TooLong(self.limits.bytes))?;
            return Ok(Some(data));
        }
    }

    /// The whole body.
    ///
    /// # Errors
    /// [`ModelCallError`] when the body breaks off, is too slow or too long.
    pub(super) async fn whole(mut self) -> Result<Bytes, ModelCallError> {
        let mut bytes = BytesMut::new();
        while let Some(chunk) = self.chunk().await? {
            bytes.extend_from_slice(&chunk);
        }
        Ok(bytes.freeze())
    }

    /// The chunks, while they arrive. An error ends them.
    pub(super) fn into_chunks(self) -> BoxStream<'static, Result<Bytes, ModelCallError>> {
        stream::try_unfold(self, |mut body| async move {
            let chunk = body.chunk().await?;
            Ok(chunk.map(|chunk| (chunk, body)))
        })
        .boxed()
    }
}

/// The URL and the limits.
impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transport")
            .field("url", &self.url)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// The end of a time from now. A time that no clock has becomes a day.
fn deadline(after: Duration) -> Instant {
    let now = Instant::now();
    now.checked_add(after)
        .unwrap_or_else(|| now + Duration::from_secs(86_400))
}

fn connector() -> Connector {
    let settings = HttpConnectorSettings::builder()
        .connect_timeout(CONNECT)
        .build();
    Connector::builder()
        .connector_settings(settings)
        .pool_idle_timeout(KEEP)
        // Not aws-lc: see `outbound::client`.
        .tls_provider(tls::Provider::Rustls(CryptoMode::Ring))
        .build()
}

/// The text of the innermost cause.
fn root(error: &(dyn std::error::Error + 'static)) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body::Frame;
    use http_body_util::StreamBody;

    /// A body with these chunks, which never ends.
    fn endless(chunks: &'static [&'static str], idle: u64, total: u64, bytes: usize) -> ReplyBody {
        let frame =
            |chunk: &&'static str| Ok::<_, std::io::Error>(Frame::data(Bytes::from(*chunk)));
        let frames = stream::iter(chunks.iter().map(frame)).chain(stream::pending());
        let (idle, total) = (Duration::from_secs(idle), Duration::from_secs(total));
        ReplyBody {
            body: SdkBody::from_body_1_x(StreamBody::new(frames)),
            limits: CallLimits { total, idle, bytes },
            deadline: deadline(total),
            remaining: bytes,
        }
    }

    /// The chunks before the error, and the error.
    async fn chunks(body: ReplyBody) -> (Vec<Bytes>, ModelCallError) {
        let (mut read, mut chunks) = (Vec::new(), body.into_chunks());
        loop {
            match chunks.next().await.unwrap() {
                Ok(chunk) => read.push(chunk),
                Err(error) => return (read, error),
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn silence_between_chunks_ends_a_stream_by_the_first_limit() {
        for (idle, total, expected) in [(3, 9, 3), (9, 3, 3), (5, 5, 5)] {
            let (read, error) = chunks(endless(&["ab", "c"], idle, total, 9)).await;
            assert_eq!(read, ["ab", "c"]);
            let expected = Duration::from_secs(expected);
            assert!(
                matches!(error, ModelCallError::Slow(limit) if limit == expected),
                "{error}"
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn chunks_beyond_the_limit_of_bytes_are_refused() {
        let (read, error) = chunks(endless(&["ab", "c", "de"], 9, 9, 4)).await;
        assert_eq!(read, ["ab", "c"]);
        assert!(matches!(error, ModelCallError::TooLong(4)), "{error}");
    }
}
