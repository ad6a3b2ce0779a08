//! Sends the frames of a stream as the body of a response.
//!
//! The turn runs in its own Tokio task, so that it continues when the client
//! disconnects. On Lambda the body is read to its end, so the turn ends within its
//! invocation. Frames that are ready together are sent in one chunk.

use super::body::Body;
use super::encode;
use crate::engine::EngineError;
use crate::task::{A2aError, Frame};
use a2a_lambda_wire::{Call, StreamEncoder};
use bytes::Bytes;
use futures::stream;
use http::Response;
use http_body::Frame as Chunk;
use http_body_util::{BodyExt as _, StreamBody};
use std::convert::Infallible;
use std::future::Future;
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;

/// Without a frame for this long, a comment keeps the connection open.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Ready frames are joined up to about this many bytes: 64 KiB.
const CHUNK: usize = 64 * 1024;

/// Starts `produce` and responds with a stream of its frames.
///
/// # Errors
/// The error of `produce`, if it ends before its first frame. The client gets it as a
/// plain response, not as a stream.
pub(super) async fn respond<P, F>(call: &Call, produce: P) -> Result<Response<Body>, EngineError>
where
    P: FnOnce(UnboundedSender<Frame>) -> F,
    F: Future<Output = Result<(), EngineError>> + Send + 'static,
{
    let (sender, mut frames) = unbounded_channel();
    let turn = tokio::spawn(produce(sender));
    let Some(first) = frames.recv().await else {
        return Err(match turn.await {
            Ok(Err(error)) => error,
            Ok(Ok(())) => EngineError::broken("a stream ended without a frame"),
            Err(_) => EngineError::broken("a turn panicked before its first frame"),
        });
    };
    let encoder = StreamEncoder::new(call);
    let headers = encoder.headers();
    let flow = SseBody {
        frames,
        turn: Some(turn),
        encoder,
        next: Some(first),
    };
    let body = StreamBody::new(stream::unfold(flow, |flow| flow.chunk())).boxed_unsync();
    Ok(encode::stream(headers, body))
}

/// A stream that is being sent.
struct SseBody {
    frames: UnboundedReceiver<Frame>,
    turn: Option<JoinHandle<Result<(), EngineError>>>,
    encoder: StreamEncoder,
    next: Option<Frame>,
}

impl SseBody {
    /// The next chunk: at least one frame, and all others that are ready.
    async fn chunk(mut self) -> Option<(Result<Chunk<Bytes>, Infallible>, Self)> {
        let mut bytes = Vec::new();
        while bytes.is_empty() {
            let frame = match self.next.take() {
                Some(frame) => frame,
                None => self.frame().await?,
            };
            bytes.extend(self.encoder.frame(&frame).unwrap_or_default());
        }
        while bytes.len() < CHUNK
            && let Ok(frame) = self.frames.try_recv()
        {
            bytes.extend(self.encoder.frame(&frame).unwrap_or_default());
        }
        Some((Ok(Chunk::data(bytes.into())), self))
    }

    /// The next frame, or a comment after [`KEEP_ALIVE`] without one. When the turn failed
    /// or panicked, the last frame is an error: a stream that just ends would look like
    /// success.
    async fn frame(&mut self) -> Option<Frame> {
        match tokio::time::timeout(KEEP_ALIVE, self.frames.recv()).await {
            Ok(Some(frame)) => Some(frame),
            Err(_) => Some(Frame::KeepAlive),
            Ok(None) => match self.turn.take()?.await {
                Ok(Ok(())) => None,
                Ok(Err(error)) => {
                    error.log();
                    Some(Frame::Refused(error.refusal))
                }
                Err(_) => Some(Frame::Refused(A2aError::Internal)),
            },
        }
    }
}
