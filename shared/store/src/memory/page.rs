//! A page of a query over items in memory.

use super::Items;
use crate::item::size;
use crate::keys::{PK, SK};
use crate::table::{Item, Position, Query, QueryPage, QuerySource, Value};
use std::cmp::Ordering;

/// The page of `query`, which reads at most `largest` bytes and at least one item.
pub(super) fn page(items: &Items, query: &Query, largest: usize) -> QueryPage {
    let mut page = QueryPage::default();
    let mut bytes = 0;
    let mut last = None;
    for item in find_items(items, query) {
        let item = entry(item, query.partition.source());
        bytes += size(&item);
        if bytes > largest && page.read > 0 {
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

/// The items of the partition behind the start of the query, in its order.
fn find_items<'i>(items: &'i Items, query: &Query) -> Vec<&'i Item> {
    let source = query.partition.source();
    let (partition, sort) = source.keys();
    let behind = |item: &Item| {
        let order = query.start.as_ref().map(|it| order(item, &it.0, source));
        order.is_none_or(|order| match query.newest_first {
            true => order == Ordering::Less,
            false => order == Ordering::Greater,
        })
    };
    let inside = |item: &&Item| {
        let sort = item.get(sort);
        sort.is_some_and(|it| query.range.contains(it)) && behind(item)
    };
    let mut matches: Vec<&Item> = match source {
        QuerySource::Table => {
            let rest = items.range(&query.partition.first()..);
            let same = rest.take_while(|(key, _)| key.partition() == query.partition.key());
            same.map(|(_, item)| item).filter(inside).collect()
        }
        QuerySource::Lists | QuerySource::Sweep => {
            let key = Value::from(query.partition.key());
            let same = items.values();
            let same = same.filter(|it| it.get(partition) == Some(&key));
            same.filter(inside).collect()
        }
    };
    matches.sort_by(|one, other| order(one, other, source));
    if query.newest_first {
        matches.reverse();
    }
    matches
}

/// What a source has of an item.
fn entry(item: &Item, source: QuerySource) -> Item {
    if source == QuerySource::Table {
        return item.clone();
    }
    let (partition, sort) = source.keys();
    let keys = [PK, SK, partition, sort];
    let names = keys.iter().chain(source.projection());
    let attributes = names.filter_map(|name| item.get_key_value(*name));
    attributes
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
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
