//! A page of an owner's tasks.
//!
//! The index gives places, newest first; the records are then read from the
//! table itself, and what no longer matches is dropped. A page can be short
//! for that reason; its position decides where the next one begins.

use super::calls::{self, TRIES};
use super::item::{self, Item};
use super::key;
use crate::store::{ListPosition, RecordPage, RecordQuery, StoreError};
use crate::task::{Owner, TaskId, TaskKey, TaskRecord};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::{AttributeValue, KeysAndAttributes, Select};
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};

/// Index items that one page or one count reads at most.
const READ_MAX: usize = 2_000;
/// Index items of one request.
const CHUNK: usize = 500;
/// Items of one batch read.
pub(super) const BATCH: usize = 100;

/// The page of `owner`'s tasks that `query` asks for.
///
/// # Errors
/// [`StoreError`] when the table does not answer or an item is corrupt.
pub(super) async fn page(
    client: &Client,
    table: &str,
    owner: &Owner,
    query: &RecordQuery,
) -> Result<RecordPage, StoreError> {
    let list = List {
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

struct List<'a> {
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

    /// The attribute `name` has to be `value`, too.
    fn demand(&mut self, name: &str, value: &str) {
        self.expression = format!("({}) AND #{name} = :{name}", self.expression);
        self.name(name);
        self.bind(&format!(":{name}"), item::text(value));
    }
}

/// One answer of the index.
#[derive(Default)]
struct Answer {
    items: Vec<Item>,
    count: usize,
    scanned: usize,
    last: Option<Item>,
}

impl List<'_> {
    /// The places of the page and one more, if there is one. If the reading
    /// stopped at its limit instead, also the place it got to.
    async fn places(&self) -> Result<(Vec<ListPosition>, Option<ListPosition>), StoreError> {
        let after = self.query.after.as_ref();
        let end = after.map_or_else(key::after_all, |after| key::place(after.at, &after.task));
        let mut places = Vec::new();
        let mut read = 0;
        let mut start = None;
        loop {
            let answer = self.ask(&end, false, start).await?;
            read += answer.scanned;
            for item in &answer.items {
                let place = position(item)?;
                if after != Some(&place) {
                    places.push(place);
                }
            }
            let Some(last) = answer.last else {
                return Ok((places, None));
            };
            if places.len() > self.query.limit {
                return Ok((places, None));
            }
            if read >= READ_MAX {
                return Ok((places, Some(position(&last)?)));
            }
            start = Some(last);
        }
    }

    /// How many tasks of the whole list match, up to the query's limit.
    async fn count(&self) -> Result<usize, StoreError> {
        let (mut counted, mut read) = (0, 0);
        let mut start = None;
        loop {
            let answer = self.ask(&key::after_all(), true, start).await?;
            counted += answer.count;
            read += answer.scanned;
            let enough = counted >= self.query.count_limit || read >= READ_MAX;
            if enough || answer.last.is_none() {
                return Ok(counted.min(self.query.count_limit));
            }
            start = answer.last;
        }
    }

    /// The next items of the index before `end`, newest first.
    async fn ask(&self, end: &str, count: bool, start: Option<Item>) -> Result<Answer, StoreError> {
        let query = self.query;
        // A bound of a key condition is never empty.
        let begin = query
            .status_after
            .map_or_else(|| "0".to_owned(), key::before_all_at);
        if begin.as_str() > end {
            return Ok(Answer::default());
        }
        let mut filter = self.filter();
        filter.bind(":list", item::text(key::list(self.owner)));
        filter.bind(":begin", item::text(begin));
        filter.bind(":end", item::text(end));
        let narrow = query.context_id.is_some() || query.state.is_some() || count;
        // One more than the page, to see whether there is a next one, and the
        // one which the last page ended with.
        let limit = if narrow { CHUNK } else { query.limit + 2 };
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
            .limit(i32::try_from(limit).unwrap_or(i32::MAX))
            .set_exclusive_start_key(start)
            .send()
            .await
            .map_err(|error| calls::read_error(&error))?;
        Ok(Answer {
            count: usize::try_from(found.count).unwrap_or_default(),
            scanned: usize::try_from(found.scanned_count).unwrap_or_default(),
            items: found.items.unwrap_or_default(),
            last: found.last_evaluated_key,
        })
    }

    /// What an index item has to be: not expired, and as the query asks.
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

    /// The records at `places`, each as stored now, in no order.
    async fn records(&self, places: &[ListPosition]) -> Result<Vec<TaskRecord>, StoreError> {
        let mut records = Vec::new();
        for chunk in distinct(places).chunks(BATCH) {
            let keys = chunk.iter().map(|task| {
                let task = TaskKey::new(self.owner, task);
                item::key_of(&key::task(&task), key::META)
            });
            for item in batch(self.client, self.table, keys.collect()).await? {
                records.push(item::to_task(&item)?);
            }
        }
        Ok(records)
    }
}

/// The items of `keys`, at most [`BATCH`], read consistently.
pub(super) async fn batch(
    client: &Client,
    table: &str,
    mut keys: Vec<Item>,
) -> Result<Vec<Item>, StoreError> {
    let mut items = Vec::new();
    let mut tries = 0;
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
            .map_err(|error| calls::read_error(&error))?;
        let mut answered = found.responses.take().unwrap_or_default();
        items.append(&mut answered.remove(table).unwrap_or_default());
        let mut rest = found.unprocessed_keys.take().unwrap_or_default();
        keys = rest.remove(table).map(|rest| rest.keys).unwrap_or_default();
        // An answer stops at 16 MB; only one without progress is throttled.
        if keys.len() == wanted {
            if tries + 1 == TRIES {
                return Err(StoreError::Unavailable("a batch read stalls".to_owned()));
            }
            calls::pause(tries).await;
            tries += 1;
        }
    }
    Ok(items)
}

/// The tasks at `places`, each once: an index that lags can show a task at its
/// old place and at its new one, and a batch read takes no key twice.
fn distinct(places: &[ListPosition]) -> Vec<&TaskId> {
    let tasks: BTreeSet<&TaskId> = places.iter().map(|place| &place.task).collect();
    tasks.into_iter().collect()
}

fn position(item: &Item) -> Result<ListPosition, StoreError> {
    let text = item::string(item, key::LISTS_SK)?;
    key::position(text).ok_or_else(|| StoreError::Corrupt(format!("no place in a list: `{text}`")))
}

#[cfg(test)]
mod tests {
    use super::distinct;
    use crate::store::ListPosition;
    use crate::task::{TaskId, Timestamp};

    #[test]
    fn a_task_that_the_index_shows_twice_is_read_once() {
        let place = |at| ListPosition {
            at: Timestamp::from_millis(at),
            task: TaskId::made_of(1),
        };
        assert_eq!(distinct(&[place(2), place(1)]), [&TaskId::made_of(1)]);
    }
}
