//! Accepts connections, for all listeners of this program.

use bytes::Bytes;
use http::{Request, Response};
use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::error::Error;
use std::future::Future;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::sleep;

/// How long a listener waits after a failed accept. An immediate retry would fail
/// again while there is no free file descriptor.
const PAUSE: Duration = Duration::from_millis(50);

/// The limits of a listener.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConnectionLimits {
    /// Open connections at the same time. More wait in the backlog.
    pub(crate) connections: usize,
    /// How long a client may take to send the headers of its next request.
    pub(crate) headers: Duration,
}

/// Serves until `stop` is ready. Then it drops open connections; when it returns,
/// none of their requests still runs.
pub(crate) async fn accept<H, F, B>(
    listener: TcpListener,
    limits: ConnectionLimits,
    handle: H,
    stop: impl Future<Output = ()>,
) where
    H: Fn(Request<Incoming>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<B>> + Send + 'static,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let serve = |socket| {
        let handle = handle.clone();
        let service = service_fn(move |request| {
            let response = handle(request);
            async move { Ok::<_, Infallible>(response.await) }
        });
        async move {
            let result = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(limits.headers)
                .serve_connection(TokioIo::new(socket), service)
                .await;
            if let Err(error) = result {
                tracing::debug!("a connection failed: {error}");
            }
        }
    };
    let mut connections = JoinSet::new();
    tokio::pin!(stop);
    loop {
        tokio::select! {
            biased;
            () = &mut stop => break,
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            accepted = listener.accept(), if connections.len() < limits.connections => {
                match accepted {
                    Ok((socket, _)) => {
                        if let Err(error) = socket.set_nodelay(true) {
                            tracing::debug!("failed to set TCP_NODELAY: {error}");
                        }
                        connections.spawn(serve(socket));
                    }
                    // No free file descriptor, or the client disconnected: both pass.
                    Err(error) => {
                        tracing::warn!("failed to accept a connection: {error}");
                        sleep(PAUSE).await;
                    }
                }
            }
        }
    }
    connections.shutdown().await;
}

#[cfg(test)]
mod tests {
    use super::{ConnectionLimits, accept};
    use bytes::Bytes;
    use http::Response;
    use http_body_util::Full;
    use std::future::pending;
    use std::net::SocketAddr;
    use std::time::Duration;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};
    use tokio::task::JoinHandle;

    const ASK: &[u8] = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

    /// A server that accepts one connection at a time.
    async fn narrow() -> (SocketAddr, JoinHandle<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let limits = ConnectionLimits {
            connections: 1,
            headers: Duration::from_secs(30),
        };
        let answer = |_| async { Response::new(Full::new(Bytes::from_static(b"here"))) };
        let serving = tokio::spawn(accept(listener, limits, answer, pending()));
        (address, serving)
    }

    /// All bytes until the connection ends.
    async fn rest(mut socket: TcpStream) -> String {
        let mut text = String::new();
        socket.read_to_string(&mut text).await.unwrap();
        text
    }

    #[tokio::test]
    async fn a_connection_above_the_limit_waits_for_another_to_end() {
        let (address, serving) = narrow().await;
        let mut first = TcpStream::connect(address).await.unwrap();
        first.write_all(b"GET / HTTP/1.1\r\n").await.unwrap();
        let mut second = TcpStream::connect(address).await.unwrap();
        second.write_all(ASK).await.unwrap();
        let mut byte = [0];
        let early = tokio::time::timeout(Duration::from_millis(300), second.peek(&mut byte));
        assert!(early.await.is_err(), "a second connection was served");
        drop(first);
        assert!(rest(second).await.ends_with("here"));
        serving.abort();
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_sends_nothing_is_closed() {
        let (address, serving) = narrow().await;
        let idle = TcpStream::connect(address).await.unwrap();
        assert_eq!(rest(idle).await, "");
        serving.abort();
    }
}
