use super::*;
use crate::store::Measured;
use a2a_lambda_model::store::read_up_to;
use a2a_lambda_rows::each_row_async;
use bytes::Bytes;
use futures::FutureExt as _;

fn checked(named: &'static [u8], stored: BlobReader) -> (BlobReader, Arc<BreakSignal>) {
    let measured = Measured::of(named);
    let blob = Blob {
        key: "k".to_owned(),
        size: measured.size,
        sha256: measured.sha256,
        upload: None,
    };
    let signal = Arc::<BreakSignal>::default();
    let reader = VerifiedReader::new(stored, blob, signal.clone());
    (Box::pin(reader), signal)
}

async fn read(named: &'static [u8], stored: &'static [u8]) -> Result<Bytes> {
    let (mut reader, signal) = checked(named, Box::pin(std::io::Cursor::new(stored)));
    let read = read_up_to(&mut reader, usize::MAX).await;
    assert!(signal.wait().now_or_never().is_none(), "the store failed");
    read.map_err(Error::other)
}

#[tokio::test]
async fn a_file_is_read_to_its_end() {
    for bytes in [&b""[..], b"bytes", &[7; 200_000]] {
        assert_eq!(read(bytes, bytes).await.unwrap(), bytes);
    }
}

#[tokio::test]
async fn read_fails_at_the_end_if_the_bytes_differ() {
    let others: [&[u8]; 4] = [b"", b"byte", b"bytex", b"bytes!"];
    each_row_async(others, async |other| {
        let error = read(b"bytes", other).await.unwrap_err();
        assert!(error.to_string().contains("does not match"), "{error}");
    })
    .await;
}

/// A store that fails in the middle of a file.
struct Away;

impl AsyncRead for Away {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        _: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        Poll::Ready(Err(Error::other("gone")))
    }
}

#[tokio::test]
async fn store_failure_during_a_read_ends_the_turn_and_never_returns() {
    let (mut reader, signal) = checked(b"bytes", Box::pin(Away));
    assert!(read_up_to(&mut reader, 9).now_or_never().is_none());
    let reason = signal.wait().await;
    let is_outage = matches!(reason, TurnBreak::Outage(StoreError::Unavailable(_)));
    assert!(is_outage, "{reason:?}");
}

#[tokio::test]
async fn read_of_a_longer_file_stops_at_the_pointers_size() {
    use tokio::io::AsyncReadExt as _;
    let long = tokio::io::repeat(7).take(1_000_000);
    let (mut reader, _) = checked(b"bytes", Box::pin(long));
    let (mut given, mut space) = (0, [0; 4]);
    let error = loop {
        match reader.read(&mut space).await {
            Ok(bytes) => given += bytes,
            Err(error) => break error,
        }
    };
    assert!(error.to_string().contains("does not match"), "{error}");
    assert!(given <= 5, "{given} bytes");
}
