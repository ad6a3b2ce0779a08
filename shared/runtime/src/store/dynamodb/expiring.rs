//! What the sweep index shows of conversations whose time is up, and what the
//! sweep does about them.
//!
//! The index holds the expiry as it was noted when the item was last put. A
//! refresh of a thread leaves it alone: a sweep that comes by then notes the
//! new one, about once in a life.

use super::calls;
use super::item::{self, Item};
use super::statement::Statement;
use super::{DynamoStore, key, object};
use crate::store::{
    Expiring, ExpiringThread, StateRemoved, StoreError, SweepThreads, ThreadRecord,
};
use crate::task::{ContextId, Owner, Subject, Timestamp};
use async_trait::async_trait;

/// Index items of one request at most.
const CHUNK: usize = 1_000;

#[async_trait]
impl SweepThreads for DynamoStore {
    async fn expiring_threads(
        &self,
        now: Timestamp,
        after: Option<String>,
        limit: usize,
    ) -> Result<(Vec<ExpiringThread>, Option<String>), StoreError> {
        let mut shard = shard_of(after.as_deref())?;
        let mut start = after.as_deref().and_then(start_key);
        loop {
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
                .map_err(|error| calls::read_error(&error))?;
            let mut threads = Vec::new();
            for item in found.items() {
                match expiring(item) {
                    Ok(thread) => threads.push(thread),
                    // One bad item must not hide the others from the sweep.
                    Err(error) => {
                        tracing::error!(%error, "the sweep index holds an unreadable item")
                    }
                }
            }
            let next = match found.last_evaluated_key() {
                Some(last) => Some(place(shard, last)?),
                None if shard + 1 < key::EXPIRY_SHARDS => Some(format!("{}#", shard + 1)),
                None => None,
            };
            if !threads.is_empty() || next.is_none() {
                return Ok((threads, next));
            }
            shard = shard_of(next.as_deref())?;
            start = next.as_deref().and_then(start_key);
        }
    }

    async fn note_expiry(
        &self,
        hint: &ExpiringThread,
        thread: &ThreadRecord,
    ) -> Result<(), StoreError> {
        let statement = Statement::expiry(hint, thread);
        self.settle_again(statement).await.map(|_| ())
    }

    async fn remove_state(
        &self,
        owner: &Owner,
        id: &ContextId,
        now: Timestamp,
    ) -> Result<StateRemoved, StoreError> {
        let old = self.take(Statement::no_state(owner, id, now)).await?;
        let object = old.as_ref().and_then(object::named);
        Ok(StateRemoved {
            state: old.is_some(),
            objects: self.remove_objects(object.into_iter().collect()).await,
        })
    }
}

fn expiring(item: &Item) -> Result<ExpiringThread, StoreError> {
    let corrupt = || StoreError::Corrupt("no thread in the key".to_owned());
    let (tenant, context_id) = key::thread_of(item::string(item, key::PK)?).ok_or_else(corrupt)?;
    let subject = Subject::parse(item::string(item, item::OWNER_SUBJECT)?)
        .map_err(|error| StoreError::Corrupt(error.to_string()))?;
    let what = match item::string(item, key::SK)? {
        key::META => Expiring::Thread,
        key::STATE => Expiring::State,
        _ => return Err(corrupt()),
    };
    Ok(ExpiringThread {
        owner: Owner { tenant, subject },
        context_id,
        what,
    })
}

/// The place of the last item read: shard, time, sort key, partition.
fn place(shard: u32, last: &Item) -> Result<String, StoreError> {
    let at: i64 = item::integer(last, key::SWEEP_SK)?;
    let (sort, partition) = (item::string(last, key::SK)?, item::string(last, key::PK)?);
    Ok(format!("{shard}#{at}#{sort}#{partition}"))
}

fn shard_of(place: Option<&str>) -> Result<u32, StoreError> {
    let Some(place) = place else { return Ok(0) };
    place
        .split_once('#')
        .and_then(|(shard, _)| shard.parse().ok())
        .ok_or_else(|| StoreError::Refused("no place among the expiring threads".to_owned()))
}

/// The key after which a page at `place` begins; `None` at the start of a shard.
fn start_key(place: &str) -> Option<Item> {
    let mut fields = place.splitn(4, '#');
    let shard: u32 = fields.next()?.parse().ok()?;
    let at: i64 = fields.next()?.parse().ok()?;
    let (sort, partition) = (fields.next()?, fields.next()?);
    let mut start = item::key_of(partition, sort);
    start.insert(key::SWEEP_PK.to_owned(), item::text(key::expiry(shard)));
    start.insert(key::SWEEP_SK.to_owned(), item::number(at));
    Some(start)
}
