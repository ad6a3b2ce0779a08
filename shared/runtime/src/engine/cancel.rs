//! `CancelTask`: one conditional write that nobody can take back.

use super::commit::{Outcome, Race};
use super::{Engine, EngineError};
use crate::auth::Caller;
use crate::skill::TurnFacts;
use crate::store::StoreError;
use crate::task::{CancelCommand, Change, Refusal, Task, TaskRecord};

/// How often a lost race is decided again.
const ROUNDS: usize = 8;
/// Messages of history a canceled task is answered with.
const HISTORY: usize = 100;

impl Engine {
    /// Ends the task. After the answer no later output becomes visible: the
    /// epoch of a running turn has passed.
    ///
    /// # Errors
    /// [`Refusal::TaskNotFound`]; [`Refusal::TaskNotCancelable`] at a terminal
    /// state, a second cancel included.
    pub async fn cancel(
        &self,
        caller: &Caller,
        command: &CancelCommand,
    ) -> Result<Task, EngineError> {
        let mut record = self.reader.load(caller, &command.id).await?;
        for _ in 0..ROUNDS {
            if record.state().is_terminal() {
                return Err(Refusal::TaskNotCancelable {
                    state: record.state(),
                }
                .into());
            }
            match self
                .commit(record, vec![Change::Cancel], None, Race::Decide)
                .await?
            {
                Outcome::Stored(record) => {
                    self.canceled(caller, &record).await;
                    return self.reader.answer(&record, HISTORY).await;
                }
                Outcome::Lost(Some(current)) => record = current,
                Outcome::Lost(None) => return Err(Refusal::TaskNotFound.into()),
                Outcome::ThreadMoved | Outcome::KeyTaken(_) => {
                    return Err(EngineError::broken("a cancel touches no thread and no key"));
                }
            }
        }
        Err(StoreError::Unavailable("lost too many races".to_owned()).into())
    }

    async fn canceled(&self, caller: &Caller, record: &TaskRecord) {
        let skill = record.skill.as_ref().and_then(|id| self.agent.skill(id));
        if let Some(skill) = skill {
            let facts = TurnFacts::of(record, caller);
            self.completed(&**skill, &facts, record).await;
        }
    }
}
