//! Reads a page of an owner's tasks.
//!
//! The list index gives positions, newest first. The records themselves are then read from the
//! table, without those that no longer match, so a page can be short. The last position
//! decides where the next page begins.

use super::RecordReader;
use crate::item::{self, CONTEXT, STATE, corrupt};
use crate::keys::{self, LISTS_SK};
use crate::table::{Comparison, Condition, Item, Position, Query};
use a2a_lambda_model::store::{ListPosition, RecordPage, RecordQuery, StoreError};
use a2a_lambda_model::task::{Owner, TaskKey};
use std::cmp::Reverse;

/// Index items that one page or one count reads at most, of each index.
const READ_MAX: usize = 2_000;
/// Index items of one request.
pub(super) const CHUNK: usize = 500;

impl RecordReader {
    /// A page of `owner`'s tasks, from an index, never by a scan. The index may lag;
    /// each record of the page is the stored head. A context of at most
    /// [`IN_CONTEXT`](a2a_lambda_model::store::IN_CONTEXT) tasks is listed without the index: list and
    /// count are exact.
    ///
    /// # Errors
    /// [`StoreError`] when the store does not answer.
    pub async fn list(&self, owner: &Owner, query: &RecordQuery) -> Result<RecordPage, StoreError> {
        if let Some(context) = &query.context_id
            && let Some(page) = self.page_in(owner, context, query).await?
        {
            return Ok(page);
        }
        let (mut positions, end) = self.places(owner, query).await?;
        let more = positions.len() > query.limit;
        positions.truncate(query.limit);
        let next = match more {
            true => positions.last().cloned(),
            false => end.map(|end| position(&end.0)).transpose()?,
        };
        let is_whole =
            query.after.is_none() && next.is_none() && positions.len() <= query.count_limit;
        let matching = if is_whole {
            positions.len()
        } else {
            self.count(owner, query).await?
        };
        let tasks = positions
            .iter()
            .map(|position| TaskKey::new(owner, &position.task));
        let mut records = self.heads_of(tasks).await?;
        records.retain(|record| query.matches(owner, record));
        records.sort_by_key(|record| Reverse(ListPosition::of(record)));
        Ok(RecordPage {
            records,
            next,
            matching,
        })
    }

    /// The positions of the page, and one more if there is one, as [`RecordReader::walk`] returns
    /// them.
    async fn places(
        &self,
        owner: &Owner,
        query: &RecordQuery,
    ) -> Result<(Vec<ListPosition>, Option<Position>), StoreError> {
        let after = query.after.as_ref();
        let is_filtered = query.context_id.is_some() || query.state.is_some();
        // Without a filter that is the page, one more to see whether there is a next page, and
        // the position with which the last page ended.
        let chunk = if is_filtered { CHUNK } else { query.limit + 2 };
        let request = Query {
            limit: Some(chunk),
            ..index_query(owner, query, after)
        };
        // The range includes its bounds, so the index returns the position `after` again. A task
        // that moved can appear twice while the index lags.
        let read = |item: &Item| Ok(Some(position(item)?).filter(|it| after != Some(it)));
        self.walk(request, query.limit, read).await
    }

    /// What `read` returns for the items of an index, in the order of the query, until there are
    /// more than `limit`. If the index has more items, or may have, also the position of the last
    /// one that was read.
    pub(super) async fn walk<T: Send>(
        &self,
        mut query: Query,
        limit: usize,
        read: impl Fn(&Item) -> Result<Option<T>, StoreError> + Send,
    ) -> Result<(Vec<T>, Option<Position>), StoreError> {
        let (mut values, mut read_count) = (Vec::new(), 0);
        loop {
            let page = self.table.query(&query).await?;
            read_count += page.read;
            for item in &page.items {
                values.extend(read(item)?);
            }
            query.start = page.next;
            let is_enough = values.len() > limit || read_count >= READ_MAX;
            if is_enough || query.start.is_none() {
                return Ok((values, query.start));
            }
        }
    }

    /// Counts the matching tasks of the whole list, up to the query's limit.
    async fn count(&self, owner: &Owner, query: &RecordQuery) -> Result<usize, StoreError> {
        let limit = query.count_limit;
        let mut request = Query {
            count: true,
            ..index_query(owner, query, None)
        };
        let (mut count, mut read_count) = (0, 0);
        while count < limit && read_count < READ_MAX {
            request.limit = Some((READ_MAX - read_count).min(CHUNK));
            let page = self.table.query(&request).await?;
            count += page.count;
            read_count += page.read;
            request.start = page.next;
            if request.start.is_none() {
                break;
            }
        }
        Ok(count.min(limit))
    }
}

/// The items up to `last`, newest first: not expired, and with the context and state of the
/// query.
fn index_query(owner: &Owner, query: &RecordQuery, last: Option<&ListPosition>) -> Query {
    let is = |name, text: &str| Condition::is(name, Comparison::Equal, text);
    let mut filter = vec![item::is_live(query.now)];
    filter.extend(query.context_id.iter().map(|it| is(CONTEXT, it.as_str())));
    filter.extend(query.state.map(|it| is(STATE, it.as_str())));
    Query {
        range: keys::places(query.status_after, last),
        newest_first: true,
        filter: Some(Condition::All(filter)),
        ..keys::list(owner).into()
    }
}

fn position(item: &Item) -> Result<ListPosition, StoreError> {
    let text = item::text(item, LISTS_SK)?;
    ListPosition::parse(text)
        .map_err(|_| corrupt(format_args!("invalid position in a list: `{text}`")))
}
