//! Finishes a turn: applies the skill's outcome as the task's last commit of the turn.

use super::spec::TurnEnd;
use super::state_size::check_state_size;
use super::thread::TurnThread;
use super::write_buffer::{WriteBuffer, opens_a_turn, size_of};
use crate::engine::accept::context_status::serves_as_thread;
use crate::engine::commit::contention::exhausted;
use crate::engine::commit::{Commit, CommitOutcome};
use crate::engine::error::Cause;
use crate::engine::{Engine, EngineError};
use crate::store::{StoreError, stored};
use crate::task::metadata_keys;
use crate::task::{A2aError, Change, ContextId, Message, Part, TaskRecord, WriteId};
use a2a_lambda_model::redact::without_values;
use a2a_lambda_skill::{AgentError, AuthHint, Content, Settled, TurnFacts};
use a2a_lambda_skill::{AnySkill, SkillOutcome};
use futures::FutureExt as _;
use serde_json::{Value, json};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

/// The most time that `on_completed` may take.
const HOOK_TIME: Duration = Duration::from_secs(1);

impl WriteBuffer<'_> {
    /// Stores the skill's outcome, with everything that is not stored yet.
    ///
    /// # Errors
    /// When the store is unavailable; then the turn is released.
    pub(in crate::engine) async fn finish_turn(
        mut self,
        outcome: SkillOutcome,
        turn_thread: &TurnThread<'_>,
    ) -> Result<TurnEnd, EngineError> {
        match outcome {
            SkillOutcome::Message(content) if self.is_unseen() => {
                let reply = self.says(content);
                let alone = self.alone(reply.clone(), turn_thread);
                if self.is_given(&alone, turn_thread).await? {
                    return Ok(TurnEnd::Message(alone));
                }
                // No response can hold the reply: the client gets a task, and fetches the
                // large values by URL.
                self.push(Change::Complete {
                    message: Some(reply),
                });
            }
            mut outcome => {
                self.end_chunks(&mut outcome);
                self.apply_outcome(outcome);
            }
        }
        // A transaction with the thread opens it, and takes the pointer along.
        if turn_thread.is_unchanged() {
            match self.placement(false) {
                Some(placement) => placement.await?,
                None if self.record.version() > 0 => turn_thread.extend(&self.record).await,
                None => {}
            }
        }
        let (base, changes) = self.take();
        let changes = Arc::new(changes);
        let result = if turn_thread.is_unchanged() {
            let commit = self.commit_of(base.clone(), Arc::clone(&changes));
            Box::pin(self.engine.commit(commit)).await
        } else {
            Box::pin(self.finish_with_thread(&base, &changes, turn_thread)).await
        };
        let commit_outcome = match result {
            Err(error) if too_large(&error) || error.of_the_skill().is_some() => {
                self.give_up(base, &changes, &error).await?
            }
            result => result?,
        };
        if self.stored(commit_outcome).await? {
            Ok(TurnEnd::Stopped(self.record))
        } else {
            Ok(TurnEnd::Superseded(self.winner))
        }
    }

    /// Makes the final commit, with the turn's thread changes in the same transaction.
    /// After a lost race for the thread it applies them to the thread's new state.
    async fn finish_with_thread(
        &mut self,
        base: &TaskRecord,
        changes: &Arc<Vec<Change>>,
        turn_thread: &TurnThread<'_>,
    ) -> Result<CommitOutcome, EngineError> {
        let mut changes = Arc::clone(changes);
        // All tries share one write id, so that a try that was stored without a
        // response is recognised. The objects are stored once, however many tries the
        // commit needs.
        let write = self.engine.write_id(base);
        self.engine.store_blobs(base, &write, &mut changes).await?;
        let mut races = self.engine.races(turn_thread.stop_at());
        loop {
            match self.attempt(&write, base, &changes, turn_thread).await {
                // Another task may have written the thread: read it again.
                Ok(CommitOutcome::ThreadMoved) => {}
                Err(error) if error.is_contended() => {}
                decided => return decided,
            }
            if !self.engine.back_off(&mut races).await {
                return self.exhausted(base, changes).await;
            }
        }
    }

    /// One try of the final commit, on the thread as it is stored now.
    async fn attempt(
        &self,
        write: &WriteId,
        base: &TaskRecord,
        changes: &Arc<Vec<Change>>,
        turn_thread: &TurnThread<'_>,
    ) -> Result<CommitOutcome, EngineError> {
        let commit = self
            .commit_of(base.clone(), Arc::clone(changes))
            .with_thread(turn_thread.write().await?)
            .under(write.clone());
        self.engine.commit(commit).await
    }

    /// Fails a turn that lost every race for its thread until its time was over. The
    /// skill does not run again. The task keeps what the skill made.
    async fn exhausted(
        &mut self,
        base: &TaskRecord,
        changes: Arc<Vec<Change>>,
    ) -> Result<CommitOutcome, EngineError> {
        let mut changes = Arc::unwrap_or_clone(changes);
        let last = match changes.pop() {
            Some(failed @ Change::Fail { .. }) => failed,
            _ => {
                let error = AgentError::deadline().with_cause(&exhausted());
                self.engine.failure(base, &error)
            }
        };
        changes.push(last);
        self.place(false).await?;
        let commit = self.commit_of(base.clone(), changes);
        self.engine.commit(commit).await
    }

    /// A commit of the turn without its thread.
    fn commit_of(&self, base: TaskRecord, changes: impl Into<Arc<Vec<Change>>>) -> Commit {
        Commit::of_turn(base, changes).with_pointer(self.has_pointer)
    }

    /// A reply that is the whole response: it names no task.
    fn alone(&self, mut reply: Message, turn_thread: &TurnThread<'_>) -> Message {
        reply.task_id = None;
        let is_stored = !turn_thread.is_unchanged() || !serves_as_thread(&self.record);
        if !is_stored {
            // A2A 1.0, `Message` in a2a.proto: a message of the server names a context. Nothing
            // of this one is stored, so the client can begin it with its next message.
            reply.context_id = reply.context_id.map(ContextId::offered);
        }
        if self.reads_text_alone() {
            reply.parts.iter_mut().for_each(Part::show_as_text);
        }
        reply
    }

    /// Whether the reply alone is the response. The turn's thread changes are stored
    /// first, since no task carries them.
    ///
    /// # Errors
    /// When the changes cannot be stored; then nothing has changed.
    async fn is_given(
        &self,
        reply: &Message,
        turn_thread: &TurnThread<'_>,
    ) -> Result<bool, EngineError> {
        if !self.engine.reader.can_give(reply) {
            return Ok(false);
        }
        if turn_thread.is_unchanged() {
            return Ok(true);
        }
        let mut races = self.engine.races(turn_thread.stop_at());
        loop {
            let mut last_error = exhausted().into();
            let result = match turn_thread.write().await {
                // The context was deleted meanwhile: nothing of it is kept.
                Ok(None) => return Ok(true),
                Ok(Some(thread)) => self.engine.keep_thread(&thread).await,
                Err(error) => Err(error),
            };
            match result {
                Ok(true) => return Ok(true),
                Ok(false) => {}
                // The client learns of this from a task, which fails when it is stored.
                Err(error) if too_large(&error) || error.of_the_skill().is_some() => {
                    return Ok(false);
                }
                Err(error) if error.is_contended() => last_error = error,
                Err(error) => return Err(error),
            }
            if !self.engine.back_off(&mut races).await {
                return Err(last_error);
            }
        }
    }

    /// Fails the task without the changes that can never be stored. A new task keeps its
    /// opening.
    ///
    /// # Errors
    /// [`A2aError::StateTooLarge`] if the opening alone is too large; then nothing is
    /// stored.
    pub(super) async fn give_up(
        &mut self,
        base: TaskRecord,
        changes: &[Change],
        error: &EngineError,
    ) -> Result<CommitOutcome, EngineError> {
        let size = changes.iter().map(size_of).sum::<usize>() as u64;
        let (current, allowed) = match error.a2a_error {
            A2aError::StateTooLarge { current, allowed } => (current, allowed),
            _ => (size, stored::OPEN_MAX_BYTES as u64),
        };
        let opening = changes
            .iter()
            .filter(|it| base.version() == 0 && opens_a_turn(it));
        let mut final_changes: Vec<Change> = opening.cloned().collect();
        let error = match error.of_the_skill() {
            Some(error) => error.clone(),
            None => AgentError::state_too_large(current, allowed),
        };
        final_changes.push(self.engine.failure(&base, &error));
        self.place(false).await?;
        self.engine
            .commit(self.commit_of(base, final_changes))
            .await
    }

    /// The failure of a turn with output that cannot be stored. It drops what is not
    /// stored.
    pub(in crate::engine) fn overflow(&mut self) -> AgentError {
        AgentError::state_too_large(self.discard() as u64, stored::OPEN_MAX_BYTES as u64)
    }

    /// The outcome, or a failure if the task would keep too much with it.
    fn within_limits(&self, outcome: SkillOutcome) -> SkillOutcome {
        let slot = match &outcome {
            SkillOutcome::InputRequired { slot, .. } | SkillOutcome::AuthRequired { slot, .. } => {
                slot
            }
            _ => return outcome,
        };
        let current = stored::saved_size(&self.saved_with(slot));
        let limit = self.engine.reader.policy.state_max_bytes;
        match check_state_size(current, limit) {
            Ok(()) => outcome,
            Err(error) => SkillOutcome::Failed(error.into()),
        }
    }

    /// Turns the skill's return value into changes.
    fn apply_outcome(&mut self, outcome: SkillOutcome) {
        let last = match self.within_limits(outcome) {
            SkillOutcome::Message(content) => Change::Complete {
                message: Some(self.says(content)),
            },
            SkillOutcome::InputRequired { message, slot } => Change::AskInput {
                message: self.says(message),
                slot,
            },
            SkillOutcome::AuthRequired {
                message,
                slot,
                auth,
            } => Change::AskAuth {
                message: self.asks_auth(message, &auth),
                slot,
            },
            SkillOutcome::Completed { message, artifacts } => {
                for artifact in artifacts {
                    let update = self.update(artifact, false, true);
                    self.push(Change::Artifact(update));
                }
                Change::Complete {
                    message: message.map(|content| self.says(content)),
                }
            }
            SkillOutcome::Failed(error) => self.engine.failure(&self.record, &error),
            SkillOutcome::Rejected { reason } => Change::Reject {
                message: self.says(Content::from_text(reason)),
            },
        };
        self.push(last);
    }

    fn asks_auth(&self, message: Content, auth: &AuthHint) -> Message {
        let mut message = self.says(message);
        // A2A 1.0 §7.6: the status message says what the client has to authorise.
        let hint = json!({ "authType": auth.auth_type, "service": auth.service });
        message
            .metadata
            .insert(metadata_keys::AUTH.to_owned(), hint);
        message
    }
}

