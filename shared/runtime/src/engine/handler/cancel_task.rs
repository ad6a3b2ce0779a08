//! `CancelTask`: cancels a task in one conditional write.

use crate::auth::Caller;
use crate::engine::commit::{Commit, CommitOutcome};
use crate::engine::{Engine, EngineError};
use crate::skill::TurnFacts;
use crate::store::StoreError;
use crate::task::{A2aError, CancelCommand, Change, Task, TaskRecord, TaskState};
use crate::telemetry::scope;

/// How often the engine tries again after another write came first.
const ROUNDS: usize = 8;
/// The most messages of history in the response.
const HISTORY: usize = 100;

impl Engine {
    /// Cancels the task. After the response no later output becomes visible, since a
    /// running turn has the old epoch.
    ///
    /// # Errors
    /// [`A2aError::TaskNotFound`]; [`A2aError::TaskNotCancelable`] if the task has ended
    /// otherwise.
    pub async fn cancel(
        &self,
        caller: &Caller,
        command: &CancelCommand,
    ) -> Result<Task, EngineError> {
        let mut record = self.reader.load(caller, &command.id).await?;
        scope::note_skill_of(&record);
        for _ in 0..ROUNDS {
            // A2A 1.0 §3.3.1: multiple cancellation requests have the same effect.
            if record.state() == TaskState::Canceled {
                return self.reader.answer(&record, HISTORY).await;
            }
            if record.state().is_terminal() {
                return Err(A2aError::TaskNotCancelable {
                    state: record.state(),
                }
                .into());
            }
            match self
                .commit(Commit::new(record, vec![Change::Cancel]))
                .await?
            {
                CommitOutcome::Stored(record) => {
                    self.canceled(caller, &record).await;
                    return self.reader.answer(&record, HISTORY).await;
                }
                // The other write may have ended the task, so the cancel is decided
                // again.
                CommitOutcome::Lost(Some(current)) => record = current,
                CommitOutcome::Lost(None) => return Err(A2aError::TaskNotFound.into()),
                CommitOutcome::ThreadMoved | CommitOutcome::KeyTaken(_) => {
                    return Err(EngineError::broken(
                        "a cancel had a thread or key conflict, but writes neither",
                    ));
                }
            }
        }
        Err(StoreError::Unavailable("lost too many races".to_owned()).into())
    }

    /// Calls `on_completed` of the skill of a canceled task.
    async fn canceled(&self, caller: &Caller, record: &TaskRecord) {
        let skill = record.skill().and_then(|id| self.agent.skill(id));
        if let Some(skill) = skill {
            let facts = TurnFacts::of(record, caller);
            self.completed(&**skill, &facts, record).await;
        }
    }
}
