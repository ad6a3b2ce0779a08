//! Objects that nobody needs any more.
//!
//! A task takes its objects with it: when the table lets its item go, the
//! relay is told the key and removes what lies below the task. What a process
//! left that died between its bytes and its commit, or that another attempt
//! has replaced, is found by the sweep.
//!
//! Both list first and read the task afterwards, consistently, and both spare
//! open tasks and what is younger than a day: an object is always older than
//! the commit that names it.

use super::blob::object::{self, Name};
use super::{Engine, EngineError};
use crate::store::queue::TasksByKey;
use crate::store::{Blobs, StoreError};
use crate::task::{TaskKey, TaskRecord, Timestamp};
use std::collections::BTreeSet;
use std::time::Duration;

/// How old an object has to be before it can be nobody's.
const YOUNG: Duration = Duration::from_secs(24 * 3600);
/// Keys of one list.
const LISTED: usize = 1000;

/// Objects that one sweep looks at: each of their tasks costs a read.
const SWEPT: usize = 200;

/// What a look at stored objects came to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TidyReport {
    /// Keys that were looked at.
    pub looked_at: usize,
    /// Objects removed.
    pub removed: usize,
    /// Where the next look goes on; `None` at the end.
    pub next: Option<String>,
}

/// Removes the objects of a task whose item is gone from the table, but not
/// those of a task that lives under the same key by now. It can be called
/// again.
///
/// # Errors
/// [`StoreError`] when a store does not answer.
pub async fn forget_objects(
    tasks: &dyn TasksByKey,
    blobs: &dyn Blobs,
    task: &TaskKey,
    now: Timestamp,
) -> Result<usize, StoreError> {
    let below = object::below(task);
    let (mut removed, mut after) = (0, None);
    loop {
        let keys = blobs.keys(&below, after.as_deref(), LISTED).await?;
        if keys.is_empty() {
            return Ok(removed);
        }
        let stored = tasks.standing_at(task).await?;
        let gone: Vec<String> = match Heir::of(stored.as_ref(), now) {
            Heir::Open => return Ok(removed),
            heir => keys
                .iter()
                .filter(|key| !is_young(key, now) && !heir.is_live(key))
                .cloned()
                .collect(),
        };
        if !gone.is_empty() {
            blobs.remove(&gone).await?;
            removed += gone.len();
        }
        after = keys.last().cloned();
        if keys.len() < LISTED {
            return Ok(removed);
        }
    }
}

/// Removes the objects of a task whose life has ended, and what earlier tasks of
/// its id have left; but none that was stored after its end, which may be of the
/// next task of this id. It can be called again.
///
/// # Errors
/// [`StoreError`] when the store does not answer, or lists nothing.
pub(super) async fn remove_objects_of(
    blobs: &dyn Blobs,
    ended: &TaskRecord,
) -> Result<usize, StoreError> {
    let heir = Heir::AtRest(ended);
    let is_over = |key: &&String| {
        let later = Name::of(key).is_some_and(|name| name.at > ended.expires_at);
        !later || heir.is_live(key)
    };
    let below = object::below(&ended.key());
    let (mut removed, mut after) = (0, None);
    loop {
        let keys = blobs.keys(&below, after.as_deref(), LISTED).await?;
        let gone: Vec<String> = keys.iter().filter(is_over).cloned().collect();
        if !gone.is_empty() {
            blobs.remove(&gone).await?;
            removed += gone.len();
        }
        if keys.len() < LISTED {
            return Ok(removed);
        }
        after = keys.last().cloned();
    }
}

impl Engine {
    /// Looks at some of the stored objects, from the key `after` on or from the
    /// first, and removes those which no task names.
    ///
    /// # Errors
    /// When the objects cannot be listed.
    pub async fn sweep_objects(
        &self,
        tasks: &dyn TasksByKey,
        after: Option<String>,
    ) -> Result<TidyReport, EngineError> {
        let (blobs, now) = (&*self.reader.blobs, self.reader.clock.now());
        Ok(sweep_objects(tasks, blobs, after.as_deref(), SWEPT, now).await?)
    }

