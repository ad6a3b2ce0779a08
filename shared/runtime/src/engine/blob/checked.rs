//! A stored file that is read as it is needed, and checked on its way.

use crate::store::{BlobReader, StoreError};
use crate::task::Blob;
use sha2::{Digest as _, Sha256};
use std::io::{Error, Result};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, ReadBuf};

/// Where it is said why a read broke off.
pub(in crate::engine) type Unread = Arc<Mutex<Option<StoreError>>>;

/// Ends as its pointer says it does, or with an error: the last bytes are
/// given, but no end, unless all of them were the ones the pointer names.
pub(super) struct Checked {
    source: BlobReader,
    blob: Blob,
    hash: Sha256,
    read: u64,
    unread: Unread,
}

impl Checked {
    /// The bytes of `blob`, which `source` gives.
    pub(super) fn new(source: BlobReader, blob: Blob, unread: Unread) -> Self {
        Self {
            source,
            blob,
            hash: Sha256::new(),
            read: 0,
            unread,
        }
    }

    /// Whether these were the right bytes, at their end.
    fn end(&self) -> Result<()> {
        let digest = hex::encode(self.hash.clone().finalize());
        if self.read == self.blob.size && digest == self.blob.sha256 {
            return Ok(());
        }
        Err(self.other())
    }

    fn other(&self) -> Error {
        let key = &self.blob.key;
        Error::other(StoreError::Corrupt(format!(
            "object `{key}` has other bytes"
        )))
    }

    /// The store broke off: that says nothing about the task.
    fn broken(&self, error: Error) -> Error {
        let why = StoreError::Unavailable(format!("an object broke off: {error}"));
        *self.unread.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
        error
    }
}

impl AsyncRead for Checked {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        space: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        if space.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        let before = space.filled().len();
        let given = ready!(self.source.as_mut().poll_read(cx, space));
        given.map_err(|error| self.broken(error))?;
        let bytes = space.filled().get(before..).unwrap_or_default();
        if bytes.is_empty() {
            return Poll::Ready(self.end());
        }
        self.hash.update(bytes);
        self.read += bytes.len() as u64;
        if self.read > self.blob.size {
            return Poll::Ready(Err(self.other()));
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests;
