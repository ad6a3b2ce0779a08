//! Content that is too large for an item: an object in the bucket.
//!
//! The object comes first, under a key that no other write uses; the item names
//! it with its size and hash, which are checked when it is read. A write that
//! replaces such an item leaves the old object to the sweep, as it does what a
//! write stored that lost.

use super::DynamoStore;
use super::item::{self, Item};
use crate::store::stored::{ITEM_MAX, Place};
use crate::store::{StoreError, ThreadWrite};
use crate::task::{TaskKey, TaskRecord, ThreadKey, Timestamp, WriteId};
use futures::future::try_join_all;
use sha2::{Digest as _, Sha256};

/// Content above this many bytes is an object.
///
/// Units decide, at the prices of us-east-1 on demand. A million write units
/// cost 0.625 USD: one for a KB, two in a transaction. A million read units cost
/// 0.125 USD: one for 4 KB, read consistently. S3 takes 5 USD for a million PUTs
/// and 0.4 USD for a million GETs. The sweep asks for an object six times in a
/// life of 30 days, for 5 USD a million. A million times:
///
/// | Content | Table: write, read | Object with its item: write, read |
/// |---|---|---|
/// | 9 KB | 11.25, 0.375 | 11.25, 0.525 |
/// | 17 KB | 21.25, 0.625 | 11.25, 0.525 |
/// | 32 KB | 40, 1 | 11.25, 0.525 |
/// | 200 KB | 250, 6.25 | 11.25, 0.525 |
///
/// An object is one more round trip to S3, at each write and each read. So the
/// limit lies above 17 KB, from where objects are cheaper in both columns. A value
/// that is replaced as a whole, of a task or of a conversation, is written again
/// at each change, and saves the most. Its old object stays for some weeks, for
/// less than 1 USD a million at 32 KB. See decision 0027.
pub(super) const INLINE_MAX: usize = 32 * 1024;

/// A batch of events above this many bytes is an object.
///
/// A stream looks for the batches after its last event together with the task's
/// own item, in one query. Objects would add a round trip to what it shows next.
/// An item holds 400 KB.
const EVENTS_MAX: usize = 200 * 1024;

/// Above everything that is kept.
pub(super) const ROOT: &str = "v1/";
/// Above the files that clients have sent by themselves.
pub(super) const UPLOADS: &str = "up/";

/// The attribute that names an object.
pub(super) const KEY: &str = "object";
const SIZE: &str = "object_size";
const HASH: &str = "object_sha256";

/// Whose content it is.
#[derive(Debug, Clone)]
pub(super) enum Whose {
    /// A task's.
    Task(TaskKey),
    /// A conversation's.
    Thread(ThreadKey),
}

/// Bytes of the content of a child that stay in its item.
pub(super) const fn inline_max(place: Place) -> usize {
    match place {
        Place::Events(_) => EVENTS_MAX,
        Place::Parts(_) | Place::Doc(_) | Place::History(_) => INLINE_MAX,
    }
}

impl DynamoStore {
    /// Moves the content of `item` to the object `name`, if it has more bytes
    /// than `inline_max`.
    ///
    /// # Errors
    /// [`StoreError`] when the object cannot be stored;
    /// [`StoreError::TooLarge`] when there is no bucket and no item holds it.
    pub(super) async fn offload(
        &self,
        item: &mut Item,
        inline_max: usize,
        whose: &Whose,
        name: &str,
    ) -> Result<(), StoreError> {
        let size = item::string(item, item::BODY)?.len();
        if size <= inline_max {
            return Ok(());
        }
        let Some(blobs) = &self.blobs else {
            return fits(size);
        };
        let content = item::string(item, item::BODY)?.to_owned();
        let hash = hex::encode(Sha256::digest(&content));
        match whose {
            Whose::Task(task) => blobs.put_for(task, name, content.into()).await?,
            Whose::Thread(thread) => blobs.put_for_thread(thread, name, content.into()).await?,
        }
        item.remove(item::BODY);
        item.insert(KEY.to_owned(), item::text(name));
        item.insert(SIZE.to_owned(), item::number(size));
        item.insert(HASH.to_owned(), item::text(hash));
        Ok(())
    }

