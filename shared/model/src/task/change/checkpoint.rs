//! Marks the output that a turn keeps if it runs again, and goes back to that mark.

use crate::task::child_layout::truncate;
use crate::task::{Artifact, Base, Event, Saved, TaskEvent, TaskFields, TransitionError};
use serde_json::Value;
use std::collections::BTreeMap;

impl TaskFields {
    /// Saves a value. The output so far is kept if the turn runs again.
    pub(super) fn checkpoint(
        &mut self,
        key: String,
        value: Value,
        place: impl FnOnce(&mut Saved) -> &mut BTreeMap<String, Value>,
    ) -> Result<Option<Event>, TransitionError> {
        self.status.state.apply(TaskEvent::Progress)?;
        self.set_base();
        place(&mut self.saved).insert(key, value);
        Ok(None)
    }

    /// Makes the current output the base that a restart keeps.
    pub(super) fn set_base(&mut self) {
        let parts = |artifact: &Artifact| (artifact.id.clone(), artifact.parts.len());
        let history = self.history.len() + usize::from(self.status.message.is_some());
        self.base = Base {
            artifacts: self.artifacts.iter().map(parts).collect(),
            history,
        };
        self.replaced.clear();
        self.layout.replaced.clear();
    }

    pub(super) fn is_past_base(&self) -> bool {
        let said = self.history.len() + usize::from(self.status.message.is_some());
        let grown = |artifact: &Artifact| {
            self.base
                .artifacts
                .get(&artifact.id)
                .is_none_or(|parts| *parts != artifact.parts.len())
        };
        said > self.base.history || !self.replaced.is_empty() || self.artifacts.iter().any(grown)
    }

    pub(super) fn back_to_base(&mut self) {
        self.history.extend(self.status.message.take());
        self.history.truncate(self.base.history);
        truncate(&mut self.layout.history, self.base.history);
        let base = &self.base.artifacts;
        self.artifacts
            .retain(|artifact| base.contains_key(&artifact.id));
        let placed = &mut self.layout;
        placed.artifacts.retain(|id, _| base.contains_key(id));
        for before in self.replaced.drain(..) {
            placed.put_back(&before.id);
            if let Some(now) = self.artifacts.iter_mut().find(|now| now.id == before.id) {
                *now = before;
            }
        }
        for artifact in &mut self.artifacts {
            let parts = base.get(&artifact.id).copied().unwrap_or(0);
            artifact.parts.truncate(parts);
            if let Some(segments) = placed.artifacts.get_mut(&artifact.id) {
                truncate(segments, parts);
            }
        }
        placed.replaced.clear();
    }
}
