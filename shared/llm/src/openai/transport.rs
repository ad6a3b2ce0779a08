//! Sends requests to the service and reads its answers, with limits on time and bytes.
//!
//! It is the HTTP client of the AWS SDK. An operator names the service, so every address is
//! allowed, also loopback and plain HTTP. It uses no proxy and follows no redirect.

use super::failure::{no_answer, no_rest, status_error};
use crate::provider::{ModelCallError, wait};
use aws_smithy_http_client::{
    Connector,
    tls::{self, rustls_provider::CryptoMode},
};
use aws_smithy_runtime_api::client::http::{HttpConnector as _, HttpConnectorSettings};
use aws_smithy_runtime_api::http::{Request as SdkRequest, Response as SdkResponse};
use aws_smithy_types::body::SdkBody;
use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt as _, TryStreamExt as _};
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

/// The chunks of an answer, while they arrive. An error ends them.
pub(super) type ReplyChunks = BoxStream<'static, Result<Bytes, ModelCallError>>;

/// The client of one endpoint.
#[derive(Debug)]
pub(super) struct Transport {
    url: String,
    authorization: Option<HeaderValue>,
    limits: CallLimits,
    /// Made at the first call: TLS loads the certificates of the system.
    connector: OnceLock<Connector>,
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
    ) -> Result<ReplyChunks, ModelCallError> {
        let CallLimits { total, idle, bytes } = self.limits;
        let deadline = Instant::now() + total;
        let request = self.request(json, streams)?;
        let connector = self.connector.get_or_init(connector);
        let first = if streams { idle.min(total) } else { total };
        let response = wait(first, connector.call(request)).await?;
        let response: SdkResponse = response.map_err(|error| no_answer(&root(&error)))?;
        let status = response.status();
        if status.is_success() {
            return Ok(chunks(response.into_body(), self.limits, deadline));
        }
        let bytes = bytes.min(REFUSAL_LIMIT);
        let limits = CallLimits {
            bytes,
            ..self.limits
        };
        // The status counts, whatever happens to the body.
        let refusal = join(chunks(response.into_body(), limits, deadline)).await;
        Err(status_error(status.as_u16(), &refusal.unwrap_or_default()))
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

/// The chunks of a body that has to end before `deadline`.
fn chunks(body: SdkBody, limits: CallLimits, deadline: Instant) -> ReplyChunks {
    let read = move |(mut body, remaining): (SdkBody, usize)| async move {
        let idle = Instant::now() + limits.idle;
        let frame = tokio::time::timeout_at(idle.min(deadline), body.frame()).await;
        let is_idle = idle < deadline;
        let limit = if is_idle { limits.idle } else { limits.total };
        let Some(frame) = frame.map_err(|_| ModelCallError::Slow(limit))? else {
            return Ok(None);
        };
        let frame = frame.map_err(|error| no_rest(&root(&*error)))?;
        // A frame without data has trailers.
        let data = frame.into_data().unwrap_or_default();
        let remaining = remaining.checked_sub(data.len());
        let remaining = remaining.ok_or(ModelCallError::TooLong(limits.bytes))?;
        Ok(Some((data, (body, remaining))))
    };
    stream::try_unfold((body, limits.bytes), read).boxed()
}

/// Reads all chunks.
///
/// # Errors
/// That of the chunks.
pub(super) async fn join(chunks: ReplyChunks) -> Result<Vec<u8>, ModelCallError> {
    let chunks: Vec<Bytes> = chunks.try_collect().await?;
    Ok(chunks.concat())
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
    fn endless(sent: &'static [&'static str], idle: u64, total: u64, bytes: usize) -> ReplyChunks {
        let frame =
            |chunk: &&'static str| Ok::<_, std::io::Error>(Frame::data(Bytes::from(*chunk)));
        let frames = stream::iter(sent.iter().map(frame)).chain(stream::pending());
        let (idle, total) = (Duration::from_secs(idle), Duration::from_secs(total));
        let limits = CallLimits { total, idle, bytes };
        let body = SdkBody::from_body_1_x(StreamBody::new(frames));
        chunks(body, limits, Instant::now() + total)
    }

    /// The chunks before the error, and the error.
    async fn read(mut chunks: ReplyChunks) -> (Vec<Bytes>, ModelCallError) {
        let mut read = Vec::new();
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
            let (read, error) = read(endless(&["ab", "c"], idle, total, 9)).await;
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
        let (read, error) = read(endless(&["ab", "c", "de"], 9, 9, 4)).await;
        assert_eq!(read, ["ab", "c"]);
        assert!(matches!(error, ModelCallError::TooLong(4)), "{error}");
    }
}
