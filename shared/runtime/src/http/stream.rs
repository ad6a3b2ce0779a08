//! Sends the frames of a stream as the body of a response.
//!
//! The turn runs in its own Tokio task, so that it continues when the client
//! disconnects. On Lambda the body is read to its end, so the turn ends within its
//! invocation. Frames that are ready together are sent in one chunk.

use super::call_log::{CallLog, StreamLog};
use super::encode;
use super::encode::Body;
use crate::engine::{Clock, EngineError, StopFrames};
use crate::task::{A2aError, Frame, Timestamp};
use a2a_lambda_wire::{Call, StreamEncoder};
use bytes::Bytes;
use futures::future::{Fuse, FutureExt as _};
use futures::stream;
use http::Response;
use http_body::Frame as Chunk;
use http_body_util::{BodyExt as _, StreamBody};
use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Without a frame for this long, a comment keeps the connection open. The HTTP client of the
/// official SDKs for Python leaves after 5 s without a byte.
const KEEP_ALIVE: Duration = Duration::from_secs(4);
/// Ready frames are joined up to about this many bytes: 64 KiB.
const CHUNK: usize = 64 * 1024;

/// When the credentials of the caller end, and the clock that says so.
pub(super) type CredentialExpiry = (Timestamp, Arc<dyn Clock>);

/// Starts `produce` and responds with a stream of its frames, up to `until`. The stream
/// stays open until the turn rests, since Lambda runs the turn only so long. What the turn
/// does after `until` is not sent, and the client has to reconnect. `produce` can end
/// the frames with an error before its own end.
///
/// # Errors
/// The error of `produce`, if it ends before its first frame. The client gets it as a
/// plain response, not as a stream.
pub(super) async fn respond<P, F>(
    call: &Call,
    log: &CallLog,
    until: Option<CredentialExpiry>,
    produce: P,
) -> Result<Response<Body>, EngineError>
where
    P: FnOnce(UnboundedSender<Frame>, StopFrames) -> F,
    F: Future<Output = Result<(), EngineError>> + Send + 'static,
{
    let (sender, mut frames) = unbounded_channel();
    let (stop, stop_receiver) = oneshot::channel();
    let (future, turn_log) = (produce(sender, stop), log.clone());
    // Inside the spans of the call and of the invocation, so that the lines of the turn
    // have their fields. The span of the call is a child of that of the invocation.
    let turn = tokio::spawn(async move { turn_log.run(future).await });
    let mut log = StreamLog {
        log: log.clone(),
        is_open: false,
        error: None,
    };
    let Some(first) = frames.recv().await else {
        return Err(match turn.await {
            Ok(Err(error)) => error,
            Ok(Ok(())) => EngineError::internal("a stream ended without a frame"),
            Err(_) => EngineError::internal("a turn panicked before its first frame"),
        });
    };
    log.is_open = true;
    let encoder = StreamEncoder::new(call);
    let headers = encoder.headers();
    let flow = SseBody {
        frames,
        turn: Some(turn),
        stop_receiver: stop_receiver.fuse(),
        over: false,
        encoder,
        next: Some(first),
        log,
        until,
        knows_end: false,
    };
    let body = StreamBody::new(stream::unfold(flow, |flow| flow.chunk())).boxed_unsync();
    Ok(encode::stream(headers, body))
}

/// A stream that is being sent.
struct SseBody {
    frames: UnboundedReceiver<Frame>,
    turn: Option<JoinHandle<Result<(), EngineError>>>,
    /// Gets the error with which the frames end before the turn does. Fused, since a receiver must
    /// not be polled after its sender is gone.
    stop_receiver: Fuse<oneshot::Receiver<A2aError>>,
    /// Whether the frames have ended with an error.
    over: bool,
    encoder: StreamEncoder,
    next: Option<Frame>,
    log: StreamLog,
    until: Option<CredentialExpiry>,
    /// Whether the client knows that its credentials have ended.
    knows_end: bool,
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
            bytes.extend(self.encode(&frame));
        }
        while bytes.len() < CHUNK
            && let Ok(frame) = self.frames.try_recv()
        {
            bytes.extend(self.encode(&frame));
        }
        Some((Ok(Chunk::data(bytes.into())), self))
    }

    /// The bytes of a frame. After the end of the credentials a frame with content becomes a
    /// request to reconnect, once.
    fn encode(&mut self, frame: &Frame) -> Vec<u8> {
        let over = self
            .until
            .as_ref()
            .is_some_and(|(end, clock)| *end <= clock.now());
        let frame = match frame {
            Frame::Task(_) | Frame::Resumed(_) | Frame::Message(_) | Frame::Event { .. }
                if over =>
            {
                &Frame::Reconnect
            }
            other => other,
        };
        if matches!(frame, Frame::Reconnect) && std::mem::replace(&mut self.knows_end, true) {
            return Vec::new();
        }
        if let Frame::Refused(error) = frame {
            self.log.error = Some(error.clone());
        }
        self.encoder.frame(frame).unwrap_or_default()
    }

    /// The next frame, or a comment after [`KEEP_ALIVE`] without one. When the turn failed
    /// or panicked, the last frame is an error: a stream that just ends would look like
    /// success.
    async fn frame(&mut self) -> Option<Frame> {
        if self.over {
            // The body ends with the turn: on Lambda the end of the body is the end of the
            // invocation, and would stop the turn.
            let _ended = self.turn.take()?.await;
            return None;
        }
        let next = tokio::select! {
            biased;
            next = tokio::time::timeout(KEEP_ALIVE, self.frames.recv()) => next,
            Ok(error) = &mut self.stop_receiver => {
                self.over = true;
                self.frames.close();
                return Some(Frame::Refused(error));
            }
        };
        match next {
            Ok(Some(frame)) => Some(frame),
            Err(_) => Some(Frame::KeepAlive),
            Ok(None) => match self.turn.take()?.await {
                Ok(Ok(())) => None,
                Ok(Err(error)) => {
                    self.log.log.in_span(|| error.log());
                    Some(Frame::Refused(error.a2a_error))
                }
                Err(_) => Some(Frame::Refused(A2aError::Internal)),
            },
        }
    }
}
