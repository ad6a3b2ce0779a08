//! Stores content that is too large for an item as an object in the bucket.
//!
//! The object is written first, under a key that no other write uses. The item then
//! names the object with its size and hash, and a read checks both. A write that replaces
//! such an item does not remove the old object; the sweep does. The sweep also removes the
//! objects of a write that failed.

use super::{RecordReader, Records};
use crate::item;
use crate::table::Item;
use a2a_lambda_model::store::{BlobOwner, SizeError, StoreError, ThreadWrite};
use a2a_lambda_model::stored::{Encoded, ITEM_MAX};
use a2a_lambda_model::task::{TaskRecord, ThreadKey, Timestamp, WriteId};
use futures::future::try_join_all;
use sha2::{Digest as _, Sha256};

/// Content above this many stored bytes becomes an object.
///
/// The cost decides, at the on-demand prices of us-east-1. A million write units cost
/// 0.625 USD; a write takes one a KB, in a transaction two. A million read units cost 0.125
/// USD; a consistent read takes one for 4 KB. S3 takes 5 USD for a million PUTs and 0.4 USD
/// for a million GETs. The sweep makes six requests for an object in a life of 30 days, for
/// 5 USD a million. The cost in USD of a million writes or reads:
///
/// | Content | Table: write, read | Object with its item: write, read |
/// |---|---|---|
/// | 9 KB | 11.25, 0.375 | 11.25, 0.525 |
/// | 17 KB | 21.25, 0.625 | 11.25, 0.525 |
/// | 32 KB | 40, 1 | 11.25, 0.525 |
/// | 200 KB | 250, 6.25 | 11.25, 0.525 |
///
/// An object adds one round trip to S3 at each write and each read. From 17 KB on, objects
/// are cheaper in both columns, so the limit is above that. A task or thread value that is
/// replaced as a whole is written again at each change, and saves the most. Its old object
/// stays for some weeks, for less than 1 USD a million at 32 KB. See decision 0003.
const INLINE_MAX: usize = 32 * 1024;

/// Prefix of all objects that tasks and threads keep.
pub const ROOT: &str = "v1/";
/// Prefix of the files that clients have uploaded through a URL.
pub const UPLOADS: &str = "up/";

/// The attribute that names an object.
pub(super) const KEY: &str = "object";
const SIZE: &str = "object_size";
const HASH: &str = "object_sha256";

impl RecordReader {
    /// Reads the content of an item that names an object. `false` if the object is gone:
    /// then a later write has replaced the item.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] when the object differs from the size or hash in the item;
    /// [`StoreError::Denied`] when the bucket refuses the read.
    pub(super) async fn load_value(&self, item: &mut Item) -> Result<bool, StoreError> {
        if !item.contains_key(KEY) {
            return Ok(true);
        }
        let name = item::text(item, KEY)?;
        if !name.starts_with(ROOT) {
            return Err(StoreError::Corrupt(format!(
                "object key `{name}` does not begin with `{ROOT}`"
            )));
        }
        let error = || {
            StoreError::Refused("an item names an object but the store has no bucket".to_owned())
        };
        let blobs = self.blobs.as_ref().ok_or_else(error)?;
        let bytes = {
            let _permit = self.objects.acquire().await.map_err(semaphore_error)?;
            blobs.get(name).await?
        };
        let Some(bytes) = bytes else {
            return Ok(false);
        };
        let wrong = |what| StoreError::Corrupt(format!("object `{name}` {what}"));
        let same = bytes.len() == item::number::<usize>(item, SIZE)?
            && hex::encode(Sha256::digest(&bytes)) == item::text(item, HASH)?;
        if !same {
            return Err(wrong("differs from the size or hash in its item"));
        }
        let content = Encoded::Deflated(Vec::from(bytes).into());
        item.insert(item::BODY.to_owned(), item::content(content));
        Ok(true)
    }

    /// Reads the content of all `items` in parallel. `false` if an object is gone; its item
    /// then has no content.
    ///
    /// # Errors
    /// As [`RecordReader::load_value`].
    pub(super) async fn load_all(
        &self,
        items: impl Iterator<Item = &mut Item> + Send,
    ) -> Result<bool, StoreError> {
        let there = try_join_all(items.map(|item| self.load_value(item))).await?;
        Ok(there.into_iter().all(|there| there))
    }
}