    /// Removes the objects of a task whose item is gone from the table.
    ///
    /// # Errors
    /// When a store does not answer.
    pub async fn forget_objects(
        &self,
        tasks: &dyn TasksByKey,
        task: &TaskKey,
    ) -> Result<usize, EngineError> {
        let now = self.reader.clock.now();
        Ok(forget_objects(tasks, &*self.reader.blobs, task, now).await?)
    }
}

/// Looks at up to `limit` objects (at most 1000) after the key `after`, and
/// removes those which no task names.
///
/// # Errors
/// [`StoreError`] when the objects cannot be listed. What cannot be decided on
/// is left to the next round.
async fn sweep_objects(
    tasks: &dyn TasksByKey,
    blobs: &dyn Blobs,
    after: Option<&str>,
    limit: usize,
    now: Timestamp,
) -> Result<TidyReport, StoreError> {
    let keys = blobs.keys(object::ROOT, after, limit.min(LISTED)).await?;
    let mut report = TidyReport {
        looked_at: keys.len(),
        next: keys
            .last()
            .filter(|_| keys.len() == limit.min(LISTED))
            .cloned(),
        ..TidyReport::default()
    };
    let folder = |key: &str| Name::of(key).map(|name| name.below.to_owned());
    for of_task in keys.chunk_by(|a, b| folder(a) == folder(b)) {
        match sweep_task(tasks, blobs, of_task, now).await {
            Ok(removed) => report.removed += removed,
            Err(error) => tracing::warn!("failed to sweep the objects of a task: {error}"),
        }
    }
    Ok(report)
}

/// Removes what nobody names of objects that lie together.
async fn sweep_task(
    tasks: &dyn TasksByKey,
    blobs: &dyn Blobs,
    keys: &[String],
    now: Timestamp,
) -> Result<usize, StoreError> {
    // A key of another form is not of ours to judge.
    let old = |key: &&String| Name::of(key).is_some() && !is_young(key, now);
    let Some(first) = keys.iter().find(old) else {
        return Ok(0);
    };
    let head = blobs.head(first).await?;
    // A key holds hashes; the note beside the bytes says whose they are.
    let noted = head.and_then(|head| head.task);
    let Some(task) = noted.filter(|task| first.starts_with(&object::below(task))) else {
        return Ok(0);
    };
    let stored = tasks.stored_at(&task).await?;
    let named: BTreeSet<&str> = stored.iter().flat_map(TaskRecord::object_keys).collect();
    let gone: Vec<String> = match Heir::of(stored.as_ref(), now) {
        Heir::Open => return Ok(0),
        Heir::None => keys.iter().filter(old).cloned().collect(),
        Heir::AtRest(_) => keys
            .iter()
            .filter(old)
            .filter(|key| !named.contains(key.as_str()))
            .cloned()
            .collect(),
    };
    if !gone.is_empty() {
        blobs.remove(&gone).await?;
    }
    Ok(gone.len())
}

/// Who has the key of a task now.
#[derive(Debug, Clone, Copy)]
enum Heir<'r> {
    /// Nobody.
    None,
    /// A task at rest, of this incarnation.
    AtRest(&'r TaskRecord),
    /// A task that works, or is about to.
    Open,
}

impl<'r> Heir<'r> {
    fn of(stored: Option<&'r TaskRecord>, now: Timestamp) -> Self {
        match stored {
            None => Self::None,
            Some(record) if record.expired(now) => Self::None,
            Some(record) if record.state().is_at_rest() => Self::AtRest(record),
            Some(_) => Self::Open,
        }
    }

    /// Whether an object belongs to the task that lives.
    fn is_live(self, key: &str) -> bool {
        match self {
            Self::None => false,
            Self::Open => true,
            Self::AtRest(record) => Name::of(key)
                .is_none_or(|name| record.incarnation.as_str().ends_with(name.incarnation)),
        }
    }
}

/// Whether an object may belong to a commit that is still on its way.
fn is_young(key: &str, now: Timestamp) -> bool {
    Name::of(key).is_some_and(|name| name.at.plus(YOUNG) > now)
}

#[cfg(test)]
mod tests;