    /// Puts the content back into an item that names an object; `false` if the
    /// object is gone: then a later write has replaced the item.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] when it is not what the item says.
    pub(super) async fn inflate(&self, item: &mut Item) -> Result<bool, StoreError> {
        if !item.contains_key(KEY) {
            return Ok(true);
        }
        let name = item::string(item, KEY)?;
        if !name.starts_with(ROOT) {
            return Err(StoreError::Corrupt(format!(
                "`{name}` is no object of ours"
            )));
        }
        let refused = || StoreError::Refused("an item names an object: no bucket".to_owned());
        let blobs = self.blobs.as_ref().ok_or_else(refused)?;
        let found = {
            let _permit = self.objects.acquire().await.map_err(closed)?;
            blobs.get(name).await?
        };
        let Some(bytes) = found else {
            return Ok(false);
        };
        let wrong = |what| StoreError::Corrupt(format!("object `{name}` {what}"));
        let same = bytes.len() == item::integer::<usize>(item, SIZE)?
            && hex::encode(Sha256::digest(&bytes)) == item::string(item, HASH)?;
        if !same {
            return Err(wrong("has other bytes"));
        }
        let text = String::from_utf8(bytes.into()).map_err(|_| wrong("is no text"))?;
        item.insert(item::BODY.to_owned(), item::text(text));
        Ok(true)
    }

    /// Puts the content back into all `items`, in one wave; `false` if an object
    /// is gone. Its item has no content then.
    ///
    /// # Errors
    /// As [`DynamoStore::inflate`].
    pub(super) async fn inflate_all(
        &self,
        items: impl Iterator<Item = &mut Item> + Send,
    ) -> Result<bool, StoreError> {
        let there = try_join_all(items.map(|item| self.inflate(item))).await?;
        Ok(there.into_iter().all(|there| there))
    }

    /// Removes the object of an item that is gone. What cannot be removed is left
    /// to the look at all objects. Says how many are gone.
    pub(super) async fn remove_object_of(&self, item: &Item) -> usize {
        let (Some(blobs), Some(name)) = (&self.blobs, named(item)) else {
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

/// The object which an item names, if its content is one.
pub(super) fn named(item: &Item) -> Option<String> {
    item::string(item, KEY).ok().map(str::to_owned)
}

/// When an object of ours was written, by its key; `None` for one of another
/// form.
pub(super) fn written_at(name: &str) -> Option<Timestamp> {
    let (_, name) = name.rsplit_once('/')?;
    let at = i64::from_str_radix(name.split('-').nth(2)?, 16).ok()?;
    Some(Timestamp::from_millis(at))
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

fn closed(_: tokio::sync::AcquireError) -> StoreError {
    StoreError::Unavailable("reads of objects have ended".to_owned())
}

fn fits(size: usize) -> Result<(), StoreError> {
    if size > ITEM_MAX {
        return Err(StoreError::TooLarge(format!(
            "{size} bytes; {ITEM_MAX} are allowed without a bucket"
        )));
    }
    Ok(())
}

/// The object of a child. It is of the form of every key below a task, so that
/// a sweep can read its age and its incarnation. The version is in it, since one
/// write id is tried on one version after the other. Halves stand for the ids,
/// for file systems that make a longer name of a key.
pub(super) fn of_task(record: &TaskRecord, child: &str) -> String {
    let write = record.write_ids.last().unwrap_or(&record.incarnation);
    format!(
        "{ROOT}{}/{}-{}-{:x}-{}.{}",
        record.key().folder(),
        half(&record.incarnation),
        record.version(),
        millis(record.updated_at),
        child.replace('#', "."),
        half(write),
    )
}

/// The beginning of the keys of all objects of a conversation.
pub(super) fn below(thread: &ThreadKey) -> String {
    format!("{ROOT}{}/", thread.folder())
}

/// The object of a conversation's state.
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
    use crate::store::contract::World;
    use crate::task::{ContextId, WriteId};
    use std::collections::BTreeSet;

    #[test]
    fn each_write_of_each_version_has_objects_of_its_own_which_tell_their_time() {
        let world = World::new(1, "object").unwrap();
        let task = world.task().unwrap();
        let mut names = BTreeSet::new();
        // A write that lost is made again on the next version.
        for write in [1, 2] {
            let mut record = task.clone();
            for later in 1..3 {
                let at = world.at(later);
                let write = WriteId::made_of(write);
                record = record.next([], write, world.now, at).unwrap();
                for child in ["MSG#000000000001", "DOC#status"] {
                    let name = of_task(&record, child);
                    assert_eq!(written_at(&name), Some(world.now), "{name}");
                    let whose = format!("/{}-", half(&task.incarnation));
                    assert!(name.contains(&whose), "{name}");
                    assert!(names.insert(name));
                }
            }
        }
        assert_eq!(names.len(), 8);
        let id = ContextId::parse("mine:c").unwrap();
        let mut names = BTreeSet::new();
        for write in [1, 2] {
            for expect in [0, 1] {
                let mut thread = world.thread(&world.owner, &id, expect);
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
