//! Reads the secret keys of a deployment from Secrets Manager.

use crate::engine::{ReadSecretKeys, SECRET_KEY_MIN};
use crate::secrets::secrets_manager;
use crate::store::StoreError;
use crate::store::health::HealthCheck;
use crate::store::secretsmanager::Version;
use crate::task::Secret;
use async_trait::async_trait;

/// The secret with the keys. The key in use is its current version, the one before is its
/// previous version (AWS Secrets Manager User Guide, "Secret versions").
pub(super) struct SecretsManagerKeys {
    /// The name or ARN.
    pub(super) id: String,
}

/// Reads the keys as a function does that needs them. Their process keeps them for 5 minutes, so
/// other functions may go on for as long without.
#[async_trait]
impl HealthCheck for SecretsManagerKeys {
    async fn check_health(&self) -> Result<(), StoreError> {
        self.read().await.map(drop)
    }
}

#[async_trait]
impl ReadSecretKeys for SecretsManagerKeys {
    async fn read(&self) -> Result<Vec<Secret>, StoreError> {
        let secrets = secrets_manager().await;
        let mut keys = Vec::new();
        for version in [Version::Current, Version::Previous] {
            let key = secrets.version(&self.id, version).await;
            let key = key.map_err(|error| StoreError::Unavailable(error.to_string()))?;
            keys.extend(key);
        }
        if keys.is_empty() || keys.iter().any(|key| key.len() < SECRET_KEY_MIN) {
            let id = &self.id;
            let why = format!(
                "a version of the secret `{id}` has fewer than {SECRET_KEY_MIN} characters"
            );
            return Err(StoreError::Refused(why));
        }
        Ok(keys.into_iter().map(Secret::new).collect())
    }
}
