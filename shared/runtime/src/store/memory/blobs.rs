//! Bytes in memory.

use super::MemoryStore;
use super::tables::{StoredBlob, Tables};
use crate::store::Measured;
use crate::store::{BlobHead, Blobs, Download, ReadBlobs, StoreError, UploadTerms, UploadUrl};
use crate::task::{TaskKey, ThreadKey, Timestamp};
use async_trait::async_trait;
use bytes::Bytes;
use std::ops::Bound;
use std::time::Duration;

impl Tables {
    fn keep(&mut self, key: &str, kept: StoredBlob) -> Result<(), StoreError> {
        match self.blobs.get(key) {
            Some(stored) if stored.bytes == kept.bytes => Ok(()),
            Some(_) => Err(StoreError::Refused(format!(
                "other bytes are stored under `{key}`"
            ))),
            None => {
                self.blobs.insert(key.to_owned(), kept);
                Ok(())
            }
        }
    }
}

#[async_trait]
impl ReadBlobs for MemoryStore {
    async fn get(&self, key: &str) -> Result<Option<Bytes>, StoreError> {
        Ok(self.tables().blobs.get(key).map(|kept| kept.bytes.clone()))
    }

    async fn head(&self, key: &str) -> Result<Option<BlobHead>, StoreError> {
        let tables = self.tables();
        Ok(tables.blobs.get(key).map(|kept| {
            let measured = Measured::of(&kept.bytes);
            BlobHead {
                size: measured.size,
                sha256: Some(measured.sha256),
                task: kept.task.clone(),
                thread: kept.thread.clone(),
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
impl Blobs for MemoryStore {
    async fn put(&self, key: &str, bytes: Bytes) -> Result<(), StoreError> {
        self.tables().keep(key, StoredBlob::of(bytes))
    }

    async fn put_for(&self, task: &TaskKey, key: &str, bytes: Bytes) -> Result<(), StoreError> {
        let task = Some(task.clone());
        let kept = StoredBlob {
            task,
            ..StoredBlob::of(bytes)
        };
        self.tables().keep(key, kept)
    }

    async fn put_for_thread(
        &self,
        thread: &ThreadKey,
        key: &str,
        bytes: Bytes,
    ) -> Result<(), StoreError> {
        let thread = Some(thread.clone());
        let kept = StoredBlob {
            thread,
            ..StoredBlob::of(bytes)
        };
        self.tables().keep(key, kept)
    }

    async fn keys(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<String>, StoreError> {
        let tables = self.tables();
        let from = after.filter(|after| *after >= prefix);
        let start = from.map_or(Bound::Included(prefix), Bound::Excluded);
        let keys = tables.blobs.range::<str, _>((start, Bound::Unbounded));
        Ok(keys
            .map(|(key, _)| key)
            .take_while(|key| key.starts_with(prefix))
            .take(limit)
            .cloned()
            .collect())
    }

    async fn remove(&self, keys: &[String]) -> Result<(), StoreError> {
        let mut tables = self.tables();
        for key in keys {
            tables.blobs.remove(key);
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
