//! Declares how a dependency says that it works.

use super::StoreError;
use async_trait::async_trait;

/// A dependency of the agent: a store, a queue, or a service that an author uses.
#[async_trait]
pub trait HealthCheck: Send + Sync {
    /// Makes one cheap read. The caller ends it after 2 s and repeats it at most every 10 s.
    ///
    /// # Errors
    /// [`StoreError`] when the dependency does not work. Its text is logged and never sent to
    /// a client.
    async fn check_health(&self) -> Result<(), StoreError>;

    /// What an operator should mend although it works. Only the report for operators asks.
    async fn warning(&self) -> Option<&'static str> {
        None
    }
}
