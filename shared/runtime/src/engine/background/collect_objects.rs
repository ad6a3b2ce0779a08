//! Collects unreferenced objects: deletes the objects that no task or thread names.
//!
//! A deletion removes the objects of what it deletes. The sweep finds all others:
//! objects of expired tasks and threads, and of commits that lost or died. It looks at
//! every object once a day, in parts. It keeps its position in the store, because the
//! next sweep may run in another process.
//!
//! It lists the objects first and reads the DynamoDB item afterwards, consistently. It
//! spares open tasks and objects younger than a day: an object is always older than the
//! commit that names it.

use super::Sweeper;
use crate::clock::Clock;
use crate::engine::error::EngineError;
use crate::engine::files::object_key::{self, ObjectName};
use crate::store::queue::ObjectsPlace;
use crate::store::records::Sweep;
use crate::store::{BlobOwner, Blobs, StoreError};
use crate::task::{TaskKey, TaskRecord, Timestamp};
use futures::FutureExt as _;
use futures::stream::{self, StreamExt as _};
use std::collections::BTreeSet;
use std::time::Duration;

/// The age from which an object can count as unreferenced.
const YOUNG: Duration = Duration::from_secs(24 * 3600);
/// Keys per list request.
const LISTED: usize = 1000;

/// Tasks and threads whose objects are looked up at the same time.
const AT_ONCE: usize = 16;
/// How long one sweep looks at objects.
const SPENT: Duration = Duration::from_secs(60);
/// How often all objects are looked at. Objects younger than a day are spared anyway.
const ROUND: Duration = Duration::from_secs(24 * 3600);

/// What one sweep of objects did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CollectReport {
    /// Keys that it looked at.
    pub looked_at: usize,
    /// Objects that it removed.
    pub removals: usize,
    /// Whether the round over all objects is complete.
    pub is_complete: bool,
}

impl Sweeper {
    /// Continues the round over all objects where the last sweep stopped, and removes
    /// unreferenced ones. A new round begins once a day.
    ///
    /// # Errors
    /// When the objects cannot be listed.
    pub async fn sweep_objects(&self) -> Result<CollectReport, EngineError> {
        let sweep = self.commits.records.sweep();
        let (blobs, clock) = (&*self.commits.files.blobs, &*self.reader.clock);
        let life = self.reader.policy.task_ttl;
        Ok(sweep_objects(&sweep, blobs, clock, life, LISTED).await?)
    }
}

/// Continues the round over all objects, `page` keys at a time. It notes its position
/// after each page, so that the next sweep can continue one that was cut short.
async fn sweep_objects(
    sweep: &Sweep,
    blobs: &dyn Blobs,
    clock: &dyn Clock,
    life: Duration,
    page: usize,
) -> Result<CollectReport, StoreError> {
    let began = clock.now();
    let mut report = CollectReport::default();
    let mut position = match sweep.objects_place().await? {
        Some(position) if position.after.is_none() && position.began.plus(ROUND) > began => {
            report.is_complete = true;
            return Ok(report);
        }
        Some(position) if position.after.is_some() => position,
        last => ObjectsPlace {
            began,
            before: last.map(|last| last.began),
            after: None,
        },
    };
    loop {
        let keys = blobs
            .keys(object_key::ROOT, position.after.as_deref(), page)
            .await?;
        report.looked_at += keys.len();
        let look = ObjectPass {
            position: &position,
            life,
        };
        report.removals += sweep_page(sweep, blobs, &keys, look).await;
        report.is_complete = keys.len() < page;
        position.after = keys.last().filter(|_| !report.is_complete).cloned();
        sweep.note_objects_place(&position).await?;
        if report.is_complete || began.plus(SPENT) <= clock.now() {
            return Ok(report);
        }
    }
}

/// One round over all objects.
#[derive(Debug, Clone, Copy)]
struct ObjectPass<'p> {
    position: &'p ObjectsPlace,
    life: Duration,
}

impl ObjectPass<'_> {
    /// Whether an object is old enough to count as unreferenced. A younger one may
    /// belong to a commit in progress. An object with a key of another form is never
    /// removed.
    fn is_old(&self, key: &str) -> bool {
        ObjectName::of(key).is_some_and(|name| name.at.plus(YOUNG) <= self.position.began)
    }

    /// Whether this round looks up who names the object. An object older than a task's
    /// life is looked up in every round. A younger one belongs to no expired task, but
    /// its task may have replaced it or never named it. It is looked up after 1, 2, 4
    /// and so on days.
    fn asks_for(&self, key: &str) -> bool {
        let Some(name) = ObjectName::of(key).filter(|_| self.is_old(key)) else {
            return false;
        };
        let age = |at: Timestamp| at.since(name.at);
        let now = age(self.position.began);
        now >= self.life || has_doubled(YOUNG, self.position.before.map(age), now)
    }
}

