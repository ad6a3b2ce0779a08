//! The table and its client, whether it answers, and whether it could be deleted.

use super::capacity::Capacity;
use super::outcome;
use super::user_agent::FixedUserAgent;
use a2a_lambda_model::store::health::HealthCheck;
use a2a_lambda_model::store::{Meter, StoreError};
use a2a_lambda_store::keys;
use a2a_lambda_store::records::Records;
use a2a_lambda_store::table::ReadTable as _;
use async_trait::async_trait;
use aws_sdk_dynamodb::Client;
use std::sync::Arc;

/// A table in DynamoDB.
#[derive(Debug, Clone)]
pub struct DynamoTable {
    pub(super) client: Client,
    pub(super) name: String,
}

/// The tasks, threads and push configs in the table `name`.
#[must_use]
pub fn records(client: Client, name: impl Into<String>) -> Records {
    Records::new(Arc::new(DynamoTable::new(client, name)))
}

impl DynamoTable {
    /// The table `name`. It sends its requests through `client` with the same retry rules.
    /// In addition it repeats writes that only met other writes.
    #[must_use]
    #[expect(
        clippy::needless_pass_by_value,
        reason = "the table builds its own client from this one"
    )]
    pub fn new(client: Client, name: impl Into<String>) -> Self {
        let config = client.config().to_builder();
        let config = config.retry_classifier(outcome::RetryClass);
        let config = config.interceptor(FixedUserAgent);
        Self {
            client: Client::from_conf(config.build()),
            name: name.into(),
        }
    }

    /// Asks for the capacity of each request and gives it to `meter`. Request and response
    /// are about 100 bytes longer.
    #[must_use]
    pub fn with_meter(mut self, meter: Arc<dyn Meter>) -> Self {
        let config = self.client.config().to_builder();
        self.client = Client::from_conf(config.interceptor(Capacity(meter)).build());
        self
    }
}

#[async_trait]
impl HealthCheck for DynamoTable {
    /// A read of one absent item.
    async fn check_health(&self) -> Result<(), StoreError> {
        self.get(&[keys::absent()]).await.map(|_| ())
    }

    /// A template cannot turn the protection on: a first deployment that fails could then not be
    /// rolled back.
    async fn warning(&self) -> Option<&'static str> {
        let request = self.client.describe_table().table_name(&self.name);
        // Nothing is known about a table that may not be described.
        let is_protected = request
            .send()
            .await
            .ok()?
            .table?
            .deletion_protection_enabled;
        (is_protected != Some(true)).then_some("the table has no deletion protection")
    }
}
