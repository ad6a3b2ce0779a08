//! Finds expired thread states for the sweep, and removes them.
//!
//! The sweep index holds only thread states and unfinished deletions. It shows the expiry
//! that was current when the state was last written. A later use of the thread does not
//! update the index. When the sweep finds such an outdated entry, it writes the new expiry.
//! That happens about once in a thread's life.

use super::conditional_write::ConditionalWrite;
use super::item::{self, Item};
use super::key;
use super::outcome;
use super::store::DynamoStore;
use a2a_lambda_model::store::{
    Expiring, ExpiringThread, StateRemoved, StoreError, SweepThreads, ThreadRecord,
};
use a2a_lambda_model::task::{ContextId, Owner, Subject, Timestamp};
use async_trait::async_trait;

/// Index items of one request at most.
const CHUNK: usize = 1_000;

#[async_trait]
impl SweepThreads for DynamoStore {
    fn expiry_shards(&self) -> u32 {
        key::EXPIRY_SHARDS
    }

    async fn expiring_threads(
        &self,
        shard: u32,
        now: Timestamp,
        after: Option<String>,
        limit: usize,
    ) -> Result<(Vec<ExpiringThread>, Option<String>), StoreError> {
        let start = after.map(|after| start_key(shard, &after)).transpose()?;
        let found = self
            .client
            .query()
            .table_name(&self.table)
            .index_name(key::SWEEP)
            .key_condition_expression("#open = :expiry AND #open_at <= :now")
            .expression_attribute_names("#open", key::SWEEP_PK)
            .expression_attribute_names("#open_at", key::SWEEP_SK)
            .expression_attribute_values(":expiry", item::text(key::expiry(shard)))
            .expression_attribute_values(":now", item::number(now.as_millis()))
            .set_exclusive_start_key(start)
            .limit(i32::try_from(limit.clamp(1, CHUNK)).unwrap_or(i32::MAX))
            .send()
            .await
            .map_err(|error| outcome::read_error(&error))?;
        let next = found.last_evaluated_key().map(place).transpose()?;
        let mut threads = Vec::new();
        for item in found.items() {
            match expiring(item) {
                Ok(thread) => threads.push(thread),
                // One bad item must not hide the others from the sweep.
                Err(error) => tracing::error!(%error, "the sweep index holds an unreadable item"),
            }
        }
        Ok((threads, next))
    }

    async fn note_expiry(&self, thread: &ThreadRecord) -> Result<(), StoreError> {
        let statement = ConditionalWrite::state_expiry(thread);
        self.write_once(statement).await.map(|_| ())
    }

    async fn remove_state(
        &self,
        owner: &Owner,
        id: &ContextId,
        now: Timestamp,
    ) -> Result<StateRemoved, StoreError> {
        let old = self
            .delete_returning(ConditionalWrite::no_state(owner, id, now))
            .await?;
        let objects = match &old {
            Some(old) => self.remove_object_of(old).await,
            None => 0,
        };
        Ok(StateRemoved {
            state: old.is_some(),
            objects,
        })
    }
}

fn expiring(item: &Item) -> Result<ExpiringThread, StoreError> {
    let corrupt = || StoreError::Corrupt("the partition key names no thread".to_owned());
    let (tenant, context_id) = key::thread_of(item::string(item, key::PK)?).ok_or_else(corrupt)?;
    let subject = Subject::parse(item::string(item, item::OWNER_SUBJECT)?)
        .map_err(|error| StoreError::Corrupt(error.to_string()))?;
    let what = match item::string(item, key::SK)? {
        key::META => Expiring::Deleted,
        key::STATE => Expiring::State,
        _ => return Err(corrupt()),
    };
    Ok(ExpiringThread {
        owner: Owner { tenant, subject },
        context_id,
        what,
    })
}

/// The position of the last item read: time, sort key, partition.
fn place(last: &Item) -> Result<String, StoreError> {
    let at: i64 = item::integer(last, key::SWEEP_SK)?;
    let (sort, partition) = (item::string(last, key::SK)?, item::string(last, key::PK)?);
    Ok(format!("{at}#{sort}#{partition}"))
}

/// The exclusive start key of the page after `place`.
fn start_key(shard: u32, place: &str) -> Result<Item, StoreError> {
    let mut fields = place.splitn(3, '#');
    let fields = (fields.next(), fields.next(), fields.next());
    let (Some(at), Some(sort), Some(partition)) = fields else {
        return Err(no_place());
    };
    let at: i64 = at.parse().map_err(|_| no_place())?;
    let mut start = item::key_of(partition, sort);
    start.insert(key::SWEEP_PK.to_owned(), item::text(key::expiry(shard)));
    start.insert(key::SWEEP_SK.to_owned(), item::number(at));
    Ok(start)
}

fn no_place() -> StoreError {
    StoreError::Refused("invalid page position among the expiring threads".to_owned())
}
