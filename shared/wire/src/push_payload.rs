//! Writes the body of a push notification.

use super::legacy::Legacy;
use super::payload::text;
use super::v1::View;
use super::{Dialect, media};
use a2a_lambda_model::task::{Frame, Generation};

/// The media type and body of a push delivery, in the generation in which the
/// client registered the push config.
///
/// `None` for a frame that this generation does not deliver.
#[must_use]
pub fn push_payload(generation: Generation, frame: &Frame) -> Option<(&'static str, Vec<u8>)> {
    Some(match (generation, frame) {
        // A2A 1.0 §4.3.3: the payload is a `StreamResponse`. 0.3 and 0.1 get the task.
        (Generation::V10, _) => (media::A2A_JSON, text(&View::<true>::of_element(frame)?)),
        (Generation::V03 | Generation::V01, Frame::Task(task)) => {
            let legacy = Legacy(Dialect::json_rpc(generation));
            (media::JSON, text(&legacy.task(task)))
        }
        (Generation::V03 | Generation::V01, _) => return None,
    })
}
