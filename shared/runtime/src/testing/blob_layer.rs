//! A layer in front of a store of bytes, for tests.

use crate::store::{
    BlobHead, BlobOwner, BlobReader, Blobs, Download, Measured, ReadBlobs, StoreError, UploadTerms,
    UploadUrl,
};
use crate::task::{Blob, TaskKey, Timestamp};
use async_trait::async_trait;
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;

/// What a [`BlobLayer`] does in place of the calls of the store behind it. A method that a test
/// does not write makes the call.
#[async_trait]
pub trait BlobHooks: Send + Sync {
    /// In place of [`ReadBlobs::get`].
    ///
    /// # Errors
    /// As that method.
    async fn get(&self, blobs: &dyn Blobs, key: &str) -> Result<Option<Bytes>, StoreError> {
        blobs.get(key).await
    }

    /// In place of [`ReadBlobs::open`].
    ///
    /// # Errors
    /// As that method.
    async fn open(&self, blobs: &dyn Blobs, key: &str) -> Result<Option<BlobReader>, StoreError> {
        blobs.open(key).await
    }

    /// In place of [`ReadBlobs::head`].
    ///
    /// # Errors
    /// As that method.
    async fn head(&self, blobs: &dyn Blobs, key: &str) -> Result<Option<BlobHead>, StoreError> {
        blobs.head(key).await
    }

    /// In place of [`ReadBlobs::read_url`].
    ///
    /// # Errors
    /// As that method.
    async fn read_url(
        &self,
        blobs: &dyn Blobs,
        download: &Download<'_>,
        now: Timestamp,
        lifetime: Duration,
    ) -> Result<Option<String>, StoreError> {
        blobs.read_url(download, now, lifetime).await
    }

    /// In place of [`Blobs::put`].
    ///
    /// # Errors
    /// As that method.
    async fn put(&self, blobs: &dyn Blobs, key: &str, bytes: Bytes) -> Result<(), StoreError> {
        blobs.put(key, bytes).await
    }

    /// In place of [`Blobs::put_for`].
    ///
    /// # Errors
    /// As that method.
    async fn put_for(
        &self,
        blobs: &dyn Blobs,
        owner: &BlobOwner,
        key: &str,
        bytes: Bytes,
    ) -> Result<(), StoreError> {
        blobs.put_for(owner, key, bytes).await
    }

    /// In place of [`Blobs::put_from`].
    ///
    /// # Errors
    /// As that method.
    async fn put_from(
        &self,
        blobs: &dyn Blobs,
        task: &TaskKey,
        key: &str,
        source: &mut BlobReader,
    ) -> Result<Measured, StoreError> {
        blobs.put_from(task, key, source).await
    }

    /// In place of [`Blobs::copy`].
    ///
    /// # Errors
    /// As that method.
    async fn copy(
        &self,
        blobs: &dyn Blobs,
        task: &TaskKey,
        from: &Blob,
        to: &str,
    ) -> Result<bool, StoreError> {
        blobs.copy(task, from, to).await
    }

    /// In place of [`Blobs::keys`].
    ///
    /// # Errors
    /// As that method.
    async fn keys(
        &self,
        blobs: &dyn Blobs,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<String>, StoreError> {
        blobs.keys(prefix, after, limit).await
    }

    /// In place of [`Blobs::remove`].
    ///
    /// # Errors
    /// As that method.
    async fn remove(&self, blobs: &dyn Blobs, keys: &[String]) -> Result<(), StoreError> {
        blobs.remove(keys).await
    }

    /// In place of [`Blobs::upload_url`].
    ///
    /// # Errors
    /// As that method.
    async fn upload_url(
        &self,
        blobs: &dyn Blobs,
        terms: &UploadTerms<'_>,
        now: Timestamp,
        lifetime: Duration,
    ) -> Result<Option<UploadUrl>, StoreError> {
        blobs.upload_url(terms, now, lifetime).await
    }
}

/// A store of bytes with hooks in front of another.
#[derive(Clone)]
#[expect(
    missing_debug_implementations,
    reason = "a store of bytes does not have to implement it"
)]
pub struct BlobLayer<H> {
    /// The store behind.
    pub blobs: Arc<dyn Blobs>,
    /// The hooks.
    pub hooks: H,
}

impl<H: BlobHooks> BlobLayer<H> {
    /// `hooks` in front of `blobs`.
    #[must_use]
    pub fn new(blobs: Arc<dyn Blobs>, hooks: H) -> Arc<Self> {
        Arc::new(Self { blobs, hooks })
    }
}

#[async_trait]
impl<H: BlobHooks> ReadBlobs for BlobLayer<H> {
    async fn get(&self, key: &str) -> Result<Option<Bytes>, StoreError> {
        self.hooks.get(&*self.blobs, key).await
    }

    async fn open(&self, key: &str) -> Result<Option<BlobReader>, StoreError> {
        self.hooks.open(&*self.blobs, key).await
    }

    async fn head(&self, key: &str) -> Result<Option<BlobHead>, StoreError> {
        self.hooks.head(&*self.blobs, key).await
    }

    async fn read_url(
        &self,
        download: &Download<'_>,
        now: Timestamp,
        lifetime: Duration,
    ) -> Result<Option<String>, StoreError> {
        self.hooks
            .read_url(&*self.blobs, download, now, lifetime)
            .await
    }
}

#[async_trait]
impl<H: BlobHooks> Blobs for BlobLayer<H> {
    async fn put(&self, key: &str, bytes: Bytes) -> Result<(), StoreError> {
        self.hooks.put(&*self.blobs, key, bytes).await
    }

    async fn put_for(&self, owner: &BlobOwner, key: &str, bytes: Bytes) -> Result<(), StoreError> {
        self.hooks.put_for(&*self.blobs, owner, key, bytes).await
    }

    async fn put_from(
        &self,
        task: &TaskKey,
        key: &str,
        source: &mut BlobReader,
    ) -> Result<Measured, StoreError> {
        self.hooks.put_from(&*self.blobs, task, key, source).await
    }

    async fn copy(&self, task: &TaskKey, from: &Blob, to: &str) -> Result<bool, StoreError> {
        self.hooks.copy(&*self.blobs, task, from, to).await
    }

    async fn keys(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<String>, StoreError> {
        self.hooks.keys(&*self.blobs, prefix, after, limit).await
    }

    async fn remove(&self, keys: &[String]) -> Result<(), StoreError> {
        self.hooks.remove(&*self.blobs, keys).await
    }

    async fn upload_url(
        &self,
        terms: &UploadTerms<'_>,
        now: Timestamp,
        lifetime: Duration,
    ) -> Result<Option<UploadUrl>, StoreError> {
        self.hooks
            .upload_url(&*self.blobs, terms, now, lifetime)
            .await
    }
}
