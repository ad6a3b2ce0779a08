//! Reads a page of an owner's tasks.
//!
//! The shards of the list index give positions, newest first, and `merge` joins them into one
//! list. The store then reads the records from the table and drops those that no longer
//! match, so a page can be short. The last position decides where the next page begins. One
//! position is enough for all shards, and stays valid when their number grows.

use super::item::{self, Item};
use super::key;
use super::merge::{Merge, MergeStep};
use super::outcome;
use a2a_lambda_model::store::{ListPosition, RecordPage, RecordQuery, StoreError};
use a2a_lambda_model::task::{Owner, TaskId, TaskKey, TaskRecord};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::{AttributeValue, KeysAndAttributes, Select};
use futures::future::try_join_all;
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::num::NonZeroU32;

/// Index items that one page or one count reads at most.
const READ_MAX: usize = 2_000;
/// Index items of one request.
const CHUNK: usize = 500;
/// Items of one batch read: the limit of `BatchGetItem`.
pub(super) const BATCH: usize = 100;

/// The page of `owner`'s tasks for `query`, from a list of `shards` shards.
///
/// # Errors
/// [`StoreError`] when the table does not answer or an item is corrupt.
pub(super) async fn page(
    client: &Client,
    table: &str,
    owner: &Owner,
    query: &RecordQuery,
    shards: NonZeroU32,
) -> Result<RecordPage, StoreError> {
    let list = ListRead {
        client,
        table,
        owner,
        query,
        shards: shards.get(),
    };
    let (mut places, stopped) = list.places().await?;
    let more = places.len() > query.limit;
    places.truncate(query.limit);
    let next = if more {
        places.last().cloned()
    } else {
        stopped
    };
    let whole = query.after.is_none() && next.is_none() && places.len() <= query.count_limit;
    let matching = if whole {
        places.len()
    } else {
        list.count().await?
    };
    let mut records = list.records(&places).await?;
    records.retain(|record| query.matches(owner, record));
    records.sort_by_key(|record| Reverse(ListPosition::of(record)));
    Ok(RecordPage {
        records,
        next,
        matching,
    })
}

struct ListRead<'a> {
    client: &'a Client,
    table: &'a str,
    owner: &'a Owner,
    query: &'a RecordQuery,
    shards: u32,
}

/// A filter expression with its names and values.
#[derive(Default)]
struct Filter {
    expression: String,
    names: HashMap<String, String>,
    values: HashMap<String, AttributeValue>,
}

impl Filter {
    fn name(&mut self, name: &str) {
        self.names.insert(format!("#{name}"), name.to_owned());
    }

    fn bind(&mut self, name: &str, value: AttributeValue) {
        self.values.insert(name.to_owned(), value);
    }

    /// Adds the condition that the attribute `name` equals `value`.
    fn demand(&mut self, name: &str, value: &str) {
        self.expression = format!("({}) AND #{name} = :{name}", self.expression);
        self.name(name);
        self.bind(&format!(":{name}"), item::text(value));
    }
}

/// One response of the index.
#[derive(Default)]
struct IndexPage {
    items: Vec<Item>,
    count: usize,
    scanned: usize,
    last: Option<Item>,
}

