//! Reads a stored file in pieces and checks its size and SHA-256 on the way.

use crate::store::{BlobReader, StoreError};
use crate::task::Blob;
use sha2::{Digest as _, Sha256};
use std::io::{Error, Result};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, ReadBuf};

/// Holds the error of the store if a read failed because of the store.
pub(in crate::engine) type ReadFailure = Arc<Mutex<Option<StoreError>>>;

/// A reader that ends with an error unless its bytes match the pointer. The digest is
/// known only at the end, so earlier bytes have been passed on by then.
pub(super) struct VerifiedReader {
    source: BlobReader,
    blob: Blob,
    hash: Sha256,
    read: u64,
    unread: ReadFailure,
}

impl VerifiedReader {
    /// Reads the bytes of `blob` from `source`.
    pub(super) fn new(source: BlobReader, blob: Blob, unread: ReadFailure) -> Self {
        Self {
            source,
            blob,
            hash: Sha256::new(),
            read: 0,
            unread,
        }
    }

    /// Compares size and digest with the pointer, at the end of the file.
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
            "object `{key}` does not match its pointer"
        )))
    }

    /// Records that the store failed: the stored bytes may still be right.
    fn broken(&self, error: Error) -> Error {
        let why = StoreError::Unavailable(format!("failed to read an object: {error}"));
        *self.unread.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
        error
    }
}

impl AsyncRead for VerifiedReader {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        space: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        // Without space, a read of zero bytes is not the end of the file.
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
