//! Reads a page of an owner's tasks.
//!
//! The list index gives positions, newest first. The store then reads the records from the
//! table and drops those that no longer match, so a page can be short. The last position
//! decides where the next page begins.

use super::item::{self, Item};
use super::key;
use super::outcome;
use a2a_lambda_model::store::{ListPosition, RecordPage, RecordQuery, StoreError};
use a2a_lambda_model::task::{Owner, TaskId, TaskKey, TaskRecord};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::{AttributeValue, KeysAndAttributes, Select};
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};

/// Index items that one page or one count reads at most.
const READ_MAX: usize = 2_000;
/// Index items of one request.
const CHUNK: usize = 500;
/// Items of one batch read: the limit of `BatchGetItem`.
pub(super) const BATCH: usize = 100;

/// The page of `owner`'s tasks for `query`.
///
/// # Errors
/// [`StoreError`] when the table does not answer or an item is corrupt.
pub(super) async fn page(
    client: &Client,
    table: &str,
    owner: &Owner,
    query: &RecordQuery,
) -> Result<RecordPage, StoreError> {
    let list = ListRead {
        client,
        table,
        owner,
        query,
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
        let after = self.query.after.as_ref();
        let end = after.map_or_else(key::after_all, |after| key::place(after.at, &after.task));
        let mut places: Vec<ListPosition> = Vec::new();
        let (mut read, mut start) = (0, None);
        loop {
            let answer = self.ask(&end, false, start, self.chunk()).await?;
            read += answer.scanned;
            for item in &answer.items {
                let place = position(item)?;
                // `BETWEEN` includes its bounds, so the index returns the position `after`
                // again. A task that moved can appear twice while the index lags.
                if after != Some(&place) {
                    places.push(place);
                }
            }
            start = answer.last;
            match &start {
                Some(_) if places.len() > self.query.limit => return Ok((places, None)),
                Some(last) if read >= READ_MAX => return Ok((places, Some(position(last)?))),
                Some(_) => {}
                None => return Ok((places, None)),
            }
        }
    }

    /// Items of one request for positions. Without a filter that is the page, one more to
    /// see whether there is a next page, and the position with which the last page ended.
    fn chunk(&self) -> usize {
        if self.query.context_id.is_some() || self.query.state.is_some() {
            CHUNK
        } else {
            self.query.limit + 2
        }
    }

    /// Counts the matching tasks of the whole list, up to the query's limit.
    async fn count(&self) -> Result<usize, StoreError> {
        let limit = self.query.count_limit;
        let (mut counted, mut read, mut start) = (0, 0, None);
        while counted < limit && read < READ_MAX {
            let chunk = (READ_MAX - read).min(CHUNK);
            let answer = self.ask(&key::after_all(), true, start, chunk).await?;
            counted += answer.count;
            read += answer.scanned;
            start = answer.last;
            if start.is_none() {
                break;
            }
        }
        Ok(counted.min(limit))
    }

    /// The next `chunk` items before `end`, newest first.
    async fn ask(
        &self,
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
        filter.bind(":list", item::text(key::list(self.owner)));
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
