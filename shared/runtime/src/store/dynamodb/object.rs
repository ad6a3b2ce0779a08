//! Content that is too large for an item: an object in the bucket.
//!
//! The object comes first, under a key that no other write uses; the item names
//! it with its size and hash, which are checked when it is read. Whoever replaces
//! such an item removes the object it named, once its own write is acknowledged.
//! What nobody removed, and what a write left behind that lost, is nobody's: a
//! sweep finds it.

use super::item::{self, Item};
use super::statement::{Kind, Statement};
use super::{DynamoStore, key};
use crate::store::stored::{ITEM_MAX, Place};
use crate::store::{StoreError, TaskWrite, ThreadRecord, ThreadWrite};
use crate::task::{Doc, TaskKey, TaskRecord, ThreadKey, Timestamp, WriteId};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Content above this many bytes is an object.
pub(super) const INLINE_MAX: usize = 200 * 1024;
/// Items of which a process knows the object.
const SEEN: usize = 1024;

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

/// The place of an item: partition and sort key.
type At = (String, String);

/// The objects that items named when this process read or wrote them last, with
/// the version of the write that put each there. It is how a writer knows what
/// it replaces. What it does not know is left to the sweep.
#[derive(Debug, Default)]
pub(super) struct Seen(Mutex<BTreeMap<At, (u64, String)>>);

impl Seen {
    fn known(&self) -> MutexGuard<'_, BTreeMap<At, (u64, String)>> {
        // No change of it is in steps.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes what `item` names.
    fn note(&self, item: &Item) {
        let text = |name| item::string(item, name).ok().map(str::to_owned);
        let (Some(partition), Some(sort)) = (text(key::PK), text(key::SK)) else {
            return;
        };
        let mut known = self.known();
        match (text(KEY), item::integer(item, item::VERSION)) {
            (Some(object), Ok(version)) => {
                if known.len() >= SEEN {
                    known.clear();
                }
                known.insert((partition, sort), (version, object));
            }
            _ => drop(known.remove(&(partition, sort))),
        }
    }

    /// The object that an item named until the write of `version` replaced it or
    /// took it away.
    ///
    /// A write that is told late that it is done says nothing about what later
    /// ones have put there.
    fn replaced_by(&self, version: u64, partition: &str, sort: &str) -> Option<String> {
        let mut known = self.known();
        let at = (partition.to_owned(), sort.to_owned());
        let (was, _) = known.get(&at)?;
        if *was >= version {
            return None;
        }
        known.remove(&at).map(|(_, object)| object)
    }
}

impl DynamoStore {
    /// Moves the content of `item` to the object `name`, if it is large.
    ///
    /// # Errors
    /// [`StoreError`] when the object cannot be stored;
    /// [`StoreError::TooLarge`] when there is no bucket and no item holds it.
    pub(super) async fn offload(
        &self,
        item: &mut Item,
        whose: &Whose,
        name: &str,
    ) -> Result<(), StoreError> {
        let size = item::string(item, item::BODY)?.len();
        if size <= INLINE_MAX {
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
        self.objects.note(item);
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
        let Some(bytes) = blobs.get(name).await? else {
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

    /// What to make of an object that is gone, of an item beside the deciding
    /// one of `version`: read again, if that has changed.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] when it has not, since then an object is missing.
    pub(super) async fn has_moved_on(
        &self,
        partition: &str,
        version: u64,
    ) -> Result<(), StoreError> {
        let stands = match self.meta(partition).await? {
            None => false,
            Some(meta) => item::integer::<u64>(&meta, item::VERSION)? == version,
        };
        if stands {
            let why = format!("an object is gone that `{partition}` names");
            return Err(StoreError::Corrupt(why));
        }
        Ok(())
    }

    /// Removes the objects which a stored commit has replaced, as far as they
    /// are known, and notes those which it names itself.
    pub(super) async fn forget_replaced(&self, write: &TaskWrite, stored: &[Statement]) {
        let (record, mut gone) = (&write.record, Vec::new());
        let partition = key::task(&record.key());
        for doc in Doc::ALL {
            let apart = record.layout().docs.get(&doc);
            if apart.is_none_or(|apart| apart.version == record.version()) {
                let sort = key::child(Place::Doc(doc));
                gone.extend(
                    self.objects
                        .replaced_by(record.version(), &partition, &sort),
                );
            }
        }
        if let Some(thread) = &write.thread {
            gone.extend(self.replaced_state(&thread.record));
        }
        self.note_stored(stored);
        self.remove_objects(gone).await;
    }

    /// The same of a thread that was written apart from a task.
    pub(super) async fn forget_replaced_state(&self, write: &ThreadWrite, stored: &[Statement]) {
        let gone = self.replaced_state(&write.record);
        self.note_stored(stored);
        self.remove_objects(gone.into_iter().collect()).await;
    }

    fn replaced_state(&self, thread: &ThreadRecord) -> Option<String> {
        if thread.state_version > 0 && !thread.replaces_state() {
            return None;
        }
        let partition = key::thread(&thread.owner, &thread.context_id);
        self.objects
            .replaced_by(thread.version, &partition, key::STATE)
    }

    fn note_stored(&self, statements: &[Statement]) {
        for statement in statements {
            if let Kind::Put(item) = &statement.kind
                && item.contains_key(KEY)
            {
                self.objects.note(item);
            }
        }
    }

    /// Removes objects that no item names any more; what cannot be removed is
    /// left to the sweep. Says how many are gone.
    pub(super) async fn remove_objects(&self, names: Vec<String>) -> usize {
        let Some(blobs) = self.blobs.as_ref().filter(|_| !names.is_empty()) else {
            return 0;
        };
        match blobs.remove(&names).await {
            Ok(()) => names.len(),
            Err(error) => {
                tracing::warn!("failed to remove replaced content: {error}");
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
