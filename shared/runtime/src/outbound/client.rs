//! The HTTP client for addresses that clients name.
//!
//! It is the client of the AWS SDK with a resolver of our own: a name is
//! resolved once, every address it has must be allowed, and one of exactly
//! these is connected to. No proxy, no redirect.

use super::{OutboundUrl, Reach};
use aws_smithy_http_client::{
    Connector,
    tls::{self, rustls_provider::CryptoMode},
};
use aws_smithy_runtime_api::client::dns::{DnsFuture, ResolveDns, ResolveDnsError};
use aws_smithy_runtime_api::client::http::{HttpConnector as _, HttpConnectorSettings};
use aws_smithy_runtime_api::http::Request as SdkRequest;
use aws_smithy_types::body::SdkBody;
use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http_body_util::BodyExt as _;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// Time for a connection to stand.
const CONNECT: Duration = Duration::from_secs(5);
/// How long an idle connection is kept. Short, since a frozen function finds
/// it dead.
const IDLE: Duration = Duration::from_secs(20);

/// What came back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// The HTTP status; a redirect is one like any other.
    pub status: u16,
    /// The media type, if it is named.
    pub content_type: Option<String>,
    /// The body, up to the limit asked for.
    pub body: Bytes,
    /// Whether the body was longer.
    pub cut: bool,
}

/// Why nothing came back. The text names no address.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The request cannot be spelled.
    #[error("the request cannot be made: {0}")]
    Request(String),
    /// Nothing stands there, or it is not allowed to be asked.
    #[error("no answer: {0}")]
    Connection(String),
    /// It took too long.
    #[error("no answer within {0:?}")]
    Timeout(Duration),
}

/// Asks hosts on the public Internet. Clones share their connections.
#[derive(Debug, Clone)]
pub struct Fetcher {
    encrypted: Arc<Connector>,
    plain: Arc<Connector>,
    reach: Reach,
    timeout: Duration,
}

impl Fetcher {
    /// A client which reaches as far as `reach`, and waits for a whole answer
    /// no longer than `timeout`.
    #[must_use]
    pub fn new(reach: Reach, timeout: Duration) -> Self {
        Self {
            encrypted: Arc::new(connector(reach, true)),
            plain: Arc::new(connector(reach, false)),
            reach,
            timeout,
        }
    }

    /// How far it reaches.
    #[must_use]
    pub const fn reach(&self) -> Reach {
        self.reach
    }

    /// Reads `url`, at most `limit` bytes of its body: for a skill that wants
    /// what a `url` part names.
    ///
    /// # Errors
    /// [`FetchError`] when there is no answer. Any status is an answer.
    pub async fn get(&self, url: &OutboundUrl, limit: usize) -> Result<Fetched, FetchError> {
        self.send(url, http::Request::get(url.as_str()), Bytes::new(), limit)
            .await
    }

    /// Sends `body` to `url` and reads at most `limit` bytes of the answer. The
    /// status is the answer: a body that breaks off after it counts as cut.
    ///
    /// # Errors
    /// [`FetchError`] when there is no answer. Any status is an answer.
    pub async fn post(
        &self,
        url: &OutboundUrl,
        headers: HeaderMap,
        body: Bytes,
        limit: usize,
    ) -> Result<Fetched, FetchError> {
        let mut request = http::Request::post(url.as_str());
        if let Some(known) = request.headers_mut() {
            *known = headers;
        }
        self.send(url, request, body, limit).await
    }

    async fn send(
        &self,
        url: &OutboundUrl,
        request: http::request::Builder,
        body: Bytes,
        limit: usize,
    ) -> Result<Fetched, FetchError> {
        // An address in a URL never meets the resolver, and a checked URL may
        // come from a time of other settings.
        OutboundUrl::parse(url.as_str(), self.reach).map_err(spelled)?;
        let reads = request.method_ref() == Some(&http::Method::GET);
        let request = request.body(SdkBody::from(body)).map_err(spelled)?;
        let request = SdkRequest::try_from(request).map_err(spelled)?;
        let connector = if url.is_encrypted() {
            &self.encrypted
        } else {
            &self.plain
        };
        let answer = async {
            let answer = connector.call(request).await;
            let answer = answer.map_err(|error| FetchError::Connection(root(&error)))?;
            let status = answer.status().as_u16();
            let content_type = answer.headers().get("content-type").map(str::to_owned);
            let (body, cut) = match read(answer.into_body(), limit).await {
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
        tokio::time::timeout(self.timeout, answer)
            .await
            .unwrap_or(Err(FetchError::Timeout(self.timeout)))
    }
}

/// The body up to `limit` bytes, and whether it goes on.
async fn read(mut body: SdkBody, limit: usize) -> Result<(Bytes, bool), FetchError> {
    let mut kept = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| FetchError::Connection(error.to_string()))?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        let room = limit.saturating_sub(kept.len());
        kept.extend_from_slice(data.get(..room.min(data.len())).unwrap_or_default());
        if data.len() > room {
            return Ok((kept.freeze(), true));
        }
    }
    Ok((kept.freeze(), false))
}

fn spelled(error: impl std::fmt::Display) -> FetchError {
    FetchError::Request(error.to_string())
}

/// The innermost cause: the outer ones name addresses.
fn root(error: &(dyn std::error::Error + 'static)) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

fn connector(reach: Reach, encrypted: bool) -> Connector {
    let settings = HttpConnectorSettings::builder()
        .connect_timeout(CONNECT)
        .build();
    Connector::builder()
        .connector_settings(settings)
        .pool_idle_timeout(IDLE)
        .tls_provider(tls::Provider::Rustls(CryptoMode::Ring))
        .build_with_resolver(Checked { reach, encrypted })
}

/// Resolves names to addresses that may be connected to.
#[derive(Debug, Clone, Copy)]
struct Checked {
    reach: Reach,
    encrypted: bool,
}

/// A name of which at least one address is not allowed. One bad address is
/// enough: which one a connection takes is not ours to say.
#[derive(Debug, thiserror::Error)]
#[error("the host has an address that is not public")]
struct NotPublic;

impl Checked {
    fn check(self, addresses: Vec<IpAddr>) -> Result<Vec<IpAddr>, NotPublic> {
        let allowed = |address: &IpAddr| self.reach.allows(*address, self.encrypted);
        if addresses.iter().all(allowed) {
            Ok(addresses)
        } else {
            Err(NotPublic)
        }
    }
}

impl ResolveDns for Checked {
    fn resolve_dns<'a>(&'a self, name: &'a str) -> DnsFuture<'a> {
        let (checked, name) = (*self, name.to_owned());
        DnsFuture::new(async move {
            let found = tokio::net::lookup_host((name, 0)).await;
            let found = found.map_err(ResolveDnsError::new)?;
            let addresses = found.map(|socket| socket.ip()).collect();
            checked.check(addresses).map_err(ResolveDnsError::new)
        })
    }
}

#[cfg(test)]
mod tests;
