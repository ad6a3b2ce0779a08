//! The API keys in memory.

use super::MemoryStore;
use crate::store::StoreError;
use crate::store::api_keys::{ApiKeyId, ApiKeyRecord, KeyCheck, ReadApiKeys, WriteApiKeys};
use crate::task::TenantId;
use async_trait::async_trait;
use std::collections::btree_map::Entry;

#[async_trait]
impl ReadApiKeys for MemoryStore {
    async fn api_key(&self, id: &ApiKeyId) -> Result<Option<ApiKeyRecord>, StoreError> {
        Ok(self.tables().api_keys.get(id).cloned())
    }

    async fn key_check(&self) -> Result<Option<KeyCheck>, StoreError> {
        Ok(self.tables().key_check.clone())
    }
}

#[async_trait]
impl WriteApiKeys for MemoryStore {
    async fn api_keys(&self, tenant: Option<&TenantId>) -> Result<Vec<ApiKeyRecord>, StoreError> {
        let tables = self.tables();
        let wanted = |key: &&ApiKeyRecord| tenant.is_none_or(|it| key.owner.tenant == *it);
        Ok(tables.api_keys.values().filter(wanted).cloned().collect())
    }

    async fn create_api_key(&self, key: &ApiKeyRecord) -> Result<bool, StoreError> {
        Ok(match self.tables().api_keys.entry(key.id.clone()) {
            Entry::Occupied(known) => known.get() == key,
            Entry::Vacant(free) => {
                free.insert(key.clone());
                true
            }
        })
    }

    async fn create_check(&self, check: &KeyCheck) -> Result<(), StoreError> {
        self.tables().key_check.get_or_insert_with(|| check.clone());
        Ok(())
    }

    async fn withdraw_api_key(&self, id: &ApiKeyId) -> Result<bool, StoreError> {
        Ok(self.tables().api_keys.remove(id).is_some())
    }
}