/// Whether an age has passed 1, 2, 4, 8, … times `unit` since it was `before`. Without
/// `before`: whether it has reached `unit`.
fn has_doubled(unit: Duration, before: Option<Duration>, now: Duration) -> bool {
    let doublings = |age: Duration| {
        let units = age.as_millis() / unit.as_millis().max(1);
        // The bit length grows by one at 1, 2, 4, 8, … units.
        u128::BITS - units.leading_zeros()
    };
    doublings(now) > before.map_or(0, doublings)
}

/// Removes the unreferenced ones of these objects and returns their number. Objects
/// that cannot be decided are left to the next round.
async fn sweep_page(
    sweep: &Sweep,
    blobs: &dyn Blobs,
    keys: &[String],
    look: ObjectPass<'_>,
) -> usize {
    let folder = |key: &str| ObjectName::of(key).map(|name| name.below.to_owned());
    let mut sweeps = Vec::new();
    // Listed keys are sorted, so one lookup serves all objects of a task or thread.
    for together in keys.chunk_by(|a, b| folder(a) == folder(b)) {
        if together.iter().any(|key| look.asks_for(key)) {
            sweeps.push(sweep_folder(sweep, blobs, together, look).boxed());
        }
    }
    let mut sweeps = stream::iter(sweeps).buffer_unordered(AT_ONCE);
    let mut total = 0;
    while let Some(swept) = sweeps.next().await {
        match swept {
            Ok(count) => total += count,
            Err(error) => tracing::warn!("failed to check a folder of objects: {error}"),
        }
    }
    total
}

/// Removes the unreferenced objects of one folder, which belong to one task or thread.
async fn sweep_folder(
    sweep: &Sweep,
    blobs: &dyn Blobs,
    keys: &[String],
    look: ObjectPass<'_>,
) -> Result<usize, StoreError> {
    let old: Vec<&String> = keys.iter().filter(|key| look.is_old(key)).collect();
    let Some(first) = old.first() else {
        return Ok(0);
    };
    // A key holds only hashes; the metadata of the object names its task or thread.
    let Some(head) = blobs.head(first).await? else {
        return Ok(0);
    };
    let keys_in_use = match head.owner {
        Some(BlobOwner::Task(task)) if first.starts_with(&object_key::below(&task)) => {
            named_by_task(sweep, &task, look.position.began).await?
        }
        Some(BlobOwner::Thread(thread))
            if first.starts_with(&object_key::below_thread(&thread)) =>
        {
            Some(sweep.state_object(&thread).await?.into_iter().collect())
        }
        _ => None,
    };
    let Some(keys_in_use) = keys_in_use else {
        return Ok(0);
    };
    let unused_keys = old.into_iter().filter(|key| !keys_in_use.contains(*key));
    let unused_keys: Vec<String> = unused_keys.cloned().collect();
    if !unused_keys.is_empty() {
        blobs.remove(&unused_keys).await?;
    }
    Ok(unused_keys.len())
}

/// The objects that a task names; `None` if it is not at rest, and all of them are
/// spared.
async fn named_by_task(
    sweep: &Sweep,
    task: &TaskKey,
    now: Timestamp,
) -> Result<Option<BTreeSet<String>>, StoreError> {
    let is_open = |task: &TaskRecord| !task.state().is_at_rest();
    match sweep.head_by_key(task).await? {
        Some(head) if is_open(&head) => return Ok(None),
        Some(head) if !head.is_expired(now) => {}
        // An expired task needs no objects, and its other items may be gone.
        _ => return Ok(Some(BTreeSet::new())),
    }
    let record = sweep.load_by_key(task).await?;
    if record.as_ref().is_some_and(is_open) {
        return Ok(None);
    }
    let object_keys = record.iter().flat_map(|record| record.object_keys());
    let mut keys_in_use: BTreeSet<String> = object_keys.map(str::to_owned).collect();
    keys_in_use.extend(sweep.content_objects(task).await?);
    Ok(Some(keys_in_use))
}

#[cfg(test)]
mod tests;
