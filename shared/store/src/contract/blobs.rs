//! Blobs: bytes under server-made keys.

use super::{Broken, SampleData, Stores};
use a2a_lambda_model::store::{BlobOwner, BlobReader, Measured, StoreError, remove_below};
use a2a_lambda_model::task::{Blob, TaskId, TaskKey};
use bytes::Bytes;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, ReadBuf};

/// The size of the parts in which the S3 store copies an object.
const COPY_PART: usize = 8 * 1024 * 1024;

fn key(sample: &SampleData) -> String {
    format!("v1/contract/{:032x}", sample.number())
}

/// Bytes of any length are read back unchanged, and an unknown key is `None`.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn bytes_are_read_as_they_were_put(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    for length in [0, 1, 70_000] {
        let key = key(sample);
        assert_eq!(stores.blobs.get(&key).await?, None);
        let bytes: Bytes = (0_u8..=250).cycle().take(length).collect();
        stores.blobs.put(&key, bytes.clone()).await?;
        assert_eq!(stores.blobs.get(&key).await?, Some(bytes));
    }
    Ok(())
}

/// A put can be repeated after a lost response.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn the_same_bytes_can_be_put_again(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    let key = key(sample);
    let bytes = Bytes::from_static(b"same");
    stores.blobs.put(&key, bytes.clone()).await?;
    stores.blobs.put(&key, bytes.clone()).await?;
    assert_eq!(stores.blobs.get(&key).await?, Some(bytes));
    Ok(())
}

/// A key keeps its first bytes.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn other_bytes_never_replace_what_is_stored(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    let key = key(sample);
    let bytes = Bytes::from_static(b"first");
    stores.blobs.put(&key, bytes.clone()).await?;
    for other in [
        Bytes::new(),
        Bytes::from_static(b"other"),
        Bytes::from_static(b"longer than it"),
    ] {
        let answer = stores.blobs.put(&key, other).await;
        assert!(matches!(answer, Err(StoreError::Refused(_))), "{answer:?}");
    }
    assert_eq!(stores.blobs.get(&key).await?, Some(bytes));
    Ok(())
}

fn task(sample: &SampleData) -> TaskKey {
    TaskKey::new(&sample.owner, &TaskId::made_of(sample.number()))
}

/// A file of `length` bytes that is read in uneven chunks, and fails at its end if
/// `broken`.
struct Bits {
    given: usize,
    length: usize,
    broken: bool,
}

/// Byte number `place` of every such file.
fn bit(place: usize) -> u8 {
    u8::try_from(place % 251).unwrap_or_default()
}

impl AsyncRead for Bits {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
        space: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        if self.given == self.length && self.broken {
            return Poll::Ready(Err(std::io::Error::other("the file broke off")));
        }
        let bits = (self.length - self.given)
            .min(space.remaining())
            .min(10_007);
        let chunk: Vec<u8> = (self.given..self.given + bits).map(bit).collect();
        space.put_slice(&chunk);
        self.given += bits;
        Poll::Ready(Ok(()))
    }
}

fn bits(length: usize, broken: bool) -> BlobReader {
    Box::pin(Bits {
        given: 0,
        length,
        broken,
    })
}

/// A file of any length is stored whole and measured while it is read. The longest
/// one here takes two parts of a multipart upload.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn a_file_read_in_chunks_is_stored_whole(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    for length in [0, 1, 100_000, 8 * 1024 * 1024, 8 * 1024 * 1024 + 3] {
        let key = key(sample);
        let expected: Bytes = (0..length).map(bit).collect();
        let mut file = bits(length, false);
        let task = task(sample);
        let measured = stores.blobs.put_from(&task, &key, &mut file).await?;
        assert_eq!(measured, Measured::of(&expected));
        let head = stores.blobs.head(&key).await?;
        let owner = Some(BlobOwner::Task(task));
        assert_eq!(head.and_then(|head| head.owner), owner);
        let stored = stores.blobs.get(&key).await?;
        assert!(stored == Some(expected), "{length} bytes came back changed");
    }
    Ok(())
}

