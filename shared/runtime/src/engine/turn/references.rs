//! The tasks that a message refers to (A2A 1.0 §3.4), loaded when the skill reads them.

use super::spec::TurnSpec;
use crate::engine::reader::Reader;
use crate::store::{Projection, StoreError, stored};
use crate::task::{Owner, TaskId};
use a2a_lambda_skill::ReferencedTask;
use a2a_lambda_skill::turn_host::References;
use std::collections::BTreeSet;
use tokio::sync::OnceCell;

/// At most this many tasks are loaded.
const LOADED: usize = 16;

/// The newest of the tasks that a message names: the last ones, each once, in its order. Clients
/// append the newest.
pub(in crate::engine) fn newest(ids: &[String]) -> Vec<&String> {
    let mut distinct = BTreeSet::new();
    let newest = ids.iter().rev().filter(|id| distinct.insert(*id));
    let mut newest: Vec<_> = newest.take(LOADED).collect();
    newest.reverse();
    newest
}

/// The task ids that a turn's message names, and what was found.
pub(in crate::engine) struct NamedTasks<'e> {
    reader: &'e Reader,
    owner: Owner,
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
    pub(in crate::engine) fn new(reader: &'e Reader, spec: &TurnSpec) -> Self {
        Self {
            reader,
            owner: spec.record.owner.clone(),
            ids: spec.facts.references.clone(),
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
            files: self.reader.policy.response_max as u64,
        };
        let newest = newest(&self.ids);
        let mut distinct = BTreeSet::new();
        let older = self
            .ids
            .iter()
            .filter(|id| !newest.contains(id) && distinct.insert(*id));
        references.unknown_ids.extend(older.cloned());
        for id in newest {
            match self.task(id, &mut budget).await? {
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
        let now = self.reader.clock.now();
        let records = &self.reader.records;
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
        let task = self
            .reader
            .load_task_files(&excerpt.record, &mut budget.files)
            .await?;
        Ok(Some(ReferencedTask::from(&task)))
    }
}

#[cfg(test)]
mod tests;
