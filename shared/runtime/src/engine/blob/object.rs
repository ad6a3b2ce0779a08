//! Where objects lie: every key, made and read in one place.
//!
//! No part of a key comes from a client. A tenant, and an id which a client
//! made, stand in it as hashes; so a key is short, and its alphabet is ours.

use crate::task::{Owner, TaskKey, TaskRecord, ThreadKey, Timestamp, WriteId};

/// Above everything that is kept for tasks.
pub(crate) const ROOT: &str = "v1/";
/// Above all uploads that no message has named.
pub(crate) const UPLOADS: &str = "up/";

/// The beginning of the keys of all objects of a task; it ends with a `/`.
#[must_use]
pub(crate) fn below(task: &TaskKey) -> String {
    format!("{ROOT}{}/", task.folder())
}

/// The beginning of the keys of all objects of a conversation; it ends with a
/// `/`.
#[must_use]
pub(crate) fn below_thread(thread: &ThreadKey) -> String {
    format!("{ROOT}{}/", thread.folder())
}

/// The attempt that stores an object. Each of its commits has keys of its own,
/// so that nobody can overwrite the bytes of another: also not of one that is
/// made at the same time of the same record.
#[derive(Debug, Clone)]
pub(crate) struct Attempt {
    below: String,
    incarnation: String,
    mark: String,
}

impl Attempt {
    /// The attempt that works on `record`, at the time `now`.
    pub(crate) fn of(record: &TaskRecord, now: Timestamp) -> Self {
        Self {
            below: below(&record.key()),
            incarnation: record.incarnation.to_string(),
            mark: format!("{}-{:x}", record.epoch, now.as_millis().max(0)),
        }
    }

    /// The key of the object in `place` of the commit `write`. It is short, since
    /// a file system that keeps a copy in parts makes a name of it that has to
    /// hold more: half of the incarnation and a quarter of the write stand for
    /// them.
    pub(crate) fn key(&self, write: &WriteId, place: u32) -> String {
        let Self {
            below,
            incarnation,
            mark,
        } = self;
        let (incarnation, write) = (half(incarnation), half(half(write.as_str())));
        format!("{below}{incarnation}-{mark}-{write}.{place}")
    }

    /// The key of an object that is stored before its commit is known, short for
    /// the same reason.
    pub(crate) fn early_key(&self, number: u128) -> String {
        let Self {
            below,
            incarnation,
            mark,
        } = self;
        let incarnation = half(incarnation);
        format!("{below}{incarnation}-{mark}-f{:08x}", number >> 96)
    }

    /// Whether `key` is one of the same task.
    pub(crate) fn is_ours(&self, key: &str) -> bool {
        key.starts_with(&self.below)
    }
}

/// What a key says of its object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Name<'k> {
    /// Where everything of its task lies.
    pub(crate) below: &'k str,
    /// The incarnation of the task, or its end.
    pub(crate) incarnation: &'k str,
    /// When it was stored.
    pub(crate) at: Timestamp,
}

impl<'k> Name<'k> {
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

/// Where an upload of `owner` waits for the message that names it.
pub(crate) fn upload(owner: &Owner, id: &str) -> String {
    let (tenant, subject) = (owner.tenant.folder(), owner.subject.hash());
    format!("{UPLOADS}{tenant}/{subject}/{id}")
}

/// The end of an id of ours, which is random like its beginning.
fn half(id: &str) -> &str {
    id.get(id.len() / 2..).unwrap_or_default()
}

#[cfg(test)]
mod tests;
