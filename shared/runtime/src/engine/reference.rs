//! The tasks that a message refers to (A2A 1.0 §3.4): loaded when its skill
//! looks at them, and not before.

use super::Engine;
use super::run::Work;
use crate::skill::ReferencedTask;
use crate::skill::host::References;
use crate::store::StoreError;
use crate::task::{Owner, TaskId};
use futures::future::try_join_all;
use std::collections::BTreeSet;
use tokio::sync::OnceCell;

/// At most this many of the tasks are loaded, each once.
const LOADED: usize = 16;

/// What a turn's message names, and what was found of it.
pub(super) struct Named<'e> {
    engine: &'e Engine,
    owner: Owner,
    /// Each id once, in the order of the message.
    ids: Vec<String>,
    loaded: OnceCell<References>,
}

impl<'e> Named<'e> {
    pub(super) fn new(engine: &'e Engine, work: &Work) -> Self {
        let mut seen = BTreeSet::new();
        let mut ids = work.facts.references.clone();
        ids.retain(|id| seen.insert(id.clone()));
        Self {
            engine,
            owner: work.record.owner.clone(),
            ids,
            loaded: OnceCell::new(),
        }
    }

    /// The tasks, loaded at the first call that succeeds.
    pub(super) async fn load(&self) -> Result<&References, StoreError> {
        self.loaded.get_or_try_init(|| self.look()).await
    }

    async fn look(&self) -> Result<References, StoreError> {
        let mut found = References::default();
        let looks = self.ids.iter().take(LOADED).map(|id| self.task(id));
        let tasks = try_join_all(looks).await?;
        let unread = self.ids.iter().skip(LOADED).map(|_| None);
        for (id, task) in self.ids.iter().zip(tasks.into_iter().chain(unread)) {
            match task {
                Some(task) => found.found.push(task),
                None => found.unresolved.push(id.clone()),
            }
        }
        Ok(found)
    }

    /// A task, if the caller may read it. Another's, an expired one and one
    /// that never was look alike.
    async fn task(&self, id: &str) -> Result<Option<ReferencedTask>, StoreError> {
        let Ok(id) = TaskId::parse(id) else {
            return Ok(None);
        };
        let now = self.engine.reader.clock.now();
        let found = self.engine.tasks.load(&self.owner, &id, now).await?;
        let Some(record) = found.filter(|record| !record.hidden) else {
            return Ok(None);
        };
        // A skill is shown what was delivered, not what was said.
        let task = self.engine.reader.delivered(&record).await?;
        Ok(Some(ReferencedTask::from(&task)))
    }
}
