//! Bytes under server-made keys: what every store of them promises.
//!
//! A store has to put and get. The other calls have honest defaults on top of
//! these two, for an author's own store: it then holds a file whole in memory
//! while it moves it, gives no URLs, and cleans nothing up.

use super::StoreError;
use crate::task::{Blob, TaskKey, ThreadKey, Timestamp};
use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use sha2::{Digest as _, Sha256};
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, ReadBuf};

/// Bytes that are read as they are needed.
pub type BlobReader = Pin<Box<dyn AsyncRead + Send>>;

/// Objects that one answer reads at the same time: as many as make one wave of
/// most answers, and no more than a small function has sockets and memory for.
pub(crate) const OBJECTS_AT_ONCE: usize = 16;

/// Bytes asked of a reader at once.
const STRIDE: usize = 64 * 1024;
/// Keys removed at a time.
const REMOVED: usize = 1000;

/// What is known of stored bytes without reading them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlobHead {
    /// Their length.
    pub size: u64,
    /// Their SHA-256 in lower-case hex, where the store knows it.
    pub sha256: Option<String>,
    /// The task they were stored for.
    pub task: Option<TaskKey>,
    /// The conversation they were stored for.
    pub thread: Option<ThreadKey>,
}

/// Length and digest of bytes that were stored as they came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Measured {
    /// Their length.
    pub size: u64,
    /// Their SHA-256 in lower-case hex.
    pub sha256: String,
}

/// How stored bytes are handed to whoever holds a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Download<'a> {
    /// Where they are.
    pub key: &'a str,
    /// The `Content-Type` they come with.
    pub content_type: &'a str,
    /// The `Content-Disposition` they come with.
    pub disposition: &'a str,
}

/// What may be put by a URL: these bytes, once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UploadTerms<'a> {
    /// Where they go.
    pub key: &'a str,
    /// Their exact length.
    pub size: u64,
    /// Their SHA-256 in lower-case hex.
    pub sha256: &'a str,
}

/// A URL that takes one upload.
#[derive(Clone, PartialEq, Eq)]
pub struct UploadUrl {
    /// Where to PUT. It is a credential: never stored, never logged.
    pub url: String,
    /// The headers that have to be sent along, signed with the URL.
    pub headers: Vec<(String, String)>,
}

impl fmt::Debug for UploadUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UploadUrl")
            .field("headers", &self.headers)
            .finish_non_exhaustive()
    }
}

/// Bytes under server-made keys.
#[async_trait]
pub trait Blobs: Send + Sync {
    /// Stores `bytes` under a new key. The key is never reused: finding the
    /// same bytes there (our own earlier try) is success.
    ///
    /// # Errors
    /// [`StoreError`] when the store does not answer or other bytes stand there.
    async fn put(&self, key: &str, bytes: Bytes) -> Result<(), StoreError>;

    /// The bytes under `key`.
    ///
    /// # Errors
    /// [`StoreError`] when the store does not answer.
    async fn get(&self, key: &str) -> Result<Option<Bytes>, StoreError>;

    /// [`Blobs::put`], with a note of the task the bytes belong to, by which a
    /// sweep finds out whether anyone still needs them.
    ///
    /// # Errors
    /// As [`Blobs::put`].
    async fn put_for(&self, task: &TaskKey, key: &str, bytes: Bytes) -> Result<(), StoreError> {
        let _no_notes = task;
        self.put(key, bytes).await
    }

    /// [`Blobs::put`], with a note of the conversation the bytes belong to.
    ///
    /// # Errors
    /// As [`Blobs::put`].
    async fn put_for_thread(
        &self,
        thread: &ThreadKey,
        key: &str,
        bytes: Bytes,
    ) -> Result<(), StoreError> {
        let _no_notes = thread;
        self.put(key, bytes).await
    }

