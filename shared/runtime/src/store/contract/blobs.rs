//! Bytes under server-made keys.

use super::{Broken, Stores, World};
use crate::store::StoreError;
use bytes::Bytes;

fn key(world: &World) -> String {
    format!("v1/contract/{:032x}", world.number())
}

/// Every length comes back byte by byte, and an unknown key is nothing.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn bytes_are_read_as_they_were_put(
    stores: &Stores<'_>,
    world: &World,
) -> Result<(), Broken> {
    for length in [0, 1, 70_000] {
        let key = key(world);
        assert_eq!(stores.blobs.get(&key).await?, None);
        let bytes: Bytes = (0_u8..=250).cycle().take(length).collect();
        stores.blobs.put(&key, bytes.clone()).await?;
        assert_eq!(stores.blobs.get(&key).await?, Some(bytes));
    }
    Ok(())
}

/// A put whose reply was lost is put again.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn the_same_bytes_can_be_put_again(
    stores: &Stores<'_>,
    world: &World,
) -> Result<(), Broken> {
    let key = key(world);
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
    stores: &Stores<'_>,
    world: &World,
) -> Result<(), Broken> {
    let key = key(world);
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
