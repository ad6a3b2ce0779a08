//! Defines the traits of a store for bytes under server-made keys.
//!
//! An implementation has to put, get, list, remove and make URLs. The other methods have
//! defaults on top of put and get. With those defaults a store holds each file whole in
//! memory while it moves the file.

use super::StoreError;
use crate::task::{Blob, TaskKey, ThreadKey, Timestamp};
use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use sha2::{Digest as _, Sha256};
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;
use tokio::io::{AsyncRead, ReadBuf};

/// Bytes that are read as they are needed.
pub type BlobReader = Pin<Box<dyn AsyncRead + Send>>;

/// Objects that one response reads at the same time. Most responses need no second round,
/// and a small function has enough sockets and memory for 16.
pub const OBJECTS_AT_ONCE: usize = 16;

/// Bytes of one read from a reader.
const STRIDE: usize = 64 * 1024;
/// Keys in one call of [`Blobs::remove`].
const REMOVED: usize = 1000;

/// The properties of stored bytes, without their content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlobHead {
    /// Their length.
    pub size: u64,
    /// Their SHA-256 in lower-case hex, if the store knows it.
    pub sha256: Option<String>,
    /// What they were stored for.
    pub owner: Option<BlobOwner>,
}

/// Length and digest of bytes that were measured while they were stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Measured {
    /// Their length.
    pub size: u64,
    /// Their SHA-256 in lower-case hex.
    pub sha256: String,
}

impl Measured {
    /// Length and digest of `bytes`.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self {
            size: bytes.len() as u64,
            sha256: hex::encode(Sha256::digest(bytes)),
        }
    }
}

/// How a URL delivers stored bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Download<'a> {
    /// Their key.
    pub key: &'a str,
    /// The `Content-Type` of the response.
    pub content_type: &'a str,
    /// The `Content-Disposition` of the response.
    pub disposition: &'a str,
}

/// What a URL allows to store: exactly these bytes, once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UploadTerms<'a> {
    /// Their key.
    pub key: &'a str,
    /// Their exact length.
    pub size: u64,
    /// Their SHA-256 in lower-case hex.
    pub sha256: &'a str,
}

/// A URL for one upload.
#[derive(Clone, PartialEq, Eq)]
pub struct UploadUrl {
    /// The URL for the PUT. It is a credential: never store it, never log it.
    pub url: String,
    /// The headers that the client has to send; the signature covers them.
    pub headers: Vec<(String, String)>,
}

impl fmt::Debug for UploadUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UploadUrl")
            .field("headers", &self.headers)
            .finish_non_exhaustive()
    }
}

/// Reading bytes under server-made keys.
#[async_trait]
pub trait ReadBlobs: Send + Sync {
    /// The bytes under `key`.
    ///
    /// # Errors
    /// [`StoreError`] when the store does not answer.
    async fn get(&self, key: &str) -> Result<Option<Bytes>, StoreError>;

    /// A reader of the bytes under `key`, which fetches them as they are needed.
    ///
    /// # Errors
    /// [`StoreError`] when the store does not answer.
    async fn open(&self, key: &str) -> Result<Option<BlobReader>, StoreError> {
        let bytes = self.get(key).await?;
        Ok(bytes.map(|bytes| -> BlobReader { Box::pin(std::io::Cursor::new(bytes)) }))
    }

    /// The properties of the bytes under `key`.
    ///
    /// # Errors
    /// [`StoreError`] when the store does not answer.
    async fn head(&self, key: &str) -> Result<Option<BlobHead>, StoreError> {
        let bytes = self.get(key).await?;
        Ok(bytes.map(|bytes| {
            let Measured { size, sha256 } = Measured::of(&bytes);
            BlobHead {
                size,
                sha256: Some(sha256),
                owner: None,
            }
        }))
    }

    /// A URL that lets its holder read the bytes, for `lifetime` from `now`; `None` if the
    /// store has no URLs. The store signs it without a request.
    ///
    /// # Errors
    /// [`StoreError`] when the URL cannot be signed.
    async fn read_url(
        &self,
        download: &Download<'_>,
        now: Timestamp,
        lifetime: Duration,
    ) -> Result<Option<String>, StoreError>;
}

/// What stored bytes belong to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BlobOwner {
    /// A task.
    Task(TaskKey),
    /// A thread.
    Thread(ThreadKey),
}

/// A store for bytes under server-made keys.
#[async_trait]
pub trait Blobs: ReadBlobs {
    /// Stores `bytes` under a new key. A key is never reused. If the same bytes are stored
    /// there, from an earlier attempt of our own, the call succeeds.
    ///
    /// # Errors
    /// [`StoreError`] when the store does not answer or holds other bytes under `key`.
    async fn put(&self, key: &str, bytes: Bytes) -> Result<(), StoreError>;

