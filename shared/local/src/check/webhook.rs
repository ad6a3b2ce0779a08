//! A receiver of one webhook.

use crate::accept::accept;
use crate::embedded::LIMITS;
use bytes::Bytes;
use http::Response;
use http_body_util::Full;
use std::future::pending;
use std::io;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// How long an event may take.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Accepts events on this machine until it is dropped.
pub(super) struct Receiver {
    pub(super) url: String,
    tokens: mpsc::UnboundedReceiver<bool>,
    serving: JoinHandle<()>,
}

impl Receiver {
    /// Listens on `port`. An event counts if it has the token.
    pub(super) async fn open(port: u16, token: &'static str) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", port)).await?;
        let url = format!("http://{}/", listener.local_addr()?);
        let (sender, tokens) = mpsc::unbounded_channel();
        let answer = move |request: http::Request<hyper::body::Incoming>| {
            let sent = request.headers().get("x-a2a-notification-token");
            // The walk may have ended.
            let _gone = sender.send(sent.is_some_and(|sent| sent == token));
            std::future::ready(Response::new(Full::<Bytes>::default()))
        };
        let serving = tokio::spawn(accept(listener, LIMITS, answer, pending()));
        Ok(Self {
            url,
            tokens,
            serving,
        })
    }

    /// Whether the next event has the token; none if none comes in time.
    pub(super) async fn next(&mut self) -> Option<bool> {
        tokio::time::timeout(TIMEOUT, self.tokens.recv())
            .await
            .ok()
            .flatten()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.serving.abort();
    }
}