/// Nothing is stored under the key of a file that broke off.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn a_file_that_breaks_off_is_not_stored(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    for length in [10, 9 * 1024 * 1024] {
        let key = key(sample);
        let mut file = bits(length, true);
        let answer = stores.blobs.put_from(&task(sample), &key, &mut file).await;
        assert!(matches!(answer, Err(StoreError::Source(_))), "{answer:?}");
        assert_eq!(stores.blobs.get(&key).await?, None);
    }
    Ok(())
}

/// A head shows size and task without the bytes, and the SHA-256 where the store
/// knows it.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn a_head_shows_the_size_and_the_task(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    let (key, task) = (key(sample), task(sample));
    assert_eq!(stores.blobs.head(&key).await?, None);
    let bytes = Bytes::from_static(b"seven..");
    let owner = BlobOwner::Task(task.clone());
    stores.blobs.put_for(&owner, &key, bytes.clone()).await?;
    let head = stores.blobs.head(&key).await?;
    let head = head.ok_or_else(|| StoreError::Corrupt("no head".to_owned()))?;
    assert_eq!((head.size, head.owner), (7, Some(owner)));
    let digest = Measured::of(&bytes).sha256;
    assert!(head.sha256.is_none_or(|reported| reported == digest));
    Ok(())
}

/// A copy has the same bytes and belongs to a task of its own. The longer one here is
/// copied in two parts.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn a_copy_outlives_its_source(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    let owner = task(sample);
    for length in [6, COPY_PART + 3] {
        let (from, to) = (key(sample), key(sample));
        let bytes: Bytes = (0..length).map(bit).collect();
        let from = blob(from, &bytes);
        assert!(!stores.blobs.copy(&owner, &from, &to).await?);
        assert_eq!(stores.blobs.head(&to).await?, None, "nothing is stored");
        let mut file = bits(length, false);
        stores.blobs.put_from(&owner, &from.key, &mut file).await?;
        assert!(stores.blobs.copy(&owner, &from, &to).await?);
        assert!(stores.blobs.copy(&owner, &from, &to).await?);
        stores.blobs.remove(&[from.key]).await?;
        let copied = stores.blobs.get(&to).await?;
        assert!(copied == Some(bytes), "{length} bytes came back changed");
        let head = stores.blobs.head(&to).await?;
        let owner = BlobOwner::Task(owner.clone());
        assert_eq!(head.and_then(|head| head.owner), Some(owner));
    }
    Ok(())
}

fn blob(key: String, bytes: &Bytes) -> Blob {
    let measured = Measured::of(bytes);
    Blob {
        key,
        size: measured.size,
        sha256: measured.sha256,
        upload: None,
    }
}

/// Keys are listed in order, after any key. A removed key is gone, and keys beside it
/// stay.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn keys_below_a_prefix_are_listed_and_removed(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    let blobs = &*stores.blobs;
    let root = format!("v1/contract/{:032x}", sample.number());
    let below = [1, 2, 3, 4, 5].map(|n| format!("{root}/a/{n}"));
    let beside = format!("{root}/ab/1");
    for key in below.iter().chain([&beside]) {
        blobs.put(key, Bytes::from_static(b"x")).await?;
    }
    let prefix = format!("{root}/a/");
    assert_eq!(blobs.keys(&prefix, None, 1000).await?, below);
    let [first, second, third, fourth, fifth] = below.each_ref().map(String::as_str);
    assert_eq!(blobs.keys(&prefix, None, 2).await?, [first, second]);
    let after = blobs.keys(&prefix, Some(second), 2).await?;
    assert_eq!(after, [third, fourth]);
    assert!(blobs.keys(&prefix, Some(fifth), 2).await?.is_empty());
    let gone = [first.to_owned(), format!("{root}/a/none")];
    blobs.remove(&gone).await?;
    assert_eq!(blobs.get(first).await?, None);
    assert_eq!(remove_below(blobs, &prefix).await?, 4);
    assert!(blobs.keys(&prefix, None, 1000).await?.is_empty());
    assert!(blobs.get(&beside).await?.is_some());
    Ok(())
}
