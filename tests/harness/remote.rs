//! Sends the tests' requests over HTTP to an agent that runs elsewhere.

use crate::world::{Live, Request};
use a2a_lambda::http::Body;
use bytes::Bytes;
use futures::StreamExt as _;
use http_body_util::{BodyExt as _, BodyStream, Full, StreamBody};
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::error::Error;
use tokio::net::TcpStream;

/// Sends a request to the agent at `base` (`http://host:port` and a path) and does not read
/// the body. It opens one connection per request.
///
/// # Errors
/// The error of the address, the connection or the response.
pub async fn open(base: &str, request: &Request) -> Result<Live, Box<dyn Error + Send + Sync>> {
    let target = format!("{}{}", base.trim_end_matches('/'), request.target);
    let uri: http::Uri = target.parse()?;
    let authority = uri.authority().ok_or("the address has no host")?.as_str();
    let socket = TcpStream::connect(authority).await?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(socket)).await?;
    tokio::spawn(connection);
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let mut builder = http::Request::builder()
        .method(request.method)
        .uri(path)
        .header("host", authority);
    for (name, value) in &request.headers {
        builder = builder.header(name, value);
    }
    if let Some(caller) = request.caller {
        builder = builder.header("authorization", format!("Bearer dev:{caller}"));
    }
    let body = Full::new(Bytes::from(request.body.clone()));
    let (head, body) = sender.send_request(builder.body(body)?).await?.into_parts();
    Ok(Live::new(
        head.status.as_u16(),
        head.headers,
        received(body, sender),
    ))
}

/// The body of a response; a broken connection ends it. The body keeps the sender, because
/// the connection closes when the sender is dropped.
fn received(
    body: hyper::body::Incoming,
    sender: hyper::client::conn::http1::SendRequest<Full<Bytes>>,
) -> Body {
    let frames = BodyStream::new(body)
        .take_while(|frame| std::future::ready(frame.is_ok()))
        .filter_map(move |frame| {
            let _open = &sender;
            std::future::ready(frame.ok().map(Ok::<_, Infallible>))
        });
    StreamBody::new(frames).boxed_unsync()
}
