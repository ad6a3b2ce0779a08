//! `CancelTask`: cancels a task in one conditional write.

use super::Tasks;
use crate::auth::Caller;
use crate::engine::commit::contention::Races;
use crate::engine::commit::{CommitOutcome, task_of_key};
use crate::engine::error::EngineError;
use crate::engine::turn::Turns;
use crate::store::{IdempotencyEntry, KeyWrite};
use crate::task::{A2aError, CancelCommand, Change, Task, TaskRecord, TaskState};
use crate::telemetry::scope;
use a2a_lambda_skill::TurnFacts;

/// The most messages of history in the response.
const HISTORY: usize = 100;

impl Tasks {
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
        let record = self.reader.load(caller, &command.id).await?;
        scope::note_skill_of(&record);
        let record = self.turns.cancel_task(caller, record, None).await?;
        self.reader.answer(&record, HISTORY).await
    }

    /// Cancels a task as its owner would, for an operator.
    ///
    /// # Errors
    /// [`A2aError::TaskNotCancelable`] if the task has ended otherwise.
    pub async fn end_task(&self, record: TaskRecord) -> Result<TaskRecord, EngineError> {
        let caller = Caller::behind(&record.owner, record.request.as_ref());
        self.turns.cancel_task(&caller, record, None).await
    }
}

impl Turns {
    /// Cancels a task as it is stored now. The `key` is that of a send whose message does it.
    pub(in crate::engine) async fn cancel_task(
        &self,
        caller: &Caller,
        mut record: TaskRecord,
        key: Option<KeyWrite>,
    ) -> Result<TaskRecord, EngineError> {
        let mut races = Races::default();
        loop {
            let state = record.state();
            // A2A 1.0 §3.3.1: multiple cancellation requests have the same effect.
            if state == TaskState::Canceled {
                return Ok(record);
            }
            if state.is_terminal() {
                return Err(A2aError::TaskNotCancelable { state }.into());
            }
            let mut commit = self.commits.commit_of(record, Change::Cancel);
            commit.key.clone_from(&key);
            let outcome = self.commits.commit(commit).await?;
            if let (CommitOutcome::KeyTaken(entry), Some(key)) = (&outcome, &key) {
                return Ok(task_of_key(key, IdempotencyEntry::clone(entry))?);
            }
            match outcome.of_task()? {
                Ok(record) => {
                    self.notify_skill(caller, &record).await;
                    return Ok(record);
                }
                // The other write may have ended the task, so the cancel is decided again.
                Err(current) => record = current.ok_or(A2aError::TaskNotFound)?,
            }
            races.note_loss()?;
        }
    }

    /// Calls `on_completed` of the skill of a canceled task.
    async fn notify_skill(&self, caller: &Caller, record: &TaskRecord) {
        let skill = record.skill.as_ref().and_then(|id| self.agent.skill(id));
        if let Some(skill) = skill {
            let facts = TurnFacts::of(record, caller);
            self.call_on_completed(&**skill, &facts, record).await;
        }
    }
}
