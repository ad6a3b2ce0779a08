//! Makes and reads the keys of objects.
//!
//! No part of a key comes from a client. The tenant, and a task id that a client made,
//! are in it as hashes. So a key is short, and its alphabet is fixed.

use crate::task::{Owner, TaskKey, TaskRecord, ThreadKey, Timestamp, WriteId};

/// The prefix of the objects of all tasks and threads.
pub(crate) const ROOT: &str = "v1/";
/// The prefix of all uploads.
pub(crate) const UPLOADS: &str = "up/";

/// The prefix of all objects of a task; it ends with a `/`.
#[must_use]
pub(crate) fn below(task: &TaskKey) -> String {
    format!("{ROOT}{}/", task.folder())
}

/// The prefix of all objects of a thread; it ends with a `/`.
#[must_use]
pub(crate) fn below_thread(thread: &ThreadKey) -> String {
    format!("{ROOT}{}/", thread.folder())
}

/// The attempt that stores objects. Each commit has its own keys, so that no writer
/// overwrites the bytes of another, even if both commit on the same record together.
#[derive(Debug, Clone)]
pub(crate) struct ObjectKeys {
    // Most turns store no object, so the texts of a key are made for a key.
    task: TaskKey,
    incarnation: WriteId,
    epoch: u64,
    now: Timestamp,
}

impl ObjectKeys {
    /// The attempt that works on `record`, at the time `now`.
    pub(crate) fn of(record: &TaskRecord, now: Timestamp) -> Self {
        Self {
            task: record.key(),
            incarnation: record.incarnation.clone(),
            epoch: record.epoch,
            now,
        }
    }

    /// What all keys of this attempt begin with: folder, incarnation, epoch and time.
    fn prefix(&self) -> String {
        let below = below(&self.task);
        let incarnation = half(self.incarnation.as_str());
        let now = self.now.as_millis().max(0);
        format!("{below}{incarnation}-{}-{now:x}", self.epoch)
    }

    /// The key of the object `number` in the commit `write`.
    ///
    /// It holds half of the incarnation and 32 bits of the write id, to be short: the
    /// local object store makes one file name of a key and the id of its multipart
    /// upload.
    pub(crate) fn key(&self, write: &WriteId, number: u32) -> String {
        format!("{}-{:08x}.{number}", self.prefix(), short(write))
    }

    /// The key of an object that is stored before its commit is known. It is short for
    /// the same reason as [`Self::key`].
    pub(crate) fn early_key(&self, number: u128) -> String {
        // 32 of the 128 random bits keep the key short.
        format!("{}-f{:08x}", self.prefix(), number >> 96)
    }

    /// Whether `key` is a key of the same task.
    pub(crate) fn is_ours(&self, key: &str) -> bool {
        key.starts_with(&below(&self.task))
    }
}

/// The fields of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ObjectName<'k> {
    /// The prefix of all objects of its task.
    pub(crate) below: &'k str,
    /// The incarnation of the task, or the last half of it.
    pub(crate) incarnation: &'k str,
    /// When it was stored.
    pub(crate) at: Timestamp,
}

impl<'k> ObjectName<'k> {
    /// Reads a key; `None` for one of another form.
    pub(crate) fn of(key: &'k str) -> Option<Self> {
        let (_, name) = key.rsplit_once('/')?;
        let below = key.strip_suffix(name)?;
        let mut fields = name.split('-');
        let incarnation = fields.next().filter(|text| !text.is_empty())?;
        fields.next()?.parse::<u64>().ok()?;
        let at = i64::from_str_radix(fields.next()?, 16).ok()?;
        (fields.next().is_some() && fields.next().is_none()).then_some(Self {
            below,
            incarnation,
            at: Timestamp::from_millis(at),
        })
    }
}

/// The key of an upload of `owner`.
pub(crate) fn upload(owner: &Owner, id: &str) -> String {
    let (tenant, subject) = (owner.tenant.folder(), owner.subject.hash());
    format!("{UPLOADS}{tenant}/{subject}/{id}")
}

/// 32 bits of a write id that differ from one commit to the next. The upper half of the id
/// counts the writes of a turn, and the lower half differs between turns. The rotation keeps
/// small numbers of both, as tests have them, apart.
fn short(write: &WriteId) -> u32 {
    let number = u128::from_str_radix(write.as_str(), 16).unwrap_or_default();
    (number as u32) ^ ((number >> 64) as u32).rotate_left(16)
}

/// The last half of a server-made id, which is as random as the first.
fn half(id: &str) -> &str {
    id.get(id.len() / 2..).unwrap_or_default()
}

#[cfg(test)]
mod tests;
