//! An HTTP client for URLs that clients name.
//!
//! It is the client of the AWS SDK with its own resolver. The resolver looks a name
//! up once and checks all of its addresses; the client connects to one of exactly
//! these. So a second DNS answer cannot lead to a private address. It uses no proxy
//! and follows no redirect.

use super::{OutboundUrl, Reach};
use crate::telemetry::scope::CallScope;
use crate::telemetry::trace::TRACEPARENT;
use aws_smithy_http_client::{
    Connector,
    tls::{self, rustls_provider::CryptoMode},
};
use aws_smithy_runtime_api::client::dns::{DnsFuture, ResolveDns, ResolveDnsError};
use aws_smithy_runtime_api::client::http::{HttpConnector as _, HttpConnectorSettings};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::http::Request as SdkRequest;
use aws_smithy_types::body::SdkBody;
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, Method};
use http_body::Body;
use http_body_util::BodyExt as _;
use std::error::Error as _;
use std::fmt::Display;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// How long a client waits for a connection.
const CONNECT: Duration = Duration::from_secs(5);
/// How long an idle connection is kept. Short, since servers close connections while
/// Lambda freezes the function.
const IDLE: Duration = Duration::from_secs(20);

/// A response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// The HTTP status. A redirect is returned like any other status.
    pub status: u16,
    /// The `Content-Type` header, if there is one.
    pub content_type: Option<String>,
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

/// Sends requests to hosts on the public Internet. Clones share their connections.
#[derive(Debug, Clone)]
pub struct Fetcher {
    tls: Arc<Connector>,
    plain: Arc<Connector>,
    reach: Reach,
    timeout: Duration,
}

impl Fetcher {
    /// A client that connects to the addresses which `reach` allows, and waits at most
    /// `timeout` for a whole response.
    #[must_use]
    pub fn new(reach: Reach, timeout: Duration) -> Self {
        Self {
            tls: Arc::new(connector(reach, true)),
            plain: Arc::new(connector(reach, false)),
            reach,
            timeout,
        }
    }

    /// Which addresses it connects to.
    #[must_use]
    pub const fn reach(&self) -> Reach {
        self.reach
    }

    /// Reads at most `limit` bytes of `url`. A skill calls it for a `url` part: the
    /// runtime itself never reads one.
    ///
    /// # Errors
    /// [`FetchError`] when there is no response, or its body breaks off. A status other
    /// than 2xx is not an error.
    pub async fn get(&self, url: &OutboundUrl, limit: usize) -> Result<Fetched, FetchError> {
        let headers = HeaderMap::new();
        self.send(url, Method::GET, headers, Bytes::new(), limit)
            .await
    }

    /// Sends `request`, and returns the response when its head is there: its body is a stream.
    ///
    /// # Errors
    /// [`FetchError`] when there is no head in time. A status other than 2xx is not an error.
    pub async fn open(
        &self,
        request: http::Request<Bytes>,
    ) -> Result<http::Response<impl Body<Data = Bytes, Error: Display> + Unpin + use<>>, FetchError>
    {
        let url = OutboundUrl::parse(&request.uri().to_string(), self.reach).map_err(spelled)?;
        let request = SdkRequest::try_from(request.map(SdkBody::from)).map_err(spelled)?;
        let response = tokio::time::timeout(self.timeout, self.connector(&url).call(request));
        let response = response
            .await
            .map_err(|_| FetchError::Timeout(self.timeout))?;
        let response = response.map_err(|error| unanswered(&error))?;
        response.try_into_http1x().map_err(spelled)
    }

