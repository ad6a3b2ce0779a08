//! The table, its client, and reads of single items.

use super::capacity::Capacity;
use super::item::{self, Item};
use super::key;
use super::outcome;
use super::user_agent::FixedUserAgent;
use a2a_lambda_model::store::{Blobs, Meter, OBJECTS_AT_ONCE, StoreError};
use aws_sdk_dynamodb::Client;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// How long an expired thread under a client-made context id is kept (7 days).
const TOMBSTONE: Duration = Duration::from_secs(7 * 24 * 3600);

/// A store of tasks and threads in one table.
#[derive(Clone)]
pub struct DynamoStore {
    pub(super) client: Client,
    pub(super) table: String,
    pub(super) blobs: Option<Arc<dyn Blobs>>,
    /// Permits to read an object of `blobs`. All reads of the store share them,
    /// since one response may read several tasks in parallel, each with many objects.
    pub(super) objects: Arc<Semaphore>,
    pub(super) tombstone: Duration,
}

impl DynamoStore {
    /// A store in `table`. It sends its requests through `client` with the same retry rules.
    /// In addition it repeats writes that only met other writes.
    #[must_use]
    #[expect(
        clippy::needless_pass_by_value,
        reason = "the store builds its own client from this one"
    )]
    pub fn new(client: Client, table: impl Into<String>) -> Self {
        let config = client.config().to_builder();
        let config = config.retry_classifier(outcome::RetryUndecided);
        let config = config.interceptor(FixedUserAgent);
        Self {
            client: Client::from_conf(config.build()),
            table: table.into(),
            blobs: None,
            objects: Arc::new(Semaphore::new(OBJECTS_AT_ONCE)),
            tombstone: TOMBSTONE,
        }
    }

    /// Keeps content above 32 KB, and batches of events above 200 KB, as objects in `blobs`.
    /// Reads at most 16 of them at the same time. Without `blobs` the store refuses a value
    /// that is too large for an item.
    #[must_use]
    pub fn with_blobs(mut self, blobs: Arc<dyn Blobs>) -> Self {
        self.blobs = Some(blobs);
        self
    }

    /// Asks for the capacity of each request and gives it to `meter`. Request and response
    /// are about 100 bytes longer.
    #[must_use]
    pub fn with_meter(mut self, meter: Arc<dyn Meter>) -> Self {
        let config = self.client.config().to_builder();
        self.client = Client::from_conf(config.interceptor(Capacity(meter)).build());
        self
    }

    /// Keeps expired threads under client-made ids for `tombstone` before DynamoDB's TTL
    /// may remove them (default 7 days).
    #[must_use]
    pub const fn with_tombstone(mut self, tombstone: Duration) -> Self {
        self.tombstone = tombstone;
        self
    }

    /// The `META` item of a partition, read consistently.
    pub(super) async fn meta(&self, partition: &str) -> Result<Option<Item>, StoreError> {
        self.item(partition, key::META).await
    }

    /// One item, read consistently.
    pub(super) async fn item(
        &self,
        partition: &str,
        sort: &str,
    ) -> Result<Option<Item>, StoreError> {
        let request = self
            .client
            .get_item()
            .table_name(&self.table)
            .set_key(Some(item::key_of(partition, sort)))
            .consistent_read(true)
            .send();
        // Boxed, since the future of a request is large, and each caller would hold it.
        let found = Box::pin(request).await;
        found
            .map(|found| found.item)
            .map_err(|error| outcome::read_error(&error))
    }
}

impl std::fmt::Debug for DynamoStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DynamoStore")
            .field("table", &self.table)
            .finish_non_exhaustive()
    }
}
