//! The HTTP client below [`Fetcher`](super::Fetcher): that of the AWS SDK, with a resolver of its own.
//!
//! The resolver looks a name up once and checks all of its addresses; the client connects to one of
//! exactly these. So a second DNS answer cannot lead to a private address. It uses no proxy
//! and follows no redirect.

use super::AddressPolicy;
use super::response::{FetchError, Fetched};
use aws_smithy_http_client::{
    Connector,
    tls::{self, rustls_provider::CryptoMode},
};
use aws_smithy_runtime_api::client::dns::{DnsFuture, ResolveDns, ResolveDnsError};
use aws_smithy_runtime_api::client::http::{HttpConnector as _, HttpConnectorSettings};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::http::{Request as SdkRequest, Response as SdkResponse};
use aws_smithy_types::body::SdkBody;
use bytes::{Bytes, BytesMut};
use http::Method;
use http_body_util::BodyExt as _;
use std::error::Error as _;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// How long a client waits for a connection.
const CONNECT: Duration = Duration::from_secs(5);
/// How long an idle connection is kept. Short, since servers close connections while
/// Lambda freezes the function.
const IDLE: Duration = Duration::from_secs(20);

/// The connections, with TLS and without. Clones share them.
#[derive(Debug, Clone)]
pub(super) struct Client {
    tls: Arc<Connector>,
    plain: Arc<Connector>,
}

impl Client {
    pub(super) fn new(reach: AddressPolicy) -> Self {
        Self {
            tls: Arc::new(connector(reach, true)),
            plain: Arc::new(connector(reach, false)),
        }
    }

    /// Sends `request` and returns the response when its head is there.
    pub(super) async fn open(
        &self,
        request: http::Request<Bytes>,
    ) -> Result<SdkResponse, FetchError> {
        let is_encrypted = request.uri().scheme_str() == Some("https");
        let connector = if is_encrypted { &self.tls } else { &self.plain };
        let request = SdkRequest::try_from(request.map(SdkBody::from));
        let request = request.map_err(|error| FetchError::Request(error.to_string()))?;
        let response = connector.call(request).await;
        response.map_err(|error| fetch_error(&error))
    }

    /// Sends `request` and reads at most `limit` bytes of the response.
    pub(super) async fn exchange(
        &self,
        request: http::Request<Bytes>,
        limit: usize,
    ) -> Result<Fetched, FetchError> {
        let reads = request.method() == Method::GET;
        let response = self.open(request).await?;
        let header = |name: &str| response.headers().get(name).map(str::to_owned);
        let (content_type, retry_after) = (header("content-type"), header("retry-after"));
        let status = response.status().as_u16();
        // A webhook that sent a status has received the event.
        let (body, cut) = match read(response.into_body(), limit).await {
            Err(_) if !reads => (Bytes::new(), true),
            read => read?,
        };
        Ok(Fetched {
            status,
            content_type,
            retry_after: retry_after.and_then(|text| text.parse().ok()),
            body,
            cut,
        })
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
        let space = limit.saturating_sub(bytes.len());
        bytes.extend_from_slice(data.get(..space.min(data.len())).unwrap_or_default());
        if data.len() > space {
            return Ok((bytes.freeze(), true));
        }
    }
    Ok((bytes.freeze(), false))
}

/// The error of a request without a response. What a host does after it has accepted a connection,
/// such as a reset, is no failure to connect.
fn fetch_error(error: &ConnectorError) -> FetchError {
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

fn connector(reach: AddressPolicy, is_encrypted: bool) -> Connector {
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
    reach: AddressPolicy,
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
