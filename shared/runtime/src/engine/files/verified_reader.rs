//! Reads a stored file in pieces and checks its size and SHA-256 on the way.

use crate::engine::turn_break::{BreakSignal, TurnBreak};
use crate::store::{BlobReader, StoreError};
use crate::task::Blob;
use sha2::{Digest as _, Sha256};
use std::io::{Error, Result};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, ReadBuf};

/// A reader that ends with an error unless its bytes match the pointer. The digest is
/// known only at the end, so earlier bytes have been passed on by then.
pub(super) struct VerifiedReader {
    source: BlobReader,
    blob: Blob,
    hash: Sha256,
    read: u64,
    /// Ends the turn if the store fails.
    signal: Arc<BreakSignal>,
}

impl VerifiedReader {
    /// Reads the bytes of `blob` from `source`.
    pub(super) fn new(source: BlobReader, blob: Blob, signal: Arc<BreakSignal>) -> Self {
        Self {
            source,
            blob,
            hash: Sha256::new(),
            read: 0,
            signal,
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

    /// Ends the turn, since the store failed: the stored bytes may still be right.
    fn end_turn(&self, error: &Error) {
        let why = StoreError::Unavailable(format!("failed to read an object: {error}"));
        self.signal.set(TurnBreak::Outage(why));
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
        let result = ready!(self.source.as_mut().poll_read(cx, space));
        if let Err(error) = result {
            self.end_turn(&error);
            // The skill must not see the error: the turn ends and runs again.
            return Poll::Pending;
        }
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