impl ListRead<'_> {
    /// The positions of the page, and one more if there is one. If the read stopped at
    /// [`READ_MAX`], also the position that it reached.
    async fn places(&self) -> Result<(Vec<ListPosition>, Option<ListPosition>), StoreError> {
        let mut merge = Merge::of(self.shards as usize);
        let chunk = self.chunk();
        let first = (0..self.shards).map(|shard| self.next(shard, None, chunk));
        let mut starts = Vec::new();
        let mut read = 0;
        for (index, answer) in try_join_all(first).await?.into_iter().enumerate() {
            read += answer.scanned;
            starts.push(self.feed(&mut merge, index, answer)?);
        }
        let mut places: Vec<ListPosition> = Vec::new();
        loop {
            match merge.step() {
                MergeStep::End => return Ok((places, None)),
                // A task that moved can appear at two positions, even in two shards, while
                // the index lags.
                MergeStep::Place(place) => places.push(place),
                MergeStep::Read(_) if read >= READ_MAX => {
                    return Ok((places, merge.horizon().map(|(_, place)| place)));
                }
                MergeStep::Read(index) => {
                    let start = starts.get_mut(index).and_then(Option::take);
                    let shard = u32::try_from(index).unwrap_or_default();
                    let answer = self.next(shard, start, chunk).await?;
                    read += answer.scanned;
                    let start = self.feed(&mut merge, index, answer)?;
                    if let Some(place) = starts.get_mut(index) {
                        *place = start;
                    }
                }
            }
            if places.len() > self.query.limit {
                return Ok((places, None));
            }
        }
    }

    /// Adds a response to the merge, and returns where the next one of the shard starts.
    fn feed(
        &self,
        merge: &mut Merge,
        shard: usize,
        answer: IndexPage,
    ) -> Result<Option<Item>, StoreError> {
        let after = self.query.after.as_ref();
        let places: Result<Vec<_>, _> = answer.items.iter().map(position).collect();
        let mut places = places?;
        // `BETWEEN` includes its bounds, so the index returns the position `after` again.
        places.retain(|place| after != Some(place));
        let read_to = answer.last.as_ref().map(position).transpose()?;
        merge.feed(shard, places, read_to);
        Ok(answer.last)
    }

    /// Items of one request for positions. Without a filter a shard holds about its share
    /// of the page.
    fn chunk(&self) -> usize {
        // The page, one more to see whether there is a next page, and the position
        // with which the last page ended.
        let wanted = self.query.limit + 2;
        let shards = self.shards as usize;
        match (self.is_narrow(), shards) {
            (true, shards) => (CHUNK / shards).max(wanted.min(CHUNK / 4)),
            (false, 1) => wanted,
            (false, shards) => (2 * wanted).div_ceil(shards) + 2,
        }
    }

    fn is_narrow(&self) -> bool {
        self.query.context_id.is_some() || self.query.state.is_some()
    }

    /// Counts the matching tasks of the whole list, up to the query's limit.
    async fn count(&self) -> Result<usize, StoreError> {
        let limit = self.query.count_limit;
        let (mut counted, mut read) = (0, 0);
        let mut open: Vec<(u32, Option<Item>)> = (0..self.shards).map(|s| (s, None)).collect();
        while !open.is_empty() && counted < limit && read < READ_MAX {
            let chunk = ((READ_MAX - read) / open.len()).clamp(1, CHUNK);
            let end = &key::after_all();
            let asked = open.into_iter().map(|(shard, start)| async move {
                let answer = self.ask(shard, end, true, start, chunk).await?;
                Ok::<_, StoreError>((shard, answer))
            });
            let answers = try_join_all(asked).await?;
            open = Vec::new();
            for (shard, answer) in answers {
                counted += answer.count;
                read += answer.scanned;
                open.extend(answer.last.map(|last| (shard, Some(last))));
            }
        }
        Ok(counted.min(limit))
    }

    /// The next items of a shard for this page.
    async fn next(
        &self,
        shard: u32,
        start: Option<Item>,
        chunk: usize,
    ) -> Result<IndexPage, StoreError> {
        let after = self.query.after.as_ref();
        let end = after.map_or_else(key::after_all, |after| key::place(after.at, &after.task));
        self.ask(shard, &end, false, start, chunk).await
    }

    /// The next `chunk` items of a shard before `end`, newest first.
    async fn ask(
        &self,
        shard: u32,
        end: &str,
        count: bool,
        start: Option<Item>,
        chunk: usize,
    ) -> Result<IndexPage, StoreError> {
        let query = self.query;
        // DynamoDB refuses an empty string in a key condition.
        let begin = query
            .status_after
            .map_or_else(|| "0".to_owned(), key::before_all_at);
        // DynamoDB refuses `BETWEEN` if the lower bound is above the upper one.
        if begin.as_str() > end {
            return Ok(IndexPage::default());
        }
        let mut filter = self.filter();
        let list = key::list_shard(self.owner, shard);
        filter.bind(":list", item::text(list));
        filter.bind(":begin", item::text(begin));
        filter.bind(":end", item::text(end));
        let found = self
            .client
            .query()
            .table_name(self.table)
            .index_name(key::LISTS)
            .key_condition_expression("GSI1PK = :list AND GSI1SK BETWEEN :begin AND :end")
            .filter_expression(filter.expression)
            .set_expression_attribute_names(Some(filter.names))
            .set_expression_attribute_values(Some(filter.values))
            .set_select(count.then_some(Select::Count))
            .scan_index_forward(false)
            .limit(i32::try_from(chunk).unwrap_or(i32::MAX))
            .set_exclusive_start_key(start)
            .send()
            .await
            .map_err(|error| outcome::read_error(&error))?;
        Ok(IndexPage {
            count: usize::try_from(found.count).unwrap_or_default(),
            scanned: usize::try_from(found.scanned_count).unwrap_or_default(),
            items: found.items.unwrap_or_default(),
            last: found.last_evaluated_key,
        })
    }

    /// The filter for index items: not expired, and with the context and state of the query.
    fn filter(&self) -> Filter {
        let mut filter = Filter::default();
        filter
            .expression
            .push_str("attribute_not_exists(#expires_at) OR #expires_at > :now");
        filter.name(item::EXPIRES_AT);
        filter.bind(":now", item::number(self.query.now.as_millis()));
        if let Some(context) = &self.query.context_id {
            filter.demand(item::CONTEXT, context.as_str());
        }
        if let Some(state) = self.query.state {
            filter.demand(item::STATE, state.as_str());
        }
        filter
    }

    /// The records at `places` as they are stored now, in no order.
    async fn records(&self, places: &[ListPosition]) -> Result<Vec<TaskRecord>, StoreError> {
        let mut records = Vec::new();
        for chunk in distinct(places).chunks(BATCH) {
            let keys = chunk.iter().map(|task| {
                let task = TaskKey::new(self.owner, task);
                item::key_of(&key::task(&task), key::META)
            });
            let items = batch(self.client, self.table, keys.collect()).await?;
            records.extend(readable(&items, item::to_task));
        }
        Ok(records)
    }
}

