//! Accepts messages: decides, before anything is written, what becomes of each.

mod accept_message;
pub(super) mod context_status;
pub(super) mod idempotency;
mod request_hash;

pub use accept_message::RoutePreview;

use crate::engine::turn::spec::TurnSpec;
use crate::task::TaskRecord;

/// What the engine does with a message.
pub(in crate::engine) enum Acceptance {
    /// It runs a turn.
    Run(Box<TurnSpec>),
    /// A2A 0.1: the message repeats the last one of its task. The task is returned and no
    /// turn runs.
    Replay(TaskRecord),
    /// A send under the same idempotency key was accepted before. Its task is returned.
    Repeat(TaskRecord),
}