    fn connector(&self, url: &OutboundUrl) -> &Connector {
        if url.is_encrypted() {
            &self.tls
        } else {
            &self.plain
        }
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
        OutboundUrl::parse(url.as_str(), self.reach).map_err(spelled)?;
        let reads = method == Method::GET;
        let request = http::Request::builder().method(method).uri(url.as_str());
        let mut request = request.body(SdkBody::from(body)).map_err(spelled)?;
        *request.headers_mut() = headers;
        // The service that a skill calls joins the trace of the turn.
        let value = CallScope::current().trace().map(|trace| trace.to_string());
        let value = value.and_then(|value| HeaderValue::from_str(&value).ok());
        if let Some(value) = value.filter(|_| !request.headers().contains_key(TRACEPARENT)) {
            request.headers_mut().insert(TRACEPARENT, value);
        }
        let request = SdkRequest::try_from(request).map_err(spelled)?;
        let connector = self.connector(url);
        let exchange = async {
            let response = connector.call(request).await;
            let response = response.map_err(|error| unanswered(&error))?;
            let status = response.status().as_u16();
            let content_type = response.headers().get("content-type").map(str::to_owned);
            // A webhook that sent a status has received the event.
            let (body, cut) = match read(response.into_body(), limit).await {
                Err(_) if !reads => (Bytes::new(), true),
                read => read?,
            };
            Ok(Fetched {
                status,
                content_type,
                body,
                cut,
            })
        };
        tokio::time::timeout(self.timeout, exchange)
            .await
            .unwrap_or(Err(FetchError::Timeout(self.timeout)))
    }
}

/// The body up to `limit` bytes, and whether it is longer.
async fn read(mut body: SdkBody, limit: usize) -> Result<(Bytes, bool), FetchError> {
    let mut bytes = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| FetchError::Connection(error.to_string()))?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        let room = limit.saturating_sub(bytes.len());
        bytes.extend_from_slice(data.get(..room.min(data.len())).unwrap_or_default());
        if data.len() > room {
            return Ok((bytes.freeze(), true));
        }
    }
    Ok((bytes.freeze(), false))
}

fn spelled(error: impl Display) -> FetchError {
    FetchError::Request(error.to_string())
}

/// The error of a request without a response. What a host does after it has accepted a connection,
/// such as a reset, is no failure to connect.
fn unanswered(error: &ConnectorError) -> FetchError {
    // The connector has no other timeout than that of the connection.
    let mut is_unconnected = error.is_timeout();
    let mut cause = error.source();
    while let Some(inner) = cause {
        is_unconnected |= inner.is::<ResolveDnsError>();
        is_unconnected |= matches!(
            inner.downcast_ref::<io::Error>().map(io::Error::kind),
            Some(
                io::ErrorKind::ConnectionRefused
                    | io::ErrorKind::HostUnreachable
                    | io::ErrorKind::NetworkUnreachable
            )
        );
        cause = inner.source();
    }
    match is_unconnected {
        true => FetchError::Unconnected(root(error)),
        false => FetchError::Connection(root(error)),
    }
}

/// The text of the innermost cause. The outer ones name addresses.
fn root(error: &(dyn std::error::Error + 'static)) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

fn connector(reach: Reach, is_encrypted: bool) -> Connector {
    let settings = HttpConnectorSettings::builder()
        .connect_timeout(CONNECT)
        .build();
    Connector::builder()
        .connector_settings(settings)
        .pool_idle_timeout(IDLE)
        // Not aws-lc: the first use of its random generator costs about 30 ms of CPU time,
        // which a small Lambda function spends in its first invocation.
        .tls_provider(tls::Provider::Rustls(CryptoMode::Ring))
        .build_with_resolver(CheckedResolver {
            reach,
            is_encrypted,
        })
}

/// A resolver that returns only addresses which are allowed.
#[derive(Debug, Clone, Copy)]
struct CheckedResolver {
    reach: Reach,
    is_encrypted: bool,
}

/// At least one address of a name is not allowed. One is enough, since the client
/// chooses the address to which it connects.
#[derive(Debug, thiserror::Error)]
#[error("the host has an address that is not public")]
struct NotPublicError;

impl CheckedResolver {
    fn check(self, addresses: Vec<IpAddr>) -> Result<Vec<IpAddr>, NotPublicError> {
        let is_allowed = |address: &IpAddr| self.reach.allows(*address, self.is_encrypted);
        if addresses.iter().all(is_allowed) {
            Ok(addresses)
        } else {
            Err(NotPublicError)
        }
    }
}

impl ResolveDns for CheckedResolver {
    fn resolve_dns<'a>(&'a self, name: &'a str) -> DnsFuture<'a> {
        let (resolver, name) = (*self, name.to_owned());
        DnsFuture::new(async move {
            let sockets = tokio::net::lookup_host((name, 0)).await;
            let sockets = sockets.map_err(ResolveDnsError::new)?;
            let addresses = sockets.map(|socket| socket.ip()).collect();
            resolver.check(addresses).map_err(ResolveDnsError::new)
        })
    }
}

#[cfg(test)]
mod tests;
