//! What a sweep reads of the tasks in memory: the open ones, and those that objects name.

use super::MemoryStore;
use crate::store::StoreError;
use crate::store::queue::{ObjectsPlace, OpenTask, SweepObjects, SweepTasks};
use crate::task::{TaskKey, TaskRecord, ThreadKey};
use async_trait::async_trait;

#[async_trait]
impl SweepObjects for MemoryStore {
    async fn load_by_key(&self, key: &TaskKey) -> Result<Option<TaskRecord>, StoreError> {
        Ok(self.tables().tasks.get(key).cloned())
    }

    async fn head_by_key(&self, key: &TaskKey) -> Result<Option<TaskRecord>, StoreError> {
        self.load_by_key(key).await
    }

    async fn state_object(&self, _: &ThreadKey) -> Result<Option<String>, StoreError> {
        // This store keeps a thread in one piece.
        Ok(None)
    }

    async fn content_objects(&self, _: &TaskKey) -> Result<Vec<String>, StoreError> {
        Ok(Vec::new())
    }

    async fn objects_place(&self) -> Result<Option<ObjectsPlace>, StoreError> {
        Ok(self.tables().objects_place.clone())
    }

    async fn note_objects_place(&self, place: &ObjectsPlace) -> Result<(), StoreError> {
        self.tables().objects_place = Some(place.clone());
        Ok(())
    }
}

#[async_trait]
impl SweepTasks for MemoryStore {
    async fn open_tasks(
        &self,
        _: u32,
        after: Option<String>,
        limit: usize,
    ) -> Result<(Vec<OpenTask>, Option<String>), StoreError> {
        let after = after.as_deref().map(open_place).transpose()?;
        let tables = self.tables();
        let index = tables.lagging.as_ref().unwrap_or(&tables.tasks);
        let mut found: Vec<_> = index
            .iter()
            .filter(|(key, record)| tables.is_open(key, record))
            .map(|(key, record)| {
                let at = record.created_at().as_millis();
                ((at, key.tenant().as_str(), key.local()), record)
            })
            .filter(|(place, _)| after.is_none_or(|after| *place > after))
            .collect();
        found.sort_by_key(|(place, _)| *place);
        let more = found.len() > limit.max(1);
        found.truncate(limit.max(1));
        let next = found.last().filter(|_| more);
        let next = next.map(|((at, tenant, local), _)| format!("{at}#{tenant}#{local}"));
        let tasks = found.into_iter().map(|(_, record)| OpenTask {
            owner: record.owner().clone(),
            task: record.id().clone(),
        });
        Ok((tasks.collect(), next))
    }
}

/// Parses a position in the open tasks: creation time, tenant, local name.
fn open_place(text: &str) -> Result<(i64, &str, &str), StoreError> {
    text.split_once('#')
        .and_then(|(at, key)| Some((at.parse().ok()?, key.split_once('#')?)))
        .map(|(at, (tenant, local))| (at, tenant, local))
        .ok_or_else(|| {
            StoreError::Refused(format!(
                "position `{text}` in the open tasks is not `<ms>#<tenant>#<name>`"
            ))
        })
}
