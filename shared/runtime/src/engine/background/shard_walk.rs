//! Where a sweep continues in the shards of an index.

use crate::store::table::Position;
use std::collections::VecDeque;

/// The shards of an index that are still to be read, each with its position. They are
/// read in turn, one page each, so that a long shard does not delay the others.
#[derive(Debug, Default)]
pub(in crate::engine) struct ShardWalk {
    shards: VecDeque<(u32, Option<Position>)>,
}

impl ShardWalk {
    /// All shards from their start, beginning with the one numbered `first`.
    pub(in crate::engine) fn of(shards: u32, first: u32) -> Self {
        let shards = shards.max(1);
        let turns = (0..shards).map(|n| (first.wrapping_add(n) % shards, None));
        Self {
            shards: turns.collect(),
        }
    }

    /// Whether all shards have been read.
    pub(in crate::engine) fn is_done(&self) -> bool {
        self.shards.is_empty()
    }

    /// The next page: its shard, and the position after which it begins.
    pub(in crate::engine) fn next(&mut self) -> Option<(u32, Option<Position>)> {
        self.shards.pop_front()
    }

    /// Notes that the shard has more pages after the position `after`.
    pub(in crate::engine) fn continue_after(&mut self, shard: u32, after: Position) {
        self.shards.push_back((shard, Some(after)));
    }

    /// Notes that the page was not finished.
    pub(in crate::engine) fn again(&mut self, shard: u32, after: Option<Position>) {
        self.shards.push_front((shard, after));
    }
}