    /// [`Blobs::put`], with a note of the owner. The sweep checks by this note whether the bytes
    /// are still in use.
    ///
    /// # Errors
    /// As [`Blobs::put`].
    async fn put_for(&self, owner: &BlobOwner, key: &str, bytes: Bytes) -> Result<(), StoreError> {
        let _no_notes = owner;
        self.put(key, bytes).await
    }

    /// Stores the bytes of `source` up to its end, and measures them. The key holds all of
    /// the bytes or nothing.
    ///
    /// # Errors
    /// [`StoreError`] as [`Blobs::put`], and [`StoreError::Source`] when
    /// `source` fails.
    async fn put_from(
        &self,
        task: &TaskKey,
        key: &str,
        source: &mut BlobReader,
    ) -> Result<Measured, StoreError> {
        let bytes = read_up_to(source, usize::MAX).await?;
        let digest = Measured::of(&bytes);
        let owner = BlobOwner::Task(task.clone());
        self.put_for(&owner, key, bytes).await?;
        Ok(digest)
    }

    /// Copies the bytes of `from` to the new key `to`; `false` if `from` does not exist. The
    /// rules of [`Blobs::put`] hold for `to`.
    ///
    /// # Errors
    /// As [`Blobs::put`].
    async fn copy(&self, task: &TaskKey, from: &Blob, to: &str) -> Result<bool, StoreError> {
        let Some(bytes) = self.get(&from.key).await? else {
            return Ok(false);
        };
        let owner = BlobOwner::Task(task.clone());
        self.put_for(&owner, to, bytes).await?;
        Ok(true)
    }

    /// Up to `limit` keys (at most 1000) that begin with `prefix`, in order, after the key
    /// `after`. Fewer than `limit` keys means that there are no more.
    ///
    /// # Errors
    /// [`StoreError`] when the store does not answer.
    async fn keys(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<String>, StoreError>;

    /// Removes the bytes under these keys, at most 1000. A key that does not exist is not an
    /// error.
    ///
    /// # Errors
    /// [`StoreError`] when the store does not answer.
    async fn remove(&self, keys: &[String]) -> Result<(), StoreError>;

    /// A URL that lets its holder store exactly the bytes of `terms`, once, for `lifetime`
    /// from `now`; `None` if the store has no URLs.
    ///
    /// # Errors
    /// [`StoreError`] when the URL cannot be signed.
    async fn upload_url(
        &self,
        terms: &UploadTerms<'_>,
        now: Timestamp,
        lifetime: Duration,
    ) -> Result<Option<UploadUrl>, StoreError>;
}

/// Removes everything below `prefix`, which ends with a `/`, and returns how many keys it
/// removed. The call can be repeated after an error.
///
/// # Errors
/// As [`Blobs::keys`] and [`Blobs::remove`].
pub async fn remove_below(blobs: &dyn Blobs, prefix: &str) -> Result<usize, StoreError> {
    let mut count = 0;
    loop {
        let keys = blobs.keys(prefix, None, REMOVED).await?;
        if keys.is_empty() {
            return Ok(count);
        }
        blobs.remove(&keys).await?;
        count += keys.len();
    }
}

/// Reads from `source` until `limit` bytes are there or it ends.
///
/// # Errors
/// [`StoreError::Source`] when `source` fails.
pub async fn read_up_to(source: &mut BlobReader, limit: usize) -> Result<Bytes, StoreError> {
    // A limited buffer is usually filled. Without a limit the size is unknown.
    let mut bytes = BytesMut::with_capacity(if limit == usize::MAX { STRIDE } else { limit });
    let mut stride = vec![0; STRIDE];
    while bytes.len() < limit {
        let space_len = stride.len().min(limit - bytes.len());
        let Some(space) = stride.get_mut(..space_len) else {
            break;
        };
        let mut space = ReadBuf::new(space);
        poll_fn(|cx| source.as_mut().poll_read(cx, &mut space))
            .await
            .map_err(StoreError::Source)?;
        if space.filled().is_empty() {
            break;
        }
        bytes.extend_from_slice(space.filled());
    }
    Ok(bytes.freeze())
}

/// Length and digest of the rest of `source`.
///
/// # Errors
/// As [`read_up_to`].
pub async fn measured_to_end(source: &mut BlobReader) -> Result<Measured, StoreError> {
    let (mut hash, mut size) = (Sha256::new(), 0);
    loop {
        let stride = read_up_to(source, STRIDE).await?;
        if stride.is_empty() {
            break;
        }
        hash.update(&stride);
        size += stride.len() as u64;
    }
    Ok(Measured {
        size,
        sha256: hex::encode(hash.finalize()),
    })
}
