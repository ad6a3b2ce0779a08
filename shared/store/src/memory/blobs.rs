//! Bytes in memory.

use a2a_lambda_model::store::Measured;
use a2a_lambda_model::store::{
    BlobHead, BlobOwner, Blobs, Download, ReadBlobs, StoreError, UploadTerms, UploadUrl,
};
use a2a_lambda_model::task::Timestamp;
use async_trait::async_trait;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Bytes in memory.
#[derive(Debug, Default)]
pub struct MemoryBlobs(Mutex<BTreeMap<String, StoredBlob>>);

/// Stored bytes, and what they belong to.
type StoredBlob = (Bytes, Option<BlobOwner>);

impl MemoryBlobs {
    fn blobs(&self) -> MutexGuard<'_, BTreeMap<String, StoredBlob>> {
        // Nothing that can panic runs between the changes under the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep(&self, key: &str, bytes: Bytes, owner: Option<BlobOwner>) -> Result<(), StoreError> {
        let mut blobs = self.blobs();
        if blobs.get(key).is_some_and(|(other, _)| *other != bytes) {
            let why = format!("other bytes are stored under `{key}`");
            return Err(StoreError::Refused(why));
        }
        blobs.entry(key.to_owned()).or_insert((bytes, owner));
        Ok(())
    }
}

#[async_trait]
impl ReadBlobs for MemoryBlobs {
    async fn get(&self, key: &str) -> Result<Option<Bytes>, StoreError> {
        Ok(self.blobs().get(key).map(|(bytes, _)| bytes.clone()))
    }

    async fn head(&self, key: &str) -> Result<Option<BlobHead>, StoreError> {
        Ok(self.blobs().get(key).map(|(bytes, owner)| {
            let digest = Measured::of(bytes);
            BlobHead {
                size: digest.size,
                sha256: Some(digest.sha256),
                owner: owner.clone(),
            }
        }))
    }

    async fn read_url(
        &self,
        _: &Download<'_>,
        _: Timestamp,
        _: Duration,
    ) -> Result<Option<String>, StoreError> {
        Ok(None)
    }
}

#[async_trait]
impl Blobs for MemoryBlobs {
    async fn put(&self, key: &str, bytes: Bytes) -> Result<(), StoreError> {
        self.keep(key, bytes, None)
    }

    async fn put_for(&self, owner: &BlobOwner, key: &str, bytes: Bytes) -> Result<(), StoreError> {
        self.keep(key, bytes, Some(owner.clone()))
    }

    async fn keys(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<String>, StoreError> {
        let blobs = self.blobs();
        let from = after.filter(|after| *after >= prefix);
        let start = from.map_or(Bound::Included(prefix), Bound::Excluded);
        let keys = blobs.range::<str, _>((start, Bound::Unbounded));
        Ok(keys
            .map(|(key, _)| key)
            .take_while(|key| key.starts_with(prefix))
            .take(limit)
            .cloned()
            .collect())
    }

    async fn remove(&self, keys: &[String]) -> Result<(), StoreError> {
        let mut blobs = self.blobs();
        for key in keys {
            blobs.remove(key);
        }
        Ok(())
    }

    async fn upload_url(
        &self,
        _: &UploadTerms<'_>,
        _: Timestamp,
        _: Duration,
    ) -> Result<Option<UploadUrl>, StoreError> {
        Ok(None)
    }
}
