//! Accepts messages: decides, before anything is written, what becomes of each.

mod accept_message;
pub(super) mod context_status;
pub(super) mod idempotency;
pub(super) mod repeat;
mod request_hash;

pub use accept_message::RoutePreview;
pub(super) use accept_message::first_request;

use crate::engine::turn::spec::TurnSpec;
use crate::task::TaskRecord;

/// What the engine does with a message.
pub(in crate::engine) enum Acceptance {
    /// It runs a turn.
    Run(Box<TurnSpec>),
    /// The message was accepted before: its idempotency key has a task, or it is the
    /// client's last message in its task. The task is returned, and no turn runs.
    Repeat(TaskRecord),
}
