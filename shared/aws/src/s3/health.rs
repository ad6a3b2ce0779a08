//! Checks that the bucket answers.

use super::S3Blobs;
use a2a_lambda_model::store::StoreError;
use a2a_lambda_model::store::health::HealthCheck;
use async_trait::async_trait;

/// A prefix below which there is never an object. The function `ops` may list it alone.
const EMPTY: &str = "health/";

/// A list of one empty prefix. HEAD of the bucket would cost less, but needs the right to
/// list all keys.
#[async_trait]
impl HealthCheck for S3Blobs {
    async fn check_health(&self) -> Result<(), StoreError> {
        self.page(EMPTY, None, None, 1).await.map(|_| ())
    }
}
