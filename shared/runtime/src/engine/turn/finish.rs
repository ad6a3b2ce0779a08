//! Finishes a turn: applies the skill's outcome as the task's last commit of the turn.

use super::spec::TurnEnd;
use super::thread::TurnThread;
use super::write_buffer::WriteBuffer;
use crate::engine::commit::contention::contention_error;
use crate::engine::commit::{CommitOutcome, OnConflict};
use crate::engine::error::EngineError;
use crate::engine::turn::Turns;
use crate::task::metadata_keys;
use crate::task::{Change, ContextId, Message, Part, TaskRecord};
use crate::telemetry::outcomes::{FaultClass, TASKS, class_of};
use a2a_lambda_model::redact::without_values;
use a2a_lambda_skill::{AgentError, AuthHint, Content, FinishedTask, TurnFacts};
use a2a_lambda_skill::{AnySkill, SkillOutcome};
use futures::FutureExt as _;
use serde_json::{Value, json};
use std::panic::AssertUnwindSafe;
use std::time::Duration;

/// The most time that `on_completed` may take.
const HOOK_TIME: Duration = Duration::from_secs(1);

impl WriteBuffer<'_> {
    /// Stores the skill's outcome, with everything that is not stored yet.
    pub(in crate::engine) async fn finish_turn(
        mut self,
        outcome: SkillOutcome,
        turn_thread: &TurnThread<'_>,
    ) -> Result<TurnEnd, EngineError> {
        match outcome {
            SkillOutcome::Message { message: content } if self.is_unseen() => {
                let reply = self.agent_message(content);
                let alone = self.taskless_reply(reply.clone(), turn_thread);
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
            match self.context_link(false) {
                Some(placement) => placement.await?,
                None if self.record.version > 0 => turn_thread.extend(&self.record).await,
                None => {}
            }
        }
        let commit = self.next_commit(OnConflict::Reapply);
        let result = match commit.prepare(&self.turns.commits.files).await {
            Ok(commit) => {
                self.note_objects(&commit);
                turn_thread.commit(commit, None).await
            }
            Err(error) => Err(error),
        };
        let result = match result {
            // The turn lost every race for its thread until its time was over. The skill does
            // not run again. The task keeps what the skill made.
            Ok(CommitOutcome::ThreadMoved) => {
                let fail = match self.take_back() {
                    Some(fail @ Change::Fail { .. }) => fail,
                    _ => {
                        let error = AgentError::deadline().with_cause(&contention_error());
                        self.turns.failure(&self.record, &error)
                    }
                };
                self.fail(fail).await
            }
            result => result,
        };
        self.end(result).await
    }

    /// A reply that is the whole response: it names no task.
    fn taskless_reply(&self, mut reply: Message, turn_thread: &TurnThread<'_>) -> Message {
        reply.task_id = None;
        let is_stored = !turn_thread.is_unchanged() || !self.record.names_its_context();
        if !is_stored {
            // A2A 1.0, `Message` in a2a.proto: a message of the server names a context. Nothing
            // of this one is stored, so the client can begin it with its next message.
            reply.context_id = reply.context_id.map(ContextId::into_offer);
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
        if !self.turns.reader.can_give(reply) {
            return Ok(false);
        }
        if turn_thread.is_unchanged() {
            return Ok(true);
        }
        let mut races = self.turns.commits.races(turn_thread.stop_at);
        loop {
            let mut last_error = contention_error().into();
            let result = match turn_thread.write(None).await {
                // The context was deleted meanwhile: nothing of it is kept.
                Ok(None) => return Ok(true),
                Ok(Some(thread)) => {
                    let write = self.turns.commits.records.put_thread(&thread);
                    write.await.map_err(EngineError::from)
                }
                Err(error) => Err(error),
            };
            match result {
                Ok(true) => return Ok(true),
                Ok(false) => {}
                // The client learns of this from a task, which fails when it is stored.
                Err(error) if error.ends_task(0).is_some() => return Ok(false),
                Err(error) if error.is_contended() => last_error = error,
                Err(error) => return Err(error),
            }
            if !self.turns.commits.back_off(&mut races).await {
                return Err(last_error);
            }
        }
    }

    /// Turns the skill's return value into changes.
    fn apply_outcome(&mut self, outcome: SkillOutcome) {
        let last = match outcome {
            SkillOutcome::Message { message: content } => Change::Complete {
                message: Some(self.agent_message(content)),
            },
            SkillOutcome::InputRequired { message, slot } => Change::AskInput {
                message: self.agent_message(message),
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
            SkillOutcome::Completed {
                message, artifacts, ..
            } => {
                for artifact in artifacts {
                    let update = self.update(artifact);
                    self.push(Change::Artifact(update));
                }
                Change::Complete {
                    message: message.map(|content| self.agent_message(content)),
                }
            }
            SkillOutcome::Failed { error } => self.turns.failure(&self.record, &error),
            SkillOutcome::Rejected { reason } => Change::Reject {
                message: self.agent_message(Content::from_text(reason)),
            },
        };
        self.push(last);
    }

    fn asks_auth(&self, message: Content, auth: &AuthHint) -> Message {
        let mut message = self.agent_message(message);
        // A2A 1.0 §7.6: the status message says what the client has to authorise.
        let hint = json!({ "authType": auth.auth_type, "service": auth.service });
        message
            .metadata
            .insert(metadata_keys::AUTH.to_owned(), hint);
        message
    }
}

impl Turns {
    /// A failure: public text, code and details. The cause is logged here, once, and
    /// never sent.
    pub(in crate::engine) fn failure(&self, record: &TaskRecord, error: &AgentError) -> Change {
        let code = error.code();
        log_failure(record, error);
        if let Some(trace) = self.commits.trace() {
            let now = self.reader.clock.now();
            trace.event(record, ("failure", code.as_str()), now, |row| {
                row.add("cause", &error.cause());
            });
        }
        if let Some(report) = &self.failures {
            report(error);
        }
        let mut message = self.agent_message(
            &record.id,
            &record.context_id,
            Content::from_text(error.text()),
        );
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
    pub(in crate::engine) async fn call_on_completed(
        &self,
        skill: &dyn AnySkill,
        facts: &TurnFacts,
        record: &TaskRecord,
    ) {
        let Some(skill_id) = record
            .skill
            .as_ref()
            .filter(|_| record.state().is_terminal())
        else {
            return;
        };
        let settled_task = FinishedTask {
            task_id: record.id.clone(),
            context_id: record.context_id.clone(),
            skill: skill_id.clone(),
            state: record.state(),
            artifacts: record.artifacts.iter().cloned().map(Into::into).collect(),
            caller: facts.caller.clone(),
        };
        let hook = AssertUnwindSafe(skill.on_completed(&settled_task)).catch_unwind();
        let clock = &self.reader.clock;
        let timer = clock.sleep_until(clock.now().plus(HOOK_TIME));
        let result = futures::future::select(Box::pin(hook), timer).await;
        let ok = matches!(result, futures::future::Either::Left((Ok(()), _)));
        if !ok {
            tracing::warn!(a2a.task = %&record.id, "on_completed of task `{}` did not finish", &record.id);
        }
    }
}

/// Logs at level ERROR, which alerts an operator, only what the agent caused. A failure
/// that a caller can cause is logged at INFO.
fn log_failure(record: &TaskRecord, error: &AgentError) {
    // The cause may quote what a client sent.
    let cause = error.cause().map(without_values);
    let (id, code) = (&record.id, error.code().as_str());
    if class_of(TASKS, code) == FaultClass::Caller {
        tracing::info!(a2a.task = %id, a2a.error = code, error.cause = cause, "a turn of task `{id}` failed");
    } else {
        tracing::error!(a2a.task = %id, a2a.error = code, error.cause = cause, "a turn of task `{id}` failed");
    }
}

#[cfg(test)]
mod tests;
