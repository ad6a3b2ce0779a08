//! Merges the positions of several shards into one list.
//!
//! Each shard is read in chunks, newest first. A chunk can show fewer positions than DynamoDB
//! read, because of the filter. The merge returns a position once no shard can still hold a
//! newer one. The horizon of each shard says how far it was read.

use a2a_lambda_model::store::ListPosition;
use std::collections::VecDeque;

/// What to do next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum MergeStep {
    /// This is the next place.
    Place(ListPosition),
    /// Read the next chunk of this shard.
    Read(usize),
    /// Every shard was read to its end.
    End,
}

/// The shards of a list while they are read.
#[derive(Debug)]
pub(super) struct Merge {
    shards: Vec<Shard>,
}

#[derive(Debug, Default)]
struct Shard {
    places: VecDeque<ListPosition>,
    read_to: ReadTo,
}

/// How far a shard was read.
#[derive(Debug, Default)]
enum ReadTo {
    /// Not at all.
    #[default]
    Nothing,
    /// Up to and including this position, whether the filter showed it or not.
    Place(ListPosition),
    /// To its end.
    End,
}

impl Merge {
    /// A merge of `shards` shards that were not read yet.
    pub(super) fn of(shards: usize) -> Self {
        Self {
            shards: std::iter::repeat_with(Shard::default)
                .take(shards)
                .collect(),
        }
    }

    /// Adds the positions that `shard` showed, newest first, and how far it was read; `None`
    /// means to its end.
    pub(super) fn feed(
        &mut self,
        shard: usize,
        places: Vec<ListPosition>,
        read_to: Option<ListPosition>,
    ) {
        if let Some(shard) = self.shards.get_mut(shard) {
            shard.places.extend(places);
            shard.read_to = read_to.map_or(ReadTo::End, ReadTo::Place);
        }
    }

    /// The next step. An unread shard comes first, since it can hold the newest position of
    /// all.
    pub(super) fn step(&mut self) -> MergeStep {
        let unread = |shard: &Shard| matches!(shard.read_to, ReadTo::Nothing);
        if let Some(index) = self.shards.iter().position(unread) {
            return MergeStep::Read(index);
        }
        let horizon = self.horizon();
        let newest = self
            .shards
            .iter_mut()
            .filter(|shard| !shard.places.is_empty())
            .max_by(|a, b| a.places.front().cmp(&b.places.front()));
        match (newest, horizon) {
            (Some(shard), horizon) if shard.leads(horizon.as_ref().map(|(_, place)| place)) => {
                // The filter above took only shards that are not empty.
                shard
                    .places
                    .pop_front()
                    .map_or(MergeStep::End, MergeStep::Place)
            }
            (_, Some((index, _))) => MergeStep::Read(index),
            (_, None) => MergeStep::End,
        }
    }

    /// The newest position after which a shard may hold more, and that shard. If a page stops
    /// here, the next page continues after this position.
    pub(super) fn horizon(&self) -> Option<(usize, ListPosition)> {
        let open = self.shards.iter().enumerate().filter_map(|(index, shard)| {
            match (&shard.read_to, shard.places.is_empty()) {
                (ReadTo::Place(place), true) => Some((index, place.clone())),
                _ => None,
            }
        });
        open.max_by(|(_, a), (_, b)| a.cmp(b))
    }
}

