//! The tasks that a message refers to (A2A 1.0 §3.4), loaded when the skill reads them.

use super::spec::TurnSpec;
use crate::engine::Engine;
use crate::skill::ReferencedTask;
use crate::skill::turn_host::References;
use crate::store::{Projection, StoreError, stored};
use crate::task::{Owner, TaskId};
use std::collections::BTreeSet;
use tokio::sync::OnceCell;

/// At most this many tasks are loaded, each once.
const LOADED: usize = 16;

/// The task ids that a turn's message names, and what was found.
pub(in crate::engine) struct NamedTasks<'e> {
    engine: &'e Engine,
    owner: Owner,
    /// Each id once, in the order of the message.
    ids: Vec<String>,
    loaded: OnceCell<References>,
}

/// What all these tasks together may still load into memory.
struct MemoryLeft {
    /// Bytes outside the tasks' own DynamoDB items.
    stored: usize,
    /// Bytes of files.
    files: u64,
}

impl<'e> NamedTasks<'e> {
    pub(in crate::engine) fn new(engine: &'e Engine, work: &TurnSpec) -> Self {
        let mut seen = BTreeSet::new();
        let mut ids = work.facts.references.clone();
        ids.retain(|id| seen.insert(id.clone()));
        Self {
            engine,
            owner: work.record.owner().clone(),
            ids,
            loaded: OnceCell::new(),
        }
    }

    /// The tasks; the first successful call loads them.
    pub(in crate::engine) async fn load(&self) -> Result<&References, StoreError> {
        self.loaded.get_or_try_init(|| self.look()).await
    }

    /// Loads one task after the other, so that the content of one is dropped before the
    /// next.
    async fn look(&self) -> Result<References, StoreError> {
        let mut found = References::default();
        let mut left = MemoryLeft {
            stored: stored::MAX_BYTES,
            files: self.engine.reader.policy.response_max as u64,
        };
        for (place, id) in self.ids.iter().enumerate() {
            let task = match place {
                ..LOADED => self.task(id, &mut left).await?,
                _ => None,
            };
            match task {
                Some(task) => found.found.push(task),
                None => found.unresolved.push(id.clone()),
            }
        }
        Ok(found)
    }

    /// A task, if the caller may read it and all its artifacts still fit. Another
    /// caller's task, an expired one and an absent one give the same result.
    async fn task(
        &self,
        id: &str,
        left: &mut MemoryLeft,
    ) -> Result<Option<ReferencedTask>, StoreError> {
        let Ok(id) = TaskId::parse(id) else {
            return Ok(None);
        };
        let now = self.engine.reader.clock.now();
        let tasks = &self.engine.tasks;
        let head = tasks.head(&self.owner, &id, now).await?;
        let Some(head) = head else {
            return Ok(None);
        };
        // A skill gets the artifacts of a referenced task, not its history.
        let wanted = Projection {
            history_length: 0,
            artifacts: true,
            bytes: left.stored,
        };
        let Some(read) = tasks.project(head, wanted, now).await? else {
            return Ok(None);
        };
        left.stored = left.stored.saturating_sub(read.read);
        if !read.complete {
            return Ok(None);
        }
        let reader = &self.engine.reader;
        let task = reader
            .load_task_files(&read.record, &mut left.files)
            .await?;
        Ok(Some(ReferencedTask::from(&task)))
    }
}

#[cfg(test)]
mod tests;
