//! Writes the body of a push notification.

use super::payload::text;
use super::{Binding, media, v01, v1, v03};
use a2a_lambda_model::task::{Frame, Generation};

/// The media type and body of a push delivery, in the generation in which the
/// client registered the push config.
///
/// `None` for a frame that this generation does not deliver.
#[must_use]
pub fn push_payload(generation: Generation, frame: &Frame) -> Option<(&'static str, Vec<u8>)> {
    let (media, value) = match (generation, frame) {
        // A2A 1.0 §4.3.3: the payload is a `StreamResponse`. 0.3 and 0.1 get the task.
        (Generation::V10, _) => {
            let frame = v1::FrameWriter::of(frame)?;
            return Some((media::A2A_JSON, text(&frame)));
        }
        (Generation::V03, Frame::Task(task)) => {
            (media::JSON, v03::Writer(Binding::JsonRpc).task(task))
        }
        (Generation::V01, Frame::Task(task)) => (media::JSON, v01::encode_task(task)),
        (Generation::V03 | Generation::V01, _) => return None,
    };
    Some((media, value.to_string().into_bytes()))
}