    /// Stores what `source` gives until its end, and measures it. Nothing
    /// stands under the key unless all of it was stored.
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
        let measured = measured(&bytes);
        self.put_for(task, key, bytes).await?;
        Ok(measured)
    }

    /// The bytes under `key`, read as they are needed.
    ///
    /// # Errors
    /// [`StoreError`] when the store does not answer.
    async fn open(&self, key: &str) -> Result<Option<BlobReader>, StoreError> {
        let found = self.get(key).await?;
        Ok(found.map(|bytes| -> BlobReader { Box::pin(std::io::Cursor::new(bytes)) }))
    }

    /// What is known of the bytes under `key`.
    ///
    /// # Errors
    /// [`StoreError`] when the store does not answer.
    async fn head(&self, key: &str) -> Result<Option<BlobHead>, StoreError> {
        let found = self.get(key).await?;
        Ok(found.map(|bytes| {
            let Measured { size, sha256 } = measured(&bytes);
            BlobHead {
                size,
                sha256: Some(sha256),
                task: None,
                thread: None,
            }
        }))
    }

    /// Copies the bytes of `from` to the new key `to`; `false` if there are
    /// none. The same rule as for a put holds for `to`.
    ///
    /// # Errors
    /// As [`Blobs::put`].
    async fn copy(&self, task: &TaskKey, from: &Blob, to: &str) -> Result<bool, StoreError> {
        let Some(bytes) = self.get(&from.key).await? else {
            return Ok(false);
        };
        self.put_for(task, to, bytes).await?;
        Ok(true)
    }

    /// Up to `limit` (at most 1000) keys that begin with `prefix`, in order,
    /// after the key `after`. Fewer than `limit` are the last ones.
    ///
    /// # Errors
    /// [`StoreError`] when the store does not answer.
    async fn keys(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<String>, StoreError>;

    /// Removes the bytes under these keys, at most 1000; one that is not there
    /// is no error.
    ///
    /// # Errors
    /// [`StoreError`] when the store does not answer.
    async fn remove(&self, keys: &[String]) -> Result<(), StoreError>;

    /// A URL by which whoever holds it reads the bytes, for `lifetime` from
    /// `now`; `None` if the store has no URLs. Making one asks nobody.
    ///
    /// # Errors
    /// [`StoreError`] when the URL cannot be signed.
    async fn read_url(
        &self,
        download: &Download<'_>,
        now: Timestamp,
        lifetime: Duration,
    ) -> Result<Option<String>, StoreError>;

    /// A URL by which whoever holds it stores exactly the bytes of `terms`,
    /// once, for `lifetime` from `now`; `None` if the store has no URLs.
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

/// Removes everything below `prefix`, which ends with a `/`. It can be called
/// again after it broke off.
///
/// # Errors
/// As [`Blobs::keys`] and [`Blobs::remove`].
pub async fn remove_below(blobs: &dyn Blobs, prefix: &str) -> Result<usize, StoreError> {
    let mut removed = 0;
    loop {
        let keys = blobs.keys(prefix, None, REMOVED).await?;
        if keys.is_empty() {
            return Ok(removed);
        }
        blobs.remove(&keys).await?;
        removed += keys.len();
    }
}

/// What was read of a file already, and the rest of it.
pub(crate) struct Chained {
    /// What was read.
    pub(crate) head: Bytes,
    /// What follows it.
    pub(crate) rest: BlobReader,
}

impl AsyncRead for Chained {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        space: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        if self.head.is_empty() {
            return self.rest.as_mut().poll_read(cx, space);
        }
        let given = self.head.len().min(space.remaining());
        space.put_slice(&self.head.split_to(given));
        Poll::Ready(Ok(()))
    }
}

/// Reads from `source` until `limit` bytes are there or it ends.
pub(crate) async fn read_up_to(source: &mut BlobReader, limit: usize) -> Result<Bytes, StoreError> {
    // A limit is a buffer that will be filled; without one nothing is known.
    let mut bytes = BytesMut::with_capacity(if limit == usize::MAX { STRIDE } else { limit });
    let mut stride = vec![0; STRIDE];
    while bytes.len() < limit {
        let room = stride.len().min(limit - bytes.len());
        let Some(space) = stride.get_mut(..room) else {
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

/// Length and digest of what `source` still gives.
pub(crate) async fn measured_to_end(source: &mut BlobReader) -> Result<Measured, StoreError> {
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

/// Length and digest of bytes.
pub(crate) fn measured(bytes: &[u8]) -> Measured {
    Measured {
        size: bytes.len() as u64,
        sha256: hex::encode(Sha256::digest(bytes)),
    }
}
