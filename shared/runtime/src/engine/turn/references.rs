//! The tasks that a message refers to (A2A 1.0 §3.4), loaded when the skill reads them.

use super::spec::TurnSpec;
use crate::engine::Engine;
use crate::store::{Projection, StoreError, stored};
use crate::task::{Owner, TaskId};
use a2a_lambda_skill::ReferencedTask;
use a2a_lambda_skill::turn_host::References;
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
    references: OnceCell<References>,
}

/// What all these tasks together may still load into memory.
struct MemoryLeft {
    /// Bytes outside the tasks' own DynamoDB items.
    bytes: usize,
    /// Bytes of files.
    files: u64,
}

impl<'e> NamedTasks<'e> {
    pub(in crate::engine) fn new(engine: &'e Engine, spec: &TurnSpec) -> Self {
        let mut distinct = BTreeSet::new();
        let mut ids = spec.facts.references.clone();
        ids.retain(|id| distinct.insert(id.clone()));
        Self {
            engine,
            owner: spec.record.owner().clone(),
            ids,
            references: OnceCell::new(),
        }
    }

    /// The tasks; the first successful call loads them.
    pub(in crate::engine) async fn load(&self) -> Result<&References, StoreError> {
        self.references.get_or_try_init(|| self.look()).await
    }

    /// Loads one task after the other, so that the content of one is dropped before the
    /// next.
    async fn look(&self) -> Result<References, StoreError> {
        let mut references = References::default();
        let mut budget = MemoryLeft {
            bytes: stored::MAX_BYTES,
            files: self.engine.reader.policy.response_max as u64,
        };
        for (index, id) in self.ids.iter().enumerate() {
            let task = match index {
                ..LOADED => self.task(id, &mut budget).await?,
                _ => None,
            };
            match task {
                Some(task) => references.tasks.push(task),
                None => references.unknown_ids.push(id.clone()),
            }
        }
        Ok(references)
    }

    /// A task, if the caller may read it and all its artifacts still fit. Another
    /// caller's task, an expired one and an absent one give the same result.
    async fn task(
        &self,
        id: &str,
        budget: &mut MemoryLeft,
    ) -> Result<Option<ReferencedTask>, StoreError> {
        let Ok(id) = TaskId::parse(id) else {
            return Ok(None);
        };
        let now = self.engine.reader.clock.now();
        let records = &self.engine.records;
        let head = records.head(&self.owner, &id, now).await?;
        let Some(head) = head else {
            return Ok(None);
        };
        // A skill gets the artifacts of a referenced task, not its history.
        let projection = Projection {
            history_length: 0,
            artifacts: true,
            bytes: budget.bytes,
        };
        let Some(excerpt) = records.project(head, projection, now).await? else {
            return Ok(None);
        };
        budget.bytes = budget.bytes.saturating_sub(excerpt.read);
        if !excerpt.complete {
            return Ok(None);
        }
        let reader = &self.engine.reader;
        let task = reader
            .load_task_files(&excerpt.record, &mut budget.files)
            .await?;
        Ok(Some(ReferencedTask::from(&task)))
    }
}

#[cfg(test)]
mod tests;
