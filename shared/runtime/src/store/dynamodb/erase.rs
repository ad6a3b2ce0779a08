//! Everything of a tenant, taken away: an operator's job, and none of a function.
//!
//! The table has no index by tenant, so the job reads all of it. It takes away
//! what begins with the tenant, of whatever kind, and then the tenant's objects,
//! and looks again until it finds nothing: what was on its way while it ran is
//! found by the next round. It keeps no place; one that was cut is run again.

use super::item::{self, Item};
use super::{DynamoStore, calls, key, object};
use crate::store::{Blobs, StoreError};
use crate::task::TenantId;
use aws_sdk_dynamodb::config::Builder;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use aws_sdk_dynamodb::types::{DeleteRequest, WriteRequest};
use std::time::Duration;

/// Rounds after which somebody must still be writing.
const ROUNDS: u32 = 5;
/// Removals in one request: what the service takes.
const BATCH: usize = 25;
/// Objects of one list, and of one removal.
const LISTED: usize = 1000;
/// Attempts of one request: nobody waits for the job, and it takes what the table
/// has left.
const PATIENCE: u32 = 10;
/// Time for all of them.
const LONGEST: Duration = Duration::from_secs(120);

/// How far a job has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Erasure {
    /// Items of the whole table that were read, of whichever tenant.
    pub read: u64,
    /// Items of the tenant: removed, or counted.
    pub items: u64,
    /// Objects of the tenant: removed, or counted.
    pub objects: u64,
    /// Rounds that were begun.
    pub rounds: u32,
}

/// Why something of a tenant may be left.
#[derive(Debug, thiserror::Error)]
pub enum EraseError {
    /// Table or bucket do not answer. The job can be run again.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Each round has found something new.
    #[error("the tenant is still being written: take its credentials away, then run this again")]
    StillWritten,
}

/// What a job does with what it finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Does {
    Count,
    Remove,
}

/// Told of the progress after each request.
type Told<'a> = &'a (dyn Fn(&Erasure) + Sync);

impl DynamoStore {
    /// Removes everything of `tenant` from the table and from `blobs`, until a
    /// round finds nothing. Turns that run meanwhile find their tasks gone, and
    /// can write nothing of them; but whoever still has credentials of the tenant
    /// makes new ones.
    ///
    /// # Errors
    /// [`EraseError`]. What was removed by then is gone; the job is run again.
    pub async fn erase_tenant(
        &self,
        tenant: &TenantId,
        blobs: &dyn Blobs,
        told: Told<'_>,
    ) -> Result<Erasure, EraseError> {
        let mut so_far = Erasure::default();
        while so_far.rounds < ROUNDS {
            let (items, objects) = (so_far.items, so_far.objects);
            self.round(tenant, blobs, Does::Remove, &mut so_far, told)
                .await?;
            if (so_far.items, so_far.objects) == (items, objects) {
                return Ok(so_far);
            }
        }
        Err(EraseError::StillWritten)
    }

    /// Counts what [`DynamoStore::erase_tenant`] would remove, at the cost of one
    /// of its rounds.
    ///
    /// # Errors
    /// [`StoreError`] when table or bucket do not answer.
    pub async fn count_tenant(
        &self,
        tenant: &TenantId,
        blobs: &dyn Blobs,
        told: Told<'_>,
    ) -> Result<Erasure, StoreError> {
        let mut so_far = Erasure::default();
        self.round(tenant, blobs, Does::Count, &mut so_far, told)
            .await?;
        Ok(so_far)
    }

    /// The items first: what names no object any more can bring none back.
    async fn round(
        &self,
        tenant: &TenantId,
        blobs: &dyn Blobs,
        does: Does,
        so_far: &mut Erasure,
        told: Told<'_>,
    ) -> Result<(), StoreError> {
        so_far.rounds += 1;
        let mut start = None;
        loop {
            let (read, found, next) = self.tenant_page(tenant, start).await?;
            so_far.read += read;
            for keys in found.chunks(BATCH) {
                if does == Does::Remove {
                    self.remove_batch(keys).await?;
                }
                so_far.items += keys.len() as u64;
            }
            told(so_far);
            start = next;
            if start.is_none() {
                break;
            }
        }
        for root in [object::ROOT, object::UPLOADS] {
            let below = format!("{root}{}/", tenant.folder());
            let mut after: Option<String> = None;
            loop {
                let found = blobs.keys(&below, after.as_deref(), LISTED).await?;
                if does == Does::Remove && !found.is_empty() {
                    blobs.remove(&found).await?;
                }
                so_far.objects += found.len() as u64;
                told(so_far);
                if found.len() < LISTED {
                    break;
                }
                after = found.last().cloned();
            }
        }
        Ok(())
    }

    /// A page of the table: how many items it has, the keys of those which are
    /// the tenant's, and where the next one begins.
    async fn tenant_page(
        &self,
        tenant: &TenantId,
        start: Option<Item>,
    ) -> Result<(u64, Vec<Item>, Option<Item>), StoreError> {
        let found = self
            .client
            .scan()
            .table_name(&self.table)
            .consistent_read(true)
            .filter_expression("begins_with(PK, :tenant)")
            .expression_attribute_values(":tenant", item::text(key::tenant(tenant)))
            .projection_expression("PK, SK")
            .set_exclusive_start_key(start)
            .customize()
            .config_override(self.patient())
            .send()
            .await
            .map_err(|error| calls::read_error(&error))?;
        let read = u64::try_from(found.scanned_count).unwrap_or_default();
        let keys = found.items.unwrap_or_default();
        Ok((read, keys, found.last_evaluated_key))
    }

    /// Removes at most [`BATCH`] items.
    async fn remove_batch(&self, keys: &[Item]) -> Result<(), StoreError> {
        let broken =
            |error: aws_sdk_dynamodb::error::BuildError| StoreError::Refused(error.to_string());
        let mut left = Vec::new();
        for key in keys {
            let removal = DeleteRequest::builder().set_key(Some(key.clone())).build();
            let removal = removal.map_err(broken)?;
            left.push(WriteRequest::builder().delete_request(removal).build());
        }
        while !left.is_empty() {
            let asked = left.len();
            let done = self
                .client
                .batch_write_item()
                .request_items(&self.table, left)
                .customize()
                .config_override(self.patient())
                .send()
                .await
                .map_err(|error| calls::read_error(&error))?;
            let mut unprocessed = done.unprocessed_items.unwrap_or_default();
            left = unprocessed.remove(&self.table).unwrap_or_default();
            if left.len() == asked {
                let why = "the table takes no more removals now".to_owned();
                return Err(StoreError::Unavailable(why));
            }
        }
        Ok(())
    }

    /// The requests of a job that can wait.
    fn patient(&self) -> Builder {
        let config = self.client.config();
        let retries = config.retry_config().cloned();
        let retries = retries.unwrap_or_else(RetryConfig::standard);
        let times = TimeoutConfig::builder().operation_timeout(LONGEST).build();
        Builder::new()
            .retry_config(retries.with_max_attempts(PATIENCE))
            .timeout_config(times)
    }
}