impl Records {
    /// Moves the content of `item` to the object `name`, if it has more than `inline_max`
    /// bytes.
    ///
    /// # Errors
    /// [`StoreError`] when the object cannot be stored;
    /// [`StoreError::TooLarge`] when there is no bucket and an item cannot hold the content.
    pub(super) async fn spill(
        &self,
        item: &mut Item,
        owner: &BlobOwner,
        name: &str,
    ) -> Result<(), StoreError> {
        if item::body(item)?.size() <= INLINE_MAX {
            return Ok(());
        }
        let Some(blobs) = &self.blobs else {
            return SizeError::check(item::body(item)?.size(), ITEM_MAX);
        };
        // Content of this size is compressed, so a reader needs no type of the object.
        let bytes = match item::take_body(item)? {
            Encoded::Text(text) => text.into_owned().into_bytes(),
            Encoded::Deflated(bytes) => bytes.into_owned(),
        };
        let (size, hash) = (bytes.len(), hex::encode(Sha256::digest(&bytes)));
        blobs.put_for(owner, name, bytes.into()).await?;
        item.insert(KEY.to_owned(), name.into());
        item.insert(SIZE.to_owned(), item::count(size as u64));
        item.insert(HASH.to_owned(), hash.into());
        Ok(())
    }

    /// Removes the object of an item that is gone, and returns how many objects were removed.
    /// If S3 does not remove it, the sweep of all objects does later.
    pub(super) async fn remove_object_of(&self, item: &Item) -> usize {
        let (Some(blobs), Some(name)) = (&self.blobs, object_name(item)) else {
            return 0;
        };
        match blobs.remove(&[name]).await {
            Ok(()) => 1,
            Err(error) => {
                tracing::warn!("failed to remove the object of an item: {error}");
                0
            }
        }
    }
}

/// The object that an item names, if it has one.
pub(super) fn object_name(item: &Item) -> Option<String> {
    item::text(item, KEY).ok().map(str::to_owned)
}

/// The time in the key of an object that this store wrote; `None` for a key of another
/// form.
pub(super) fn written_at(name: &str) -> Option<Timestamp> {
    let (_, name) = name.rsplit_once('/')?;
    let at = i64::from_str_radix(name.split('-').nth(2)?, 16).ok()?;
    Some(Timestamp::from_millis(at))
}

fn semaphore_error(_: tokio::sync::AcquireError) -> StoreError {
    StoreError::Unavailable("the semaphore for object reads is closed".to_owned())
}

/// The object key of a child. Like every key below a task, it shows the sweep its time and
/// its incarnation. It includes the version, since a write may be tried again with the same
/// write id on a later version. It holds only half of each id, because a file system may
/// lengthen the name.
pub(super) fn of_task(record: &TaskRecord, child: &str) -> String {
    let write = record.write_ids.last().unwrap_or(&record.incarnation);
    format!(
        "{ROOT}{}/{}-{}-{:x}-{}.{}",
        record.key().folder(),
        half(&record.incarnation),
        record.version,
        millis(record.updated_at),
        child.replace('#', "."),
        half(write),
    )
}

/// The prefix of the keys of all objects of a thread.
pub(super) fn below(thread: &ThreadKey) -> String {
    format!("{ROOT}{}/", thread.folder())
}

/// The object key of a thread's state.
pub(super) fn of_thread(write: &ThreadWrite) -> String {
    let thread = &write.record;
    format!(
        "{}{}-{}-{:x}-state",
        below(&ThreadKey::new(&thread.owner, &thread.context_id)),
        half(&write.write),
        thread.version,
        millis(thread.updated_at),
    )
}

fn half(id: &WriteId) -> &str {
    let id = id.as_str();
    id.get(id.len() / 2..).unwrap_or(id)
}

fn millis(at: Timestamp) -> i64 {
    at.as_millis().max(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::SampleData;
    use a2a_lambda_model::task::ContextId;
    use std::collections::BTreeSet;

    #[test]
    fn each_write_and_version_has_object_keys_of_its_own_with_a_time() {
        let sample = SampleData::new(1, "object").unwrap();
        let task = sample.task().unwrap();
        let mut names = BTreeSet::new();
        // A write that lost a race is tried again on the next version.
        for write in [1, 2] {
            let mut record = task.clone();
            for later in 1..3 {
                let at = sample.at(later);
                let write = WriteId::made_of(write);
                record = record.next([], write, sample.now, at).unwrap();
                for child in ["EVT#000000000007#000000000001", "STATE"] {
                    let name = of_task(&record, child);
                    assert_eq!(written_at(&name), Some(sample.now), "{name}");
                    let value_owner = format!("/{}-", half(&task.incarnation));
                    assert!(name.contains(&value_owner), "{name}");
                    assert!(names.insert(name));
                }
            }
        }
        assert_eq!(names.len(), 8);
        let id = ContextId::parse("mine:c").unwrap();
        let mut names = BTreeSet::new();
        for write in [1, 2] {
            for expect in [0, 1] {
                let mut thread = sample.thread(&sample.owner, &id, expect);
                thread.write = WriteId::made_of(write);
                let name = of_thread(&thread);
                let at = Some(thread.record.updated_at);
                assert_eq!(written_at(&name), at, "{name}");
                assert!(names.insert(name));
            }
        }
        assert_eq!(names.len(), 4);
    }
}
