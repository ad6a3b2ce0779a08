//! Objects that nobody needs any more.
//!
//! A task and a conversation take their objects with them: when the table lets
//! the item go, the relay is told the key and removes what lies below it. What a
//! process left that died between its bytes and its commit, or between its commit
//! and what that replaced, is found by the sweep. It looks at every object once a
//! day, a part of them each time; where it has come to is noted in the store,
//! since one sweep may know nothing of the last.
//!
//! Both list first and read the item afterwards, consistently, and both spare
//! open tasks and what is younger than a day: an object is always older than
//! the commit that names it.

use super::blob::object::{self, Name};
use super::{Clock, Engine, EngineError};
use crate::store::queue::{ObjectsPlace, SweepObjects, TasksByKey};
use crate::store::{Blobs, StoreError};
use crate::task::{TaskKey, TaskRecord, ThreadKey, Timestamp};
use std::collections::BTreeSet;
use std::time::Duration;

/// How old an object has to be before it can be nobody's.
const YOUNG: Duration = Duration::from_secs(24 * 3600);
/// Keys of one list.
const LISTED: usize = 1000;

/// Objects that one sweep looks at: each of their tasks costs reads.
const SWEPT: usize = 20_000;
/// For how long one sweep looks at objects.
const SPENT: Duration = Duration::from_secs(60);
/// How often all objects are looked at. What is younger than a day is spared
/// anyway.
const ROUND: Duration = Duration::from_secs(24 * 3600);

/// What a look at stored objects came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TidyReport {
    /// Keys that were looked at.
    pub looked_at: usize,
    /// Objects removed.
    pub removed: usize,
    /// Whether all objects have been looked at by now.
    pub whole: bool,
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

/// Removes the objects of a conversation whose thread is gone from the table, but
/// not the one in which the state of the next one under its id is kept. It can be
/// called again.
///
/// # Errors
/// [`StoreError`] when a store does not answer.
pub async fn forget_state(
    tasks: &dyn TasksByKey,
    blobs: &dyn Blobs,
    thread: &ThreadKey,
    now: Timestamp,
) -> Result<usize, StoreError> {
    let below = object::below_thread(thread);
    let (mut removed, mut after) = (0, None);
    loop {
        let keys = blobs.keys(&below, after.as_deref(), LISTED).await?;
        removed += sweep_state(tasks, blobs, thread, &keys, now).await?;
        if keys.len() < LISTED {
            return Ok(removed);
        }
        after = keys.last().cloned();
    }
}

/// Removes those of a conversation's objects that it does not name.
async fn sweep_state(
    tasks: &dyn TasksByKey,
    blobs: &dyn Blobs,
    thread: &ThreadKey,
    keys: &[String],
    now: Timestamp,
) -> Result<usize, StoreError> {
    if keys.iter().all(|key| is_young(key, now)) {
        return Ok(0);
    }
    let named = tasks.state_object(thread).await?;
    let gone = keys.iter().filter(|key| !is_young(key, now));
    let gone: Vec<String> = gone
        .filter(|key| Some(*key) != named.as_ref())
        .cloned()
        .collect();
    if !gone.is_empty() {
        blobs.remove(&gone).await?;
    }
    Ok(gone.len())
}

impl Engine {
    /// Goes on looking at all stored objects, where the last sweep has left off,
    /// and removes those which nobody names. Once a day it begins anew.
    ///
    /// # Errors
    /// When the objects cannot be listed.
    pub async fn sweep_objects(&self, tasks: &dyn SweepObjects) -> Result<TidyReport, EngineError> {
        let (blobs, clock) = (&*self.reader.blobs, &*self.reader.clock);
        Ok(sweep_objects(tasks, blobs, clock, LISTED).await?)
    }

