//! A reader that continues bytes which were read already.

use crate::store::BlobReader;
use bytes::Bytes;
use std::io::ErrorKind;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, ReadBuf};

/// A reader of a file that was read in part: the part first, then the rest.
pub(in crate::engine) struct ChainedReader {
    /// The bytes already read.
    pub(in crate::engine) head: Bytes,
    /// The rest of the file.
    pub(in crate::engine) rest: BlobReader,
    /// How many more bytes the file may have. After them it fails with `FileTooLarge`.
    pub(in crate::engine) remaining: usize,
}

impl AsyncRead for ChainedReader {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        space: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = space.filled().len();
        if self.head.is_empty() {
            ready!(self.rest.as_mut().poll_read(cx, space))?;
        } else {
            let count = self.head.len().min(space.remaining());
            space.put_slice(&self.head.split_to(count));
        }
        match self.remaining.checked_sub(space.filled().len() - before) {
            Some(remaining) => self.remaining = remaining,
            None => return Poll::Ready(Err(ErrorKind::FileTooLarge.into())),
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::StoreError;
    use a2a_lambda_model::store::read_up_to;

    async fn read(left: usize) -> Result<Bytes, StoreError> {
        let mut reader: BlobReader = Box::pin(ChainedReader {
            head: Bytes::from_static(b"head, "),
            rest: Box::pin(std::io::Cursor::new("rest")),
            remaining: left,
        });
        read_up_to(&mut reader, usize::MAX).await
    }

    #[tokio::test]
    async fn file_is_read_up_to_its_limit_and_not_a_byte_more() {
        assert_eq!(read(10).await.unwrap(), "head, rest");
        for left in [0, 5, 9] {
            let Err(StoreError::Source(error)) = read(left).await else {
                panic!("{left} bytes are too few")
            };
            assert_eq!(error.kind(), ErrorKind::FileTooLarge);
        }
    }
}
