//! Removes everything of a tenant. An operator runs this job; no function does.
//!
//! The table has no index by tenant, so the job reads the whole table. It removes every
//! item of the tenant, then the tenant's objects, and repeats this until a round finds
//! nothing. A later round finds what was written during an earlier one. The job keeps no
//! position; an interrupted job starts again from the beginning.

use super::expression;
use super::outcome;
use super::store::DynamoTable;
use a2a_lambda_model::store::{Blobs, StoreError};
use a2a_lambda_model::task::TenantId;
use a2a_lambda_store::api_keys;
use a2a_lambda_store::item::OWNER_SUBJECT;
use a2a_lambda_store::keys::{self, API_KEYS, Key};
use a2a_lambda_store::records::{ROOT, UPLOADS};
use a2a_lambda_store::table::{Item, Position};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use aws_sdk_dynamodb::types::{AttributeValue, DeleteRequest, WriteRequest};
use std::time::Duration;

/// If this many rounds all find something, a client still writes.
pub(super) const ROUNDS: u32 = 5;
/// Deletes in one request: the limit of `BatchWriteItem`.
pub(super) const BATCH: usize = 25;
/// Objects of one list, and of one delete request.
const LISTED: usize = 1000;
/// Attempts of one request. No client waits for the job, and it uses the capacity that
/// the table has left.
const PATIENCE: u32 = 10;
/// Time for all attempts of one request.
const LONGEST: Duration = Duration::from_secs(120);

/// The progress of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Erasure {
    /// Items read from the whole table, of any tenant.
    pub read: u64,
    /// Items of the tenant or subject, removed or counted.
    pub items: u64,
    /// Objects of the tenant or subject, removed or counted.
    pub objects: u64,
    /// Rounds that have started.
    pub rounds: u32,
}

/// Why data may be left.
#[derive(Debug, thiserror::Error)]
pub enum EraseError {
    /// The table or the bucket does not answer. The job can be run again.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Every round has found new data.
    #[error("there is still new data: take the credentials away, then run this again")]
    StillWritten,
}

/// What a job does with the data that it finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EraseMode {
    Count,
    Remove,
}

/// A page of the table.
pub(super) struct TablePage {
    /// The number of items read.
    pub(super) read: u64,
    /// The keys of a tenant's items and API keys, with the subject if an attribute names it.
    pub(super) keys: Vec<Item>,
    /// Where the next page starts.
    pub(super) next: Option<Position>,
}

/// Receives the progress after each request.
pub(super) type OnProgress<'a> = &'a (dyn Fn(&Erasure) + Sync);

impl DynamoTable {
    /// Removes everything of `tenant` from the table and from `blobs`, until a round finds
    /// nothing. Turns that run meanwhile find their tasks gone and cannot write to them.
    /// A client that still has credentials of the tenant can create new tasks.
    ///
    /// # Errors
    /// [`EraseError`]. What was removed before the error stays removed; run the job again.
    pub async fn erase_tenant(
        &self,
        tenant: &TenantId,
        blobs: &dyn Blobs,
        report: OnProgress<'_>,
    ) -> Result<Erasure, EraseError> {
        let (table, mut so_far) = (self.patient(), Erasure::default());
        while so_far.rounds < ROUNDS {
            let (items, objects) = (so_far.items, so_far.objects);
            table
                .round(tenant, blobs, EraseMode::Remove, &mut so_far, report)
                .await?;
            if (so_far.items, so_far.objects) == (items, objects) {
                return Ok(so_far);
            }
        }
        Err(EraseError::StillWritten)
    }

    /// Counts what [`DynamoTable::erase_tenant`] would remove, at the cost of one
    /// of its rounds.
    ///
    /// # Errors
    /// [`StoreError`] when the table or the bucket does not answer.
    pub async fn count_tenant(
        &self,
        tenant: &TenantId,
        blobs: &dyn Blobs,
        report: OnProgress<'_>,
    ) -> Result<Erasure, StoreError> {
        let mut so_far = Erasure::default();
        self.patient()
            .round(tenant, blobs, EraseMode::Count, &mut so_far, report)
            .await?;
        Ok(so_far)
    }

    /// Removes items before objects: then no item can refer to a removed object.
    async fn round(
        &self,
        tenant: &TenantId,
        blobs: &dyn Blobs,
        does: EraseMode,
        so_far: &mut Erasure,
        report: OnProgress<'_>,
    ) -> Result<(), StoreError> {
        so_far.rounds += 1;
        let mut start = None;
        loop {
            let page = self.tenant_page(tenant, start).await?;
            so_far.read += page.read;
            self.erase_items(&page.keys, does, so_far).await?;
            report(so_far);
            start = page.next;
            if start.is_none() {
                break;
            }
        }
        for root in [ROOT, UPLOADS] {
            let below = format!("{root}{}/", tenant.folder());
            erase_objects(&below, blobs, does, so_far).await?;
            report(so_far);
        }
        Ok(())
    }