impl Engine {
    /// A failure: public text, code and details. The cause is logged here, once, and
    /// never sent.
    pub(in crate::engine) fn failure(&self, record: &TaskRecord, error: &AgentError) -> Change {
        let code = error.code();
        log_failure(record, error);
        if let Some(report) = &self.failures {
            report(error);
        }
        let mut message = self.says(record, Content::from_text(error.text()));
        let details = Value::Object(error.details().clone());
        message
            .metadata
            .insert(metadata_keys::ERROR_CODE.to_owned(), json!(code.as_str()));
        message
            .metadata
            .insert(metadata_keys::ERROR_DETAILS.to_owned(), details);
        Change::Fail { message }
    }

    /// Calls the skill's `on_completed` after the task has ended. The call is best
    /// effort, has 1 s, and can change nothing.
    pub(in crate::engine) async fn completed(
        &self,
        skill: &dyn AnySkill,
        facts: &TurnFacts,
        record: &TaskRecord,
    ) {
        if !record.state().is_terminal() {
            return;
        }
        let Some(settled_task) = settled(record, facts) else {
            return;
        };
        let hook = AssertUnwindSafe(skill.on_completed(&settled_task)).catch_unwind();
        let clock = &self.reader.clock;
        let timer = clock.sleep_until(clock.now().plus(HOOK_TIME));
        let result = futures::future::select(Box::pin(hook), timer).await;
        let ok = matches!(result, futures::future::Either::Left((Ok(()), _)));
        if !ok {
            tracing::warn!(task.id = %record.id(), "on_completed of task `{}` did not finish", record.id());
        }
    }
}

