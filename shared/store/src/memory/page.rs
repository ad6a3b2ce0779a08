//! A page of a query over items in memory.

use super::{Items, size};
use crate::keys::{Key, PK, SK};
use crate::table::{Item, Position, Query, QueryPage, QuerySource, Value};
use std::cmp::Ordering;

/// The most bytes that one page reads.
const LARGEST: usize = 1024 * 1024;

/// The page of `query`.
pub(super) fn page(items: &Items, query: &Query) -> QueryPage {
    let mut page = QueryPage::default();
    let mut bytes = 0;
    let mut last = None;
    for item in found(items, query) {
        bytes += size::size(&item);
        if bytes > LARGEST && page.read > 0 {
            page.next = last;
            break;
        }
        page.read += 1;
        last = Some(position(&item, query.partition.source()));
        if query.filter.as_ref().is_none_or(|it| it.holds(&item)) {
            page.count += 1;
            page.items.extend((!query.count).then(|| only(item, query)));
        }
        // Also if nothing is behind it.
        if Some(page.read) == query.limit {
            page.next = last;
            break;
        }
    }
    page
}

/// The items behind the start of the query, in its order.
fn found<'i>(items: &'i Items, query: &'i Query) -> impl Iterator<Item = Item> {
    let source = query.partition.source();
    let mut found: Vec<Item> = match source {
        QuerySource::Table => partition(items, &query.partition.first()).collect(),
        QuerySource::Lists | QuerySource::Sweep => {
            let entries = items.values().filter_map(|item| entry(item, source));
            let (key, wanted) = (source.keys().0, Value::from(query.partition.key()));
            entries.filter(|it| it.get(key) == Some(&wanted)).collect()
        }
    };
    found.sort_by(|one, other| order(one, other, source));
    if query.newest_first {
        found.reverse();
    }
    let behind = move |item: &Item| match &query.start {
        Some(start) => {
            let order = order(item, &start.0, source);
            order
                == if query.newest_first {
                    Ordering::Less
                } else {
                    Ordering::Greater
                }
        }
        None => true,
    };
    let inside = move |item: &Item| {
        item.get(source.keys().1)
            .is_some_and(|it| query.range.contains(it))
    };
    found
        .into_iter()
        .filter(move |item| inside(item) && behind(item))
}

fn partition(items: &Items, first: &Key) -> impl Iterator<Item = Item> {
    let name = first.partition().to_owned();
    let rest = items.range(first..);
    let same = rest.take_while(move |(key, _)| key.partition() == name);
    same.map(|(_, item)| item.clone())
}

/// What an index has of an item; `None` if the item is not in it.
fn entry(item: &Item, source: QuerySource) -> Option<Item> {
    let (partition, sort) = source.keys();
    let keys = [PK, SK, partition, sort];
    let present = keys.iter().all(|name| item.contains_key(*name));
    let names = keys.iter().chain(source.projected());
    let attributes = names.filter_map(|name| item.get_key_value(*name));
    let entry = attributes.map(|(name, value)| (name.clone(), value.clone()));
    present.then(|| entry.collect())
}

/// The order of a source: by its sort key, and then by the key of the table.
fn order(one: &Item, other: &Item, source: QuerySource) -> Ordering {
    let names = [source.keys().1, PK, SK].into_iter();
    let orders = names.filter_map(|name| one.get(name)?.order(other.get(name)?));
    orders.fold(Ordering::Equal, Ordering::then)
}

fn position(item: &Item, source: QuerySource) -> Position {
    let (partition, sort) = source.keys();
    let mut position = item.clone();
    position.retain(|name, _| [PK, SK, partition, sort].contains(&name.as_str()));
    Position(position)
}

fn only(mut item: Item, query: &Query) -> Item {
    if !query.only.is_empty() {
        item.retain(|name, _| query.only.contains(name));
    }
    item
}
