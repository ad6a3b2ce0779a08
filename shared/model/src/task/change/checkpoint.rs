//! Marks the output that a turn keeps if it runs again, and goes back to that mark.

use crate::task::{
    Artifact, Base, OutputCounts, SessionRead, TaskContent, TaskEvent, Timestamp, TransitionError,
};

impl TaskContent {
    /// Keeps the output so far if the turn runs again, and what it has read. `outputs` is how
    /// many outputs that are.
    pub(super) fn checkpoint(
        &mut self,
        outputs: OutputCounts,
        reads: Vec<SessionRead>,
    ) -> Result<(), TransitionError> {
        self.status.state.apply(TaskEvent::Progress)?;
        let before = std::mem::take(&mut self.base);
        self.set_base();
        self.base = Base {
            artifacts: std::mem::take(&mut self.base.artifacts),
            history: self.base.history,
            outputs,
            ..before
        };
        self.base.keep_reads(reads);
        Ok(())
    }

    /// Makes the current output the base that a restart keeps: a turn begins.
    pub(super) fn set_base(&mut self) {
        let parts = |artifact: &Artifact| (artifact.id.clone(), artifact.parts.len());
        let history = self.history.len() + usize::from(self.status.message.is_some());
        self.base = Base {
            artifacts: self.artifacts.iter().map(parts).collect(),
            history,
            turn_start: history,
            ..Base::default()
        };
        self.replaced.clear();
        self.layout.forget_replaced();
    }

    pub(super) fn is_past_base(&self) -> bool {
        let message_count = self.history.len() + usize::from(self.status.message.is_some());
        let has_grown = |artifact: &Artifact| {
            self.base
                .artifacts
                .get(&artifact.id)
                .is_none_or(|parts| *parts != artifact.parts.len())
        };
        message_count > self.base.history
            || !self.replaced.is_empty()
            || self.artifacts.iter().any(has_grown)
    }

    pub(super) fn back_to_base(&mut self) {
        self.history.extend(self.status.message.take());
        self.history.truncate(self.base.history);
        self.layout.keep_messages(self.base.history);
        let base = &self.base.artifacts;
        self.artifacts
            .retain(|artifact| base.contains_key(&artifact.id));
        let layout = &mut self.layout;
        layout.keep_artifacts(|id| base.contains_key(id));
        for before in self.replaced.drain(..) {
            layout.put_back(&before.id);
            if let Some(now) = self.artifacts.iter_mut().find(|now| now.id == before.id) {
                *now = before;
            }
        }
        for artifact in &mut self.artifacts {
            let parts = base.get(&artifact.id).copied().unwrap_or(0);
            artifact.parts.truncate(parts);
            layout.keep_parts(&artifact.id, parts);
        }
        layout.forget_replaced();
    }
}

impl TaskContent {
    /// Work of the turn is stored: its attempts count from 1 again.
    pub(super) fn make_progress(&mut self, at: Timestamp) {
        self.used.progress_at = Some(at);
        self.attempt = self.attempt.min(1);
    }
}
