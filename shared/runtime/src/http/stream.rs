//! Frames become the body of a response.
//!
//! The turn runs in a task of its own, so that a client which goes away does
//! not stop it; on Lambda the body is read to its end, so the task ends inside
//! its invocation. Frames that are ready together are sent together.

use super::{Body, encode};
use crate::engine::EngineError;
use crate::protocol::{Call, StreamEncoder};
use crate::task::{Frame, Refusal};
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

/// Silence after which a comment keeps the connection open.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Frames are joined up to about this many bytes.
const CHUNK: usize = 64 * 1024;

/// Starts `produce` and answers with its frames. What is refused before the
/// first frame is a plain answer.
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
            Ok(Ok(())) => EngineError::broken("a stream without a frame"),
            Err(_) => EngineError::broken("a stream's turn panicked"),
        });
    };
    let encoder = StreamEncoder::new(call);
    let headers = encoder.headers();
    let flow = Flow {
        frames,
        turn: Some(turn),
        encoder,
        next: Some(first),
    };
    let body = StreamBody::new(stream::unfold(flow, |flow| flow.chunk())).boxed_unsync();
    Ok(encode::stream(headers, body))
}

/// A stream on its way out.
struct Flow {
    frames: UnboundedReceiver<Frame>,
    turn: Option<JoinHandle<Result<(), EngineError>>>,
    encoder: StreamEncoder,
    next: Option<Frame>,
}

impl Flow {
    /// The next bytes: at least one frame, and what else is ready.
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

    /// The next frame; a comment after a silence; an error when the turn died
    /// without a word, since a clean end would look like success.
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
                Err(_) => Some(Frame::Refused(Refusal::Internal)),
            },
        }
    }
}
