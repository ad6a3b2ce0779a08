//! The engine: loads a task, applies changes, commits them, runs the skill and finishes
//! the turn.
//!
//! - `parts` assembles the engine from its parts, over the `services` of its program; `reader` is
//!   the part that reads, and the others have it too; `policy` has the sizes and durations.
//! - `handler` has the methods of the protocol and ours, one file for most of them; `push_config`
//!   has those of push configs.
//! - `accept` finds the task, context and skill of a message before anything is written;
//!   `accept::idempotency` recognises a send that a client repeats.
//! - `turn` runs one turn of a skill. Unary, streaming and background calls share it;
//!   they differ only in the event sink.
//! - `commit` is the only writer of tasks and of threads.
//! - `files` moves large parts to the bucket and back into responses, and has the uploads.
//! - `seal` seals what is not kept; `repeat` recognises a message that is sent again.
//! - `lots` charges calls to the rates of their tenant; `slots` leases a slot for each open
//!   stream and each turn from the queue; `day_limits` counts stored bytes and tokens of models.
//!   `brake` reads what an operator has stopped,
//!   and `admission` lets work begin.
//! - `background` has the steps behind the calls: the worker and the relay, push
//!   delivery, and the sweep, which finds what the others lost.
//!
//! The engine uses no status code, no JSON and no AWS type. It reaches the outside
//! through the store traits, [`Clock`] and [`Ids`], so that a simulation can replace
//! all of them.

mod accept;
mod admission;
mod background;
mod brake;
mod budget;
mod commit;
mod day_limits;
#[cfg(test)]
mod doubles;
mod error;
mod files;
mod handler;
mod limit_policy;
mod lots;
mod parts;
mod policy;
mod push_config;
mod reader;
mod repeat;
mod seal;
mod secret_keys;
mod services;
mod slots;
mod turn;
mod turn_break;

/// The functions and types that the fuzz targets test.
#[cfg(any(test, feature = "fuzz"))]
pub(crate) mod fuzz {
    pub(crate) use super::files::{content_type, disposition};
    pub(crate) use super::handler::page_token::{PagePosition, PagedList, TaskPosition};
    pub(crate) use super::secret_keys::SecretKeySet;
}

pub use crate::clock::{Clock, Ids, RandomIds, SystemClock};
pub use a2a_lambda_skill::route::STEPS as ROUTE_STEPS;
pub use accept::RoutePreview;
pub use background::Sweeper;
pub use background::collect_objects::CollectReport;
pub use background::expire_contexts::ThreadSweepReport;
pub use background::push_delivery::{
    PushDelivery, PushDeliveryError, PushDispatcher, PushServices, SendPush,
};
pub use background::relay::{relay, relay_pushes};
pub use background::sweep::{Leases, SweepPlaces, SweepReport, SweepRound};
pub use budget::CallBudget;
pub use error::EngineError;
pub use handler::Tasks;
pub use limit_policy::{CallRate, LimitPolicy, RatePolicy, SharedStreams};
pub use parts::Engine;
pub use policy::Policy;
pub use reader::Reader;
pub use secret_keys::{ReadSecretKeys, SECRET_KEY_MIN, SecretKeys};
pub use services::Services;
pub(crate) use slots::StopFrames;
pub use turn::Turns;
pub use turn::event_sink::Frames;
pub use turn::output_rules::OutputFault;
