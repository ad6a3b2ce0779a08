//! Content that is too large for an item: an object in the bucket.
//!
//! The object comes first, under a key that no other write uses; the item names
//! it with its size and hash, which are checked when it is read. What a write
//! leaves behind that did not become the task's is nobody's, and is cleaned up.

use super::item::{self, Item};
use super::{DynamoStore, key};
use crate::store::stored::ITEM_MAX;
use crate::store::{StoreError, ThreadWrite};
use crate::task::TaskRecord;
use sha2::{Digest as _, Sha256};

/// Content above this many bytes is an object.
pub(super) const INLINE_MAX: usize = 200 * 1024;

const KEY: &str = "object";
const SIZE: &str = "object_size";
const HASH: &str = "object_sha256";

impl DynamoStore {
    /// Moves the content of `item` to the object `name`, if it is large.
    ///
    /// # Errors
    /// [`StoreError`] when the object cannot be stored;
    /// [`StoreError::TooLarge`] when there is no bucket and no item holds it.
    pub(super) async fn offload(&self, item: &mut Item, name: &str) -> Result<(), StoreError> {
        let size = item::string(item, item::BODY)?.len();
        if size <= INLINE_MAX {
            return Ok(());
        }
        let Some(blobs) = &self.blobs else {
            return fits(size);
        };
        let content = item::string(item, item::BODY)?.to_owned();
        let hash = hex::encode(Sha256::digest(&content));
        blobs.put(name, content.into()).await?;
        item.remove(item::BODY);
        item.insert(KEY.to_owned(), item::text(name));
        item.insert(SIZE.to_owned(), item::number(size));
        item.insert(HASH.to_owned(), item::text(hash));
        Ok(())
    }

    /// Puts the content back into an item that names an object.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] when it is gone or is not what the item says.
    pub(super) async fn inflate(&self, item: &mut Item) -> Result<(), StoreError> {
        if !item.contains_key(KEY) {
            return Ok(());
        }
        let name = item::string(item, KEY)?;
        let refused = || StoreError::Refused("an item names an object: no bucket".to_owned());
        let blobs = self.blobs.as_ref().ok_or_else(refused)?;
        let bytes = blobs.get(name).await?;
        let wrong = |what| StoreError::Corrupt(format!("object `{name}` {what}"));
        let bytes = bytes.ok_or_else(|| wrong("is gone"))?;
        let same = bytes.len() == item::integer::<usize>(item, SIZE)?
            && hex::encode(Sha256::digest(&bytes)) == item::string(item, HASH)?;
        if !same {
            return Err(wrong("has other bytes"));
        }
        let text = String::from_utf8(bytes.into()).map_err(|_| wrong("is no text"))?;
        item.insert(item::BODY.to_owned(), item::text(text));
        Ok(())
    }
}

/// Bytes of the content of an item, wherever it lies.
///
/// # Errors
/// [`StoreError::Corrupt`].
pub(super) fn size_of(item: &Item) -> Result<usize, StoreError> {
    if item.contains_key(KEY) {
        item::integer(item, SIZE)
    } else {
        Ok(item::string(item, item::BODY)?.len())
    }
}

fn fits(size: usize) -> Result<(), StoreError> {
    if size > ITEM_MAX {
        return Err(StoreError::TooLarge(format!(
            "{size} bytes; {ITEM_MAX} are allowed without a bucket"
        )));
    }
    Ok(())
}

/// The object of a child. The version is in it, since one write id is tried on
/// one version after the other.
pub(super) fn of_task(record: &TaskRecord, child: &str) -> String {
    let task = record.key();
    let write = record.write_ids.last().unwrap_or(&record.incarnation);
    format!(
        "v1/{}/{}-{}-{}-{write}",
        task.folder(),
        record.incarnation,
        child.replace('#', "."),
        record.version(),
    )
}

/// The object of a conversation's state. A client may have made the context id,
/// so its hash stands in the key.
pub(super) fn of_thread(write: &ThreadWrite) -> String {
    let thread = &write.record;
    format!(
        "v1/{}/{}.{}.{}/{}-{}",
        prefix(thread.owner.tenant.as_str()),
        key::THREADS,
        thread.owner.subject.hash(),
        prefix(thread.context_id.as_str()),
        thread.version,
        write.write,
    )
}

fn prefix(name: &str) -> String {
    let mut hash = hex::encode(Sha256::digest(name));
    hash.truncate(32);
    hash
}