    /// Removes the objects of a conversation whose thread is gone from the table.
    ///
    /// # Errors
    /// When a store does not answer.
    pub async fn forget_state(
        &self,
        tasks: &dyn TasksByKey,
        thread: &ThreadKey,
    ) -> Result<usize, EngineError> {
        let now = self.reader.clock.now();
        Ok(forget_state(tasks, &*self.reader.blobs, thread, now).await?)
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

/// Goes on with the look at all objects, `page` at a time. After each page its
/// place is noted, so that a sweep which is cut is gone on with by the next one.
async fn sweep_objects(
    tasks: &dyn SweepObjects,
    blobs: &dyn Blobs,
    clock: &dyn Clock,
    page: usize,
) -> Result<TidyReport, StoreError> {
    let started = clock.now();
    let mut report = TidyReport::default();
    let mut place = match tasks.objects_place().await? {
        Some(place) if place.after.is_none() && place.began.plus(ROUND) > started => {
            report.whole = true;
            return Ok(report);
        }
        Some(place) if place.after.is_some() => place,
        _ => ObjectsPlace {
            began: started,
            after: None,
        },
    };
    loop {
        let now = clock.now();
        let keys = blobs
            .keys(object::ROOT, place.after.as_deref(), page)
            .await?;
        report.looked_at += keys.len();
        report.removed += sweep_page(tasks, blobs, &keys, now).await;
        report.whole = keys.len() < page;
        place.after = keys.last().filter(|_| !report.whole).cloned();
        tasks.note_objects_place(&place).await?;
        if report.whole || report.looked_at >= SWEPT || started.plus(SPENT) <= now {
            return Ok(report);
        }
    }
}

/// Removes those of these objects which nobody names. What cannot be decided on
/// is left to the next round.
async fn sweep_page(
    tasks: &dyn SweepObjects,
    blobs: &dyn Blobs,
    keys: &[String],
    now: Timestamp,
) -> usize {
    let folder = |key: &str| Name::of(key).map(|name| name.below.to_owned());
    let mut removed = 0;
    for together in keys.chunk_by(|a, b| folder(a) == folder(b)) {
        match sweep_folder(tasks, blobs, together, now).await {
            Ok(gone) => removed += gone,
            Err(error) => tracing::warn!("failed to sweep the objects of a task: {error}"),
        }
    }
    removed
}

/// Removes what nobody names of objects that lie together.
async fn sweep_folder(
    tasks: &dyn SweepObjects,
    blobs: &dyn Blobs,
    keys: &[String],
    now: Timestamp,
) -> Result<usize, StoreError> {
    // A key of another form is not of ours to judge.
    let old = |key: &&String| Name::of(key).is_some() && !is_young(key, now);
    let Some(first) = keys.iter().find(old) else {
        return Ok(0);
    };
    // A key holds hashes; the note beside the bytes says whose they are.
    let Some(head) = blobs.head(first).await? else {
        return Ok(0);
    };
    let keys: Vec<String> = keys.iter().filter(old).cloned().collect();
    let of_task = |task: &TaskKey| first.starts_with(&object::below(task));
    let of_thread = |thread: &ThreadKey| first.starts_with(&object::below_thread(thread));
    match (head.task.filter(of_task), head.thread.filter(of_thread)) {
        (Some(task), _) => sweep_task(tasks, blobs, &task, &keys, now).await,
        (None, Some(thread)) => sweep_state(tasks, blobs, &thread, &keys, now).await,
        (None, None) => Ok(0),
    }
}

/// Removes those of a task's objects, all of them old, that it does not name.
async fn sweep_task(
    tasks: &dyn SweepObjects,
    blobs: &dyn Blobs,
    task: &TaskKey,
    keys: &[String],
    now: Timestamp,
) -> Result<usize, StoreError> {
    let mut named = BTreeSet::new();
    // Of one whose life has ended the rest may be gone.
    match Heir::of(tasks.standing_at(task).await?.as_ref(), now) {
        Heir::Open => return Ok(0),
        Heir::None => {}
        Heir::AtRest(_) => {
            let stored = tasks.stored_at(task).await?;
            if matches!(Heir::of(stored.as_ref(), now), Heir::Open) {
                return Ok(0);
            }
            let record = stored.iter().flat_map(TaskRecord::object_keys);
            named.extend(record.map(str::to_owned));
            named.extend(tasks.content_objects(task).await?);
        }
    }
    let gone = keys.iter().filter(|key| !named.contains(*key));
    let gone: Vec<String> = gone.cloned().collect();
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
