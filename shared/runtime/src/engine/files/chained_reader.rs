//! A reader that continues bytes which were read already.

use crate::store::BlobReader;
use bytes::Bytes;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, ReadBuf};

/// A reader of a file that was read in part: the part first, then the rest.
pub(in crate::engine) struct ChainedReader {
    /// The bytes already read.
    pub(in crate::engine) head: Bytes,
    /// The rest of the file.
    pub(in crate::engine) rest: BlobReader,
}

impl AsyncRead for ChainedReader {
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
