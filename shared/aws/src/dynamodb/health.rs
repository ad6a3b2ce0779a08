//! Checks that the table answers, and whether it could be deleted.

use super::DynamoTable;
use a2a_lambda_model::store::StoreError;
use a2a_lambda_model::store::health::HealthCheck;
use a2a_lambda_store::keys;
use a2a_lambda_store::table::ReadTable as _;
use async_trait::async_trait;

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
