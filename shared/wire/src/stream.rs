//! Writes the bytes of a stream in the dialect of its call.

use super::legacy::Legacy;
use super::payload::Payload;
use super::v1::View;
use super::{Binding, Call, Dialect, RpcId, error, jsonrpc, media, sse};
use a2a_lambda_model::task::{Frame, Generation};

/// Writes the frames of one stream as server-sent events.
#[derive(Debug)]
pub struct StreamEncoder {
    call: Call,
    dialect: Dialect,
    /// In 0.1, the ids of the artifacts shown, in the order of their indexes.
    artifacts: Vec<String>,
}

impl StreamEncoder {
    /// The encoder of the stream that responds to `call`.
    #[must_use]
    pub fn new(call: &Call) -> Self {
        Self {
            call: call.clone(),
            dialect: call.dialect,
            artifacts: Vec::new(),
        }
    }

    /// The headers of the response, which has HTTP status 200. An error before the
    /// first frame is not a stream: write it with [`refuse`](super::refuse).
    #[must_use]
    pub fn headers(&self) -> Vec<(&'static str, String)> {
        // A2A 1.0 §9.4.2, §11.7; A2A 0.3 §3.3.1: a stream is `text/event-stream`.
        let mut headers = vec![
            ("content-type", media::EVENT_STREAM.to_owned()),
            ("cache-control", "no-cache".to_owned()),
        ];
        headers.extend(self.call.extensions_header());
        headers
    }

    /// The bytes of one frame; `None` for a frame that the generation does not show.
    pub fn frame(&mut self, frame: &Frame) -> Option<Vec<u8>> {
        if let Frame::Task(task) | Frame::Resumed(task) = frame {
            self.dialect.generation = self.call.generation_of(task);
        }
        match frame {
            Frame::KeepAlive => Some(sse::PING.to_vec()),
            Frame::Reconnect => Some(sse::RETRY.to_vec()),
            Frame::Refused(error) => {
                let body = error::body(error, self.dialect);
                Some(match self.dialect.binding {
                    Binding::JsonRpc => sse::event(None, &jsonrpc::error(self.rpc_id(), &body)),
                    Binding::Rest => sse::error(&body),
                })
            }
            Frame::Task(_) | Frame::Resumed(_) | Frame::Message(_) | Frame::Event { .. } => {
                let payload = self.payload(frame)?;
                let mut bytes = self.event(id_of(frame).as_deref(), payload);
                if let (Frame::Task(task), Generation::V03) = (frame, self.dialect.generation)
                    && let Some(end) = Legacy(self.dialect).end(task)
                {
                    bytes.extend(self.event(None, end.into()));
                }
                Some(bytes)
            }
        }
    }

    /// One event. A2A 1.0 §9.4.2; A2A 0.3 §3.3.1: over JSON-RPC it is a response.
    /// A2A 1.0 §11.7: over REST it is the object itself.
    fn event(&self, id: Option<&str>, payload: Payload<'_>) -> Vec<u8> {
        match self.dialect.binding {
            Binding::JsonRpc => sse::event(id, &jsonrpc::result(self.rpc_id(), payload)),
            Binding::Rest => sse::event(id, &payload),
        }
    }

    const fn rpc_id(&self) -> &RpcId {
        &self.call.rpc_id
    }

    fn payload<'f>(&mut self, frame: &'f Frame) -> Option<Payload<'f>> {
        Some(match self.dialect.generation {
            Generation::V10 => Payload::View(View::of_element(frame)?),
            Generation::V03 | Generation::V01 => {
                let (id, artifacts) = (self.call.client_task_id(), &mut self.artifacts);
                Legacy(self.dialect).frame(frame, id, artifacts)?.into()
            }
        })
    }
}

/// The `id:` line, the event id from which a client can resume. The first frame of a
/// resumed stream has none, as it comes before the events that are replayed.
fn id_of(frame: &Frame) -> Option<String> {
    match frame {
        Frame::Task(task) => task.last_event.map(|id| id.to_string()),
        Frame::Event { event, .. } => Some(event.id.to_string()),
        Frame::Resumed(_)
        | Frame::Message(_)
        | Frame::Refused(_)
        | Frame::KeepAlive
        | Frame::Reconnect => None,
    }
}

#[cfg(test)]
mod tests;
