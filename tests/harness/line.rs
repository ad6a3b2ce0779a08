//! A proxy on the line between a program and a service.

use a2a_lambda::engine::{Clock as _, SystemClock};
use a2a_lambda::store::aws::EmulatorKeys;
use a2a_lambda::task::Timestamp;
use aws_credential_types::Credentials;
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign};
use aws_sigv4::sign::v4;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, request, response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use std::future::Future;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::UNIX_EPOCH;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// A response of the service.
pub type Answer = (response::Parts, Bytes);

/// A request that can be sent any number of times.
#[derive(Debug, Clone)]
pub struct Call {
    upstream: SocketAddr,
    /// Method, path and headers.
    pub head: request::Parts,
    /// The body.
    pub body: Bytes,
}

/// What a proxy does with a request.
pub trait Carry: Send + Sync + 'static {
    /// The response to a request. After an error the connection to the program is closed.
    fn carry(&self, call: Call) -> impl Future<Output = io::Result<Answer>> + Send;
}

impl Call {
    /// The `x-amz-target` header of a DynamoDB call.
    #[must_use]
    pub fn target(&self) -> Option<&str> {
        self.head.headers.get("x-amz-target")?.to_str().ok()
    }

    /// Replaces the body of a DynamoDB call and signs it again; the store rejects a call
    /// with the old signature.
    ///
    /// # Errors
    /// When the call cannot be signed.
    pub fn says(&mut self, body: &Value, keys: &EmulatorKeys) -> io::Result<()> {
        self.body = body.to_string().into();
        let headers = &mut self.head.headers;
        for name in ["content-length", "authorization", "x-amz-date"] {
            headers.remove(name);
        }
        for (name, value) in signature(headers, &self.body, keys)? {
            headers.insert(name, value);
        }
        Ok(())
    }

    /// Sends the request to the service, over a connection of its own.
    ///
    /// # Errors
    /// When the service does not respond.
    pub async fn send(&self) -> io::Result<Answer> {
        let socket = TcpStream::connect(self.upstream).await?;
        socket.set_nodelay(true)?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(socket))
            .await
            .map_err(io::Error::other)?;
        tokio::spawn(connection);
        let mut request = Request::new(Full::new(self.body.clone()));
        *request.method_mut() = self.head.method.clone();
        *request.uri_mut() = self.head.uri.clone();
        *request.headers_mut() = self.head.headers.clone();
        // Hop-by-hop headers of the old connection. `content-length` stays: it may be signed.
        for name in ["transfer-encoding", "expect", "connection"] {
            request.headers_mut().remove(name);
        }
        let answer = sender.send_request(request).await;
        let (head, body) = answer.map_err(io::Error::other)?.into_parts();
        let body = body.collect().await.map_err(io::Error::other)?;
        Ok((head, body.to_bytes()))
    }
}

/// The headers with which a DynamoDB call of `headers` and `body` is signed.
fn signature(
    headers: &HeaderMap,
    body: &[u8],
    keys: &EmulatorKeys,
) -> io::Result<Vec<(HeaderName, HeaderValue)>> {
    let now = SystemClock.now();
    let identity = Credentials::from_keys(&keys.id, &keys.secret, None).into();
    let params = v4::SigningParams::builder()
        .identity(&identity)
        .region("us-east-1")
        .name("dynamodb")
        .time(UNIX_EPOCH + now.since(Timestamp::default()))
        .settings(SigningSettings::default())
        .build()
        .map_err(io::Error::other)?;
    let text = |value: &HeaderValue| value.to_str().map(str::to_owned).map_err(io::Error::other);
    let mut plain = Vec::new();
    for (name, value) in headers {
        plain.push((name.as_str(), text(value)?));
    }
    let host = headers.get("host").map(text).transpose()?;
    let url = format!("http://{}/", host.unwrap_or_default());
    let plain = plain.iter().map(|(name, value)| (*name, value.as_str()));
    let request = SignableRequest::new("POST", url, plain, SignableBody::Bytes(body))
        .map_err(io::Error::other)?;
    let signed = sign(request, &params.into()).map_err(io::Error::other)?;
    let mut added = Vec::new();
    for (name, value) in signed.output().headers() {
        let name = HeaderName::try_from(name).map_err(io::Error::other)?;
        added.push((name, value.parse().map_err(io::Error::other)?));
    }
    Ok(added)
}

/// Starts a proxy to the service at the URL `upstream`; returns its own URL. It ends with
/// `lines`.
///
/// # Errors
/// When `upstream` is not the URL of an address, or no port is free.
pub async fn line<C: Carry>(
    upstream: &str,
    carrier: &Arc<C>,
    lines: &mut JoinSet<()>,
) -> io::Result<String> {
    let upstream = upstream.trim_start_matches("http://").trim_end_matches('/');
    let upstream: SocketAddr = upstream.parse().map_err(io::Error::other)?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let url = format!("http://{}", listener.local_addr()?);
    let carrier = Arc::clone(carrier);
    lines.spawn(async move {
        let mut connections = JoinSet::new();
        while let Ok((socket, _)) = listener.accept().await {
            connections.spawn(connection(socket, upstream, Arc::clone(&carrier)));
        }
    });
    Ok(url)
}

async fn connection<C: Carry>(socket: TcpStream, upstream: SocketAddr, carrier: Arc<C>) {
    let _ = socket.set_nodelay(true);
    let service = service_fn(|request: Request<Incoming>| {
        let carrier = Arc::clone(&carrier);
        async move {
            let (head, body) = request.into_parts();
            let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
            let call = Call {
                upstream,
                head,
                body,
            };
            let (mut head, body) = carrier.carry(call).await?;
            head.headers.remove("transfer-encoding");
            Ok::<_, io::Error>(Response::from_parts(head, Full::new(body)))
        }
    });
    let server = hyper::server::conn::http1::Builder::new();
    // The program must cope with a broken connection, so an error is ignored.
    let _ = server.serve_connection(TokioIo::new(socket), service).await;
}