    /// Removes or counts the items with the keys of `items`.
    pub(super) async fn erase_items(
        &self,
        items: &[Item],
        does: EraseMode,
        so_far: &mut Erasure,
    ) -> Result<(), StoreError> {
        for keys in items.chunks(BATCH) {
            if does == EraseMode::Remove {
                self.remove_batch(keys).await?;
            }
            so_far.items += keys.len() as u64;
        }
        Ok(())
    }

    /// A page of the table: the tenant's items and its API keys.
    pub(super) async fn tenant_page(
        &self,
        tenant: &TenantId,
        start: Option<Position>,
    ) -> Result<TablePage, StoreError> {
        let text = |text: &str| AttributeValue::S(text.to_owned());
        let output = self
            .client
            .scan()
            .table_name(&self.name)
            .consistent_read(true)
            .filter_expression(
                "begins_with(PK, :below) OR (PK = :keys AND #tenant = :tenant) \
                 OR (begins_with(PK, :days) AND SK = :tenant)",
            )
            .expression_attribute_values(":days", text(keys::DAY_USES))
            .expression_attribute_values(":below", AttributeValue::S(keys::tenant(tenant)))
            .expression_attribute_values(":keys", text(API_KEYS))
            .expression_attribute_values(":tenant", text(tenant.as_str()))
            .projection_expression("PK, SK, #subject")
            .expression_attribute_names("#tenant", api_keys::TENANT)
            .expression_attribute_names("#subject", OWNER_SUBJECT)
            .set_exclusive_start_key(start.map(|start| expression::attributes(start.0)))
            .send()
            .await
            .map_err(|error| outcome::read_error(&error))?;
        let items = output.items.unwrap_or_default().into_iter();
        let last = output.last_evaluated_key;
        Ok(TablePage {
            read: u64::try_from(output.scanned_count).unwrap_or_default(),
            keys: items.map(expression::item).collect(),
            next: last.map(|last| Position(expression::item(last))),
        })
    }

    /// Deletes at most [`BATCH`] items.
    async fn remove_batch(&self, items: &[Item]) -> Result<(), StoreError> {
        let build_error =
            |error: aws_sdk_dynamodb::error::BuildError| StoreError::Refused(error.to_string());
        let mut requests = Vec::new();
        for item in items {
            let key = expression::attributes(Key::of(item)?.item());
            let removal = DeleteRequest::builder().set_key(Some(key)).build();
            let removal = removal.map_err(build_error)?;
            requests.push(WriteRequest::builder().delete_request(removal).build());
        }
        while !requests.is_empty() {
            let count = requests.len();
            let output = self
                .client
                .batch_write_item()
                .request_items(&self.name, requests)
                .send()
                .await
                .map_err(|error| outcome::read_error(&error))?;
            let mut rest = output.unprocessed_items.unwrap_or_default();
            requests = rest.remove(&self.name).unwrap_or_default();
            if requests.len() == count {
                let why = "the table processed none of the deletes of a batch".to_owned();
                return Err(StoreError::Unavailable(why));
            }
        }
        Ok(())
    }

    /// The table for a job that can wait.
    pub(super) fn patient(&self) -> Self {
        let config = self.client.config();
        let retries = config.retry_config().cloned();
        let retries = retries.unwrap_or_else(RetryConfig::standard);
        let times = TimeoutConfig::builder().operation_timeout(LONGEST).build();
        let config = config.to_builder().timeout_config(times);
        let config = config.retry_config(retries.with_max_attempts(PATIENCE));
        Self {
            client: Client::from_conf(config.build()),
            name: self.name.clone(),
        }
    }
}

/// Removes or counts the objects below `below`.
pub(super) async fn erase_objects(
    below: &str,
    blobs: &dyn Blobs,
    does: EraseMode,
    so_far: &mut Erasure,
) -> Result<(), StoreError> {
    let mut after: Option<String> = None;
    loop {
        let names = blobs.keys(below, after.as_deref(), LISTED).await?;
        if does == EraseMode::Remove && !names.is_empty() {
            blobs.remove(&names).await?;
        }
        so_far.objects += names.len() as u64;
        if names.len() < LISTED {
            return Ok(());
        }
        after = names.last().cloned();
    }
}
