//! Calls a function by the Invoke API of `cargo lambda watch`.

use bytes::Bytes;
use http::{Request, header};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

/// Why a function gave no result.
#[derive(Debug, thiserror::Error)]
pub(super) enum InvokeError {
    /// The tool cannot be reached.
    #[error("failed to reach `cargo lambda watch`: {0}")]
    Connect(#[from] std::io::Error),
    /// The connection broke.
    #[error("`cargo lambda watch` broke the call off: {0}")]
    Broken(#[from] hyper::Error),
    /// The request cannot be written.
    #[error("failed to write the call: {0}")]
    Request(#[from] http::Error),
    /// The function failed.
    #[error("the function answered {status}: {text}")]
    Failed {
        /// The HTTP status.
        status: u16,
        /// The beginning of the body.
        text: String,
    },
    /// The result is not JSON.
    #[error("the function gave no JSON: {0}")]
    Result(#[from] serde_json::Error),
}

/// The most characters of a body in an error.
const SHOWN: usize = 300;

/// Calls functions at one port.
#[derive(Debug, Clone)]
pub(super) struct Invoker {
    /// Host and port.
    authority: String,
}

impl Invoker {
    /// An invoker of the functions below `base`, a URL without a path.
    pub(super) fn new(base: &str) -> Self {
        let authority = base.strip_prefix("http://").unwrap_or(base);
        Self {
            authority: authority.to_owned(),
        }
    }

    /// Calls `function` with `event`, and returns its result.
    ///
    /// # Errors
    /// [`InvokeError`] when it gave none.
    pub(super) async fn invoke(&self, function: &str, event: &Value) -> Result<Value, InvokeError> {
        let socket = TcpStream::connect(&self.authority).await?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(socket)).await?;
        let request = Request::post(format!("/2015-03-31/functions/{function}/invocations"))
            .header(header::HOST, &self.authority)
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::new(Bytes::from(event.to_string())))?;
        let call = async {
            let (head, body) = sender.send_request(request).await?.into_parts();
            Ok::<_, hyper::Error>((head, body.collect().await?.to_bytes()))
        };
        // The connection is driven beside the call, and ends with it.
        let (head, body) = tokio::select! {
            done = call => done?,
            ended = connection => {
                ended?;
                return Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof).into());
            }
        };
        // The Invoke API answers 200 for a function that failed, with this header.
        if !head.status.is_success() || head.headers.contains_key("x-amz-function-error") {
            let text: String = String::from_utf8_lossy(&body).chars().take(SHOWN).collect();
            return Err(InvokeError::Failed {
                status: head.status.as_u16(),
                text,
            });
        }
        Ok(serde_json::from_slice(&body)?)
    }
}