/// Decodes `items` with `read`. An item that cannot be decoded is logged and left out, so
/// that it does not hide the others.
pub(super) fn readable<T>(
    items: &[Item],
    read: fn(&Item) -> Result<T, StoreError>,
) -> impl Iterator<Item = T> {
    items.iter().filter_map(move |item| {
        read(item)
            .inspect_err(|error| tracing::error!("failed to read an item of a list: {error}"))
            .ok()
    })
}

/// The items of `keys`, at most [`BATCH`], read consistently.
pub(super) async fn batch(
    client: &Client,
    table: &str,
    mut keys: Vec<Item>,
) -> Result<Vec<Item>, StoreError> {
    let mut items = Vec::new();
    while !keys.is_empty() {
        let wanted = keys.len();
        let wanted_keys = KeysAndAttributes::builder()
            .set_keys(Some(keys))
            .consistent_read(true)
            .build()
            .map_err(|error| StoreError::Refused(error.to_string()))?;
        let mut found = client
            .batch_get_item()
            .request_items(table, wanted_keys)
            .send()
            .await
            .map_err(|error| outcome::read_error(&error))?;
        let mut answered = found.responses.take().unwrap_or_default();
        items.append(&mut answered.remove(table).unwrap_or_default());
        let mut rest = found.unprocessed_keys.take().unwrap_or_default();
        keys = rest.remove(table).map(|rest| rest.keys).unwrap_or_default();
        // One response holds at most 16 MB, so keys can be left over. If DynamoDB
        // throttles it returns an error.
        if keys.len() == wanted {
            return Err(StoreError::Unavailable(
                "a batch read processed none of its keys".to_owned(),
            ));
        }
    }
    Ok(items)
}

/// The tasks at `places`, each once. An index that lags can show a task at its old and
/// its new position, and a batch read refuses a key that it gets twice.
fn distinct(places: &[ListPosition]) -> Vec<&TaskId> {
    let tasks: BTreeSet<&TaskId> = places.iter().map(|place| &place.task).collect();
    tasks.into_iter().collect()
}

fn position(item: &Item) -> Result<ListPosition, StoreError> {
    let text = item::string(item, key::LISTS_SK)?;
    key::position(text)
        .ok_or_else(|| StoreError::Corrupt(format!("invalid position in a list index: `{text}`")))
}

#[cfg(test)]
mod tests {
    use super::distinct;
    use a2a_lambda_model::store::ListPosition;
    use a2a_lambda_model::task::{TaskId, Timestamp};

    #[test]
    fn a_task_that_the_index_shows_twice_is_read_once() {
        let place = |at| ListPosition {
            at: Timestamp::from_millis(at),
            task: TaskId::made_of(1),
        };
        assert_eq!(distinct(&[place(2), place(1)]), [&TaskId::made_of(1)]);
    }
}
