//! The steps behind the calls: worker, relay, push delivery and the sweep.

pub(super) mod collect_objects;
pub(super) mod expire_contexts;
pub(super) mod push_delivery;
pub(super) mod redispatch;
pub(super) mod relay;
pub(super) mod shard_walk;
pub(super) mod sweep;
pub(super) mod worker;
