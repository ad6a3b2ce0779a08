//! The steps behind the calls: worker, relay, push delivery and the sweep.

pub(super) mod collect_objects;
pub(super) mod expire_contexts;
pub(super) mod push_delivery;
pub(super) mod redispatch;
pub(super) mod relay;
pub(super) mod shard_walk;
pub(super) mod sweep;
pub(super) mod worker;

use super::commit::Commits;
use super::handler::Tasks;
use super::reader::Reader;
use super::turn::Turns;
use crate::store::queue::PushQueue;
use std::sync::Arc;

/// Finds what other functions lost.
#[derive(Clone)]
pub struct Sweeper {
    pub(in crate::engine) reader: Reader,
    pub(in crate::engine) commits: Arc<Commits>,
    pub(in crate::engine) turns: Arc<Turns>,
    pub(in crate::engine) tasks: Arc<Tasks>,
    /// The queue with which a sweep repeats push deliveries.
    pub(in crate::engine) push_queue: Option<Arc<dyn PushQueue>>,
}