impl Shard {
    /// Whether the first position of the shard is newer than everything not read yet.
    fn leads(&self, horizon: Option<&ListPosition>) -> bool {
        let first = self.places.front();
        first.is_some() && horizon.is_none_or(|horizon| first > Some(horizon))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_lambda_model::task::{TaskId, Timestamp};
    use proptest::prelude::*;
    use std::cmp::Reverse;

    /// A position, and whether the filter shows it.
    type Entry = (ListPosition, bool);

    fn entry() -> impl Strategy<Value = Entry> {
        // Only a few times, so that many are equal and the id decides.
        (0..6_i64, 0..400_u128, proptest::bool::weighted(0.7)).prop_map(|(at, id, shown)| {
            let place = ListPosition {
                at: Timestamp::from_millis(at),
                task: TaskId::made_of(id),
            };
            (place, shown)
        })
    }

    /// The positions of a shard before `after`, as an index returns them. It reads at most
    /// `chunk` items.
    fn read(
        shard: &[Entry],
        after: Option<&ListPosition>,
        chunk: usize,
    ) -> (Vec<ListPosition>, Option<ListPosition>) {
        let rest: Vec<&Entry> = shard
            .iter()
            .filter(|(place, _)| after.is_none_or(|after| place < after))
            .collect();
        let chunk: Vec<&Entry> = rest.iter().copied().take(chunk).collect();
        let last = chunk.last().filter(|_| chunk.len() < rest.len());
        let last = last.map(|(place, _)| place.clone());
        let shown = chunk.iter().filter(|(_, shown)| *shown);
        (shown.map(|(place, _)| place.clone()).collect(), last)
    }

    /// A page as the list reads it: `limit` positions, or fewer after `budget` reads, and
    /// where the next page begins.
    fn page(
        shards: &[Vec<Entry>],
        after: Option<&ListPosition>,
        (limit, chunk, budget): (usize, usize, usize),
    ) -> (Vec<ListPosition>, Option<ListPosition>) {
        let mut merge = Merge::of(shards.len());
        let mut read_to: Vec<Option<ListPosition>> = vec![after.cloned(); shards.len()];
        let (mut places, mut reads) = (Vec::new(), 0);
        loop {
            match merge.step() {
                MergeStep::End => return (places, None),
                MergeStep::Place(place) if places.len() == limit => {
                    assert!(Some(&place) < places.last());
                    return (places.clone(), places.pop());
                }
                MergeStep::Place(place) => places.push(place),
                MergeStep::Read(_) if reads >= budget.max(shards.len()) => {
                    let (_, horizon) = merge.horizon().unwrap();
                    return (places, Some(horizon));
                }
                MergeStep::Read(index) => {
                    reads += 1;
                    let (shown, last) = read(&shards[index], read_to[index].as_ref(), chunk);
                    read_to[index].clone_from(&last);
                    merge.feed(index, shown, last);
                }
            }
        }
    }

    proptest! {
        #[test]
        fn pages_over_shards_join_into_one_ordered_list(
            entries in proptest::collection::vec(entry(), 0..120),
            count in 1..9_usize,
            sizes in (1..9_usize, 1..9_usize, 1..30_usize),
        ) {
            let mut entries = entries;
            entries.sort_by(|a, b| b.0.cmp(&a.0));
            entries.dedup_by(|a, b| a.0 == b.0);
            let mut shards: Vec<Vec<Entry>> = vec![Vec::new(); count];
            for (place, shown) in &entries {
                // Any rule that assigns each task to one shard.
                let index = place.task.as_str().bytes().map(usize::from).sum::<usize>() % count;
                shards[index].push((place.clone(), *shown));
            }
            let expected: Vec<&ListPosition> =
                entries.iter().filter(|(_, shown)| *shown).map(|(place, _)| place).collect();
            prop_assert!(expected.is_sorted_by_key(|place| Reverse(*place)));
            let (mut joined, mut after) = (Vec::new(), None);
            for _ in 0..2_000 {
                let (places, next) = page(&shards, after.as_ref(), sizes);
                prop_assert!(places.len() <= sizes.0);
                joined.extend(places);
                // Each page continues after the page before it.
                prop_assert!(next.is_none() || after.is_none() || next < after);
                after = next;
                if after.is_none() {
                    break;
                }
            }
            prop_assert!(after.is_none(), "the list never ends");
            prop_assert_eq!(joined.iter().collect::<Vec<_>>(), expected);
        }
    }
}