/// Logs at level ERROR, which alerts an operator, only what the agent caused. A failure
/// that a caller can cause is logged at INFO.
fn log_failure(record: &TaskRecord, error: &AgentError) {
    // The cause may quote what a client sent.
    let cause = error.cause().map(without_values);
    let (id, code) = (record.id(), error.code().as_str());
    if error.code().is_expected() {
        tracing::info!(task.id = %id, error.code = code, error.cause = cause, "a turn of task `{id}` failed");
    } else {
        tracing::error!(task.id = %id, error.code = code, error.cause = cause, "a turn of task `{id}` failed");
    }
}

fn settled(record: &TaskRecord, facts: &TurnFacts) -> Option<Settled> {
    Some(Settled {
        task_id: record.id().clone(),
        context_id: record.context_id().clone(),
        skill: record.skill().cloned()?,
        state: record.state(),
        artifacts: record.artifacts().iter().cloned().map(Into::into).collect(),
        caller: facts.caller.clone(),
    })
}

/// Whether the store can never accept what was to be stored.
pub(in crate::engine) const fn too_large(error: &EngineError) -> bool {
    matches!(error.cause, Some(Cause::Store(StoreError::TooLarge(_))))
        || matches!(error.a2a_error, A2aError::StateTooLarge { .. })
}

#[cfg(test)]
mod tests;
