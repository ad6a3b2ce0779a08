//! Reads a page of one shard of the open tasks of all tenants: those that are submitted or
//! working, and those with unconfirmed push deliveries.
//!
//! The index holds no content, only the key of a task and its owner.

use super::item::{self, Item};
use super::key;
use super::outcome;
use a2a_lambda_model::store::StoreError;
use a2a_lambda_model::store::queue::OpenTask;
use a2a_lambda_model::task::{Owner, Subject};
use aws_sdk_dynamodb::Client;

/// Index items of one request at most.
const CHUNK: usize = 1_000;

/// Up to `limit` open tasks of `shard` after the position `after`, oldest first, and the
/// position from which the next page continues.
///
/// # Errors
/// [`StoreError`] when the table does not answer, or when `after` is not a position that
/// this function returned.
pub(super) async fn page(
    client: &Client,
    table: &str,
    shard: u32,
    after: Option<&str>,
    limit: usize,
) -> Result<(Vec<OpenTask>, Option<String>), StoreError> {
    let limit = i32::try_from(limit.clamp(1, CHUNK)).unwrap_or(i32::MAX);
    let start = after.map(|after| start_key(shard, after)).transpose()?;
    let found = client
        .query()
        .table_name(table)
        .index_name(key::SWEEP)
        .key_condition_expression("#open = :open")
        .expression_attribute_names("#open", key::SWEEP_PK)
        .expression_attribute_values(":open", item::text(key::open(shard)))
        .set_exclusive_start_key(start)
        .limit(limit)
        .send()
        .await
        .map_err(|error| outcome::read_error(&error))?;
    let next = found.last_evaluated_key().map(place).transpose()?;
    let mut tasks = Vec::new();
    for item in found.items() {
        match open_task(item) {
            Ok(task) => tasks.push(task),
            // One bad item must not hide the others from the sweep.
            Err(error) => tracing::error!(%error, "the sweep index holds an unreadable item"),
        }
    }
    Ok((tasks, next))
}

fn open_task(item: &Item) -> Result<OpenTask, StoreError> {
    let (tenant, task) = key::task_of(item::string(item, key::PK)?)
        .ok_or_else(|| StoreError::Corrupt("the partition key names no task".to_owned()))?;
    let subject = Subject::parse(item::string(item, item::OWNER_SUBJECT)?)
        .map_err(|error| StoreError::Corrupt(error.to_string()))?;
    let owner = Owner { tenant, subject };
    Ok(OpenTask { owner, task })
}

/// The position of the last item read.
fn place(last: &Item) -> Result<String, StoreError> {
    let at: i64 = item::integer(last, key::SWEEP_SK)?;
    Ok(format!("{at}#{}", item::string(last, key::PK)?))
}

/// The exclusive start key of the page after `place`.
fn start_key(shard: u32, place: &str) -> Result<Item, StoreError> {
    let (at, partition) = place
        .split_once('#')
        .and_then(|(at, partition)| Some((at.parse::<i64>().ok()?, partition)))
        .filter(|(_, partition)| key::task_of(partition).is_some())
        .ok_or_else(|| {
            StoreError::Refused("invalid page position among the open tasks".to_owned())
        })?;
    let mut start = item::key_of(partition, key::META);
    start.insert(key::SWEEP_PK.to_owned(), item::text(key::open(shard)));
    start.insert(key::SWEEP_SK.to_owned(), item::number(at));
    Ok(start)
}
