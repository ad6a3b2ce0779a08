//! Objects that nobody needs any more.
//!
//! A deletion removes the objects of what it deletes. All others are found by
//! the sweep: those of tasks and conversations whose time is up, and those of
//! commits that lost or died. It looks at every object once a day, a part of
//! them each time; where it has come to is noted in the store, since one sweep
//! may know nothing of the last.
//!
//! It lists first and reads the item afterwards, consistently. It spares open
//! tasks and what is younger than a day: an object is always older than the
//! commit that names it.

use super::again::has_doubled;
use super::blob::object::{self, Name};

use super::{Clock, Engine, EngineError};
use crate::store::queue::{ObjectsPlace, SweepObjects};
use crate::store::{Blobs, StoreError};
use crate::task::{TaskKey, TaskRecord, ThreadKey, Timestamp};
use futures::FutureExt as _;
use futures::stream::{self, StreamExt as _};
use std::collections::BTreeSet;
use std::time::Duration;

/// How old an object has to be before it can be nobody's.
const YOUNG: Duration = Duration::from_secs(24 * 3600);
/// Keys of one list.
const LISTED: usize = 1000;

/// Tasks and conversations that are asked for their objects at a time.
const AT_ONCE: usize = 16;
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
    let is_over = |key: &&String| {
        Name::of(key).is_none_or(|name| {
            let is_its_own = ended.incarnation.as_str().ends_with(name.incarnation);
            is_its_own || name.at < ended.expires_at
        })
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
    /// Goes on looking at all stored objects, where the last sweep has left off,
    /// and removes those which nobody names. Once a day it begins anew.
    ///
    /// # Errors
    /// When the objects cannot be listed.
    pub async fn sweep_objects(&self, tasks: &dyn SweepObjects) -> Result<TidyReport, EngineError> {
        let (blobs, clock) = (&*self.reader.blobs, &*self.reader.clock);
        let life = self.reader.policy.task_ttl;
        Ok(sweep_objects(tasks, blobs, clock, life, LISTED).await?)
    }
}

/// Goes on with the look at all objects, `page` at a time. After each page its
/// place is noted, so that a sweep which is cut is gone on with by the next one.
async fn sweep_objects(
    tasks: &dyn SweepObjects,
    blobs: &dyn Blobs,
    clock: &dyn Clock,
    life: Duration,
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
        last => ObjectsPlace {
            began: started,
            before: last.map(|last| last.began),
            after: None,
        },
    };
    loop {
        let keys = blobs
            .keys(object::ROOT, place.after.as_deref(), page)
            .await?;
        report.looked_at += keys.len();
        report.removed += sweep_page(tasks, blobs, &keys, &Look::new(&place, life)).await;
        report.whole = keys.len() < page;
        place.after = keys.last().filter(|_| !report.whole).cloned();
        tasks.note_objects_place(&place).await?;
        if report.whole || started.plus(SPENT) <= clock.now() {
            return Ok(report);
        }
    }
}

/// One look at all objects.
#[derive(Debug, Clone, Copy)]
struct Look {
    began: Timestamp,
    before: Option<Timestamp>,
    life: Duration,
}

impl Look {
    const fn new(place: &ObjectsPlace, life: Duration) -> Self {
        Self {
            began: place.began,
            before: place.before,
            life,
        }
    }

    /// Whether an object is so old that it can be nobody's. A younger one may
    /// belong to a commit that is still on its way. A key of another form is not
    /// ours to judge.
    fn is_old(&self, key: &str) -> bool {
        Name::of(key).is_some_and(|name| name.at.plus(YOUNG) <= self.began)
    }

    /// Whether it is time to ask who names an object. One that is younger than
    /// the life of a task is of none that has expired. It is asked for after one
    /// day, two, four and so on, since its task may have replaced it, or never
    /// named it.
    fn asks_for(&self, key: &str) -> bool {
        let age = |name: &Name<'_>, at: Timestamp| at.since(name.at);
        Name::of(key)
            .filter(|_| self.is_old(key))
            .is_some_and(|name| {
                let now = age(&name, self.began);
                now >= self.life || has_doubled(YOUNG, self.before.map(|at| age(&name, at)), now)
            })
    }
}

/// Removes those of these objects which nobody names. What cannot be decided on
/// is left to the next look.
async fn sweep_page(
    tasks: &dyn SweepObjects,
    blobs: &dyn Blobs,
    keys: &[String],
    look: &Look,
) -> usize {
    let folder = |key: &str| Name::of(key).map(|name| name.below.to_owned());
    let mut sweeps = Vec::new();
    for together in keys.chunk_by(|a, b| folder(a) == folder(b)) {
        if together.iter().any(|key| look.asks_for(key)) {
            sweeps.push(sweep_folder(tasks, blobs, together, look).boxed());
        }
    }
    let mut sweeps = stream::iter(sweeps).buffer_unordered(AT_ONCE);
    let mut removed = 0;
    while let Some(swept) = sweeps.next().await {
        match swept {
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
    look: &Look,
) -> Result<usize, StoreError> {
    let old: Vec<&String> = keys.iter().filter(|key| look.is_old(key)).collect();
    let Some(first) = old.first() else {
        return Ok(0);
    };
    // A key holds hashes; the note beside the bytes says whose they are.
    let Some(head) = blobs.head(first).await? else {
        return Ok(0);
    };
    let of_task = |task: &TaskKey| first.starts_with(&object::below(task));
    let of_thread = |thread: &ThreadKey| first.starts_with(&object::below_thread(thread));
    let named = match (head.task.filter(of_task), head.thread.filter(of_thread)) {
        (Some(task), _) => named_by_task(tasks, &task, look.began).await?,
        (None, Some(thread)) => Some(tasks.state_object(&thread).await?.into_iter().collect()),
        (None, None) => None,
    };
    let Some(named) = named else {
        return Ok(0);
    };
    let gone = old.into_iter().filter(|key| !named.contains(*key));
    let gone: Vec<String> = gone.cloned().collect();
    if !gone.is_empty() {
        blobs.remove(&gone).await?;
    }
    Ok(gone.len())
}

/// The objects which a task names; `None` if it is not at rest, and all of them
/// are spared.
async fn named_by_task(
    tasks: &dyn SweepObjects,
    task: &TaskKey,
    now: Timestamp,
) -> Result<Option<BTreeSet<String>>, StoreError> {
    match tasks.standing_at(task).await? {
        Some(head) if !head.state().is_at_rest() => return Ok(None),
        Some(head) if !head.expired(now) => {}
        // Of one whose life has ended the rest may be gone.
        _ => return Ok(Some(BTreeSet::new())),
    }
    let stored = tasks.stored_at(task).await?;
    if stored
        .as_ref()
        .is_some_and(|task| !task.state().is_at_rest())
    {
        return Ok(None);
    }
    let record = stored.iter().flat_map(TaskRecord::object_keys);
    let mut named: BTreeSet<String> = record.map(str::to_owned).collect();
    named.extend(tasks.content_objects(task).await?);
    Ok(Some(named))
}

#[cfg(test)]
mod tests;
