//! Keeps the results of steps, waits and saved values, and gives them to the skill.

use super::TurnHandle;
use crate::clock::lock;
use crate::engine::turn::command::SkillCommand;
use crate::engine::turn::scopes::StepProgress;
use crate::engine::turn_break::TurnBreak;
use crate::store::stored;
use crate::task::{Saved, StepOutcome, StepResult, StepTries, is_below};
use a2a_lambda_skill::turn_host::{ScopeId, Step, StepInput, TryPolicy};
use a2a_lambda_skill::{AgentError, AgentResult};
use serde_json::Value;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::oneshot;

/// The longest wait for which a run waits itself.
const IN_PLACE_MAX: Duration = Duration::from_secs(2);
/// The most bytes of all errors of a turn, beside the limit of its state.
const ERRORS_MAX: usize = 64 * 1024;

impl TurnHandle<'_> {
    /// Changes what the task keeps, unless it would keep too much. The skill may continue
    /// after the error, with the values from before.
    pub(super) fn keep(&self, change: impl FnOnce(&mut Saved)) -> AgentResult<()> {
        let mut saved_turn = lock(&self.saved_turn);
        let mut next = saved_turn.clone();
        change(&mut next);
        let errors = size_of_errors(&next);
        let size = stored::saved_size(&next).saturating_sub(errors);
        self.turns.reader.policy.check_state_size(size)?;
        if errors > ERRORS_MAX {
            let (current, limit) = (errors as u64, ERRORS_MAX as u64);
            return Err(AgentError::state_too_large(current, limit));
        }
        *saved_turn = next;
        Ok(())
    }

    /// The result of a step that an earlier run has stored, when the skill gets it.
    pub(super) async fn find_result(&self, step: &Step) -> Option<AgentResult<Value>> {
        let result = lock(&self.saved_turn).steps.get(&step.key).cloned();
        if let Err(error) = self.scopes.check(step, result.as_ref()) {
            self.signal.end(TurnBreak::Changed(error)).await;
        }
        let outcome = result.as_ref().and_then(|result| match &result.outcome {
            StepOutcome::Value(value) => Some(Ok(value.clone())),
            StepOutcome::Error(error) => Some(Err(AgentError::of_step(error.clone()))),
            _ => None,
        });
        if let Some(trace) = &self.trace {
            trace.begin_step(self.scopes.around(), step, outcome.as_ref());
        }
        let result = result?;
        let Some(number) = result.number else {
            self.scopes.set_progress(&step.key, StepProgress::Abandoned);
            return std::future::pending().await;
        };
        self.note_circumstances(&step.key, result.circumstances_hash.as_ref(), &step.input);
        self.scopes.wait_for_stored(&step.key, number).await;
        let mut operations = self.turn_thread.operations();
        operations.replay(&step.key.as_str().into(), &result);
        outcome
    }

    /// Logs that a stored result depends on something that is different now.
    fn note_circumstances(&self, key: &str, hash: Option<&String>, input: &StepInput) {
        if hash != input.circumstances.as_ref() {
            let id = &self.task_id;
            tracing::info!(a2a.task = %id, step = key, "task `{id}` keeps the result of a step that would be asked differently now");
        }
    }

    /// Waits until a try of the step may begin: all stored results were given, all results of
    /// this run are stored, and there is time.
    pub(super) async fn wait_for_try(&self, step: &Step) {
        self.hold(&step.key).await;
        let due = lock(&self.tries).get(&step.key).map(|tries| tries.due);
        if let Some(due) = due {
            self.turns.reader.clock.sleep_until(due).await;
        }
        self.flush().await;
        let now = self.turns.reader.clock.now();
        if self.stop_at.is_some_and(|at| at <= now) {
            // The event loop drops this future when it takes the request. If the loop has
            // ended already, the turn does not continue.
            let _ended = self.ask(SkillCommand::Stop);
            std::future::pending::<()>().await;
        }
        self.brake.pass(&self.scopes, &step.key).await;
    }

    /// Waits until a step or wait without a result may begin.
    async fn hold(&self, path: &str) {
        let has_inner = {
            let saved_turn = lock(&self.saved_turn);
            let mut paths = saved_turn.steps.keys();
            paths.any(|inner| is_below(inner, path))
        };
        self.scopes.wait_for_turn(path, has_inner).await;
    }

    /// Waits until all results of this run are stored, those too that come meanwhile. Several
    /// branches may wait at a time.
    async fn flush(&self) {
        loop {
            let count = self.backlog.load(Ordering::Relaxed);
            let (ack, receiver) = oneshot::channel();
            let is_stored = self.stored_backlog.load(Ordering::Relaxed) == count;
            if is_stored || self.ask(SkillCommand::Flush(ack)).is_err() {
                return;
            }
            let _call = self.scopes.call();
            let _ended = receiver.await;
            self.stored_backlog.fetch_max(count, Ordering::Relaxed);
        }
    }

    /// Whether a step that failed is tried again; then it returns after the wait. A long wait
    /// ends this run, unless another step still needs it.
    pub(super) async fn wait_for_next_try(
        &self,
        step: &Step,
        policy: TryPolicy,
        error: &AgentError,
    ) -> bool {
        let mut tries = lock(&self.tries)
            .get(&step.key)
            .map_or(0, |tries| tries.count);
        tries += 1;
        let wait = policy.wait_after(tries, error);
        let Some(wait) = wait.filter(|_| !self.scopes.has_ended_step(step.scope)) else {
            return false;
        };
        let due = self.turns.reader.clock.now().plus(wait);
        lock(&self.tries).insert(step.key.clone(), StepTries { count: tries, due });
        if let Some(trace) = &self.trace {
            trace.note(step.scope, Err(error));
            trace.leave(step.scope);
        }
        if wait > IN_PLACE_MAX && self.makes_task && self.scopes.is_only_step(&step.key) {
            self.signal.end(TurnBreak::Waits(due)).await;
        }
        self.turns.reader.clock.sleep_until(due).await;
        if let Some(trace) = &self.trace {
            trace.begin_step(self.scopes.around(), step, None);
        }
        self.turn_thread.operations().take_back(&step.key);
        self.scopes.begin_again(step.scope);
        true
    }

    /// Keeps the result of a step, and gives it to the skill.
    pub(super) async fn keep_result(
        &self,
        step: &Step,
        result: AgentResult<Value>,
    ) -> AgentResult<()> {
        if let Err(error) = self.scopes.check_end(&step.key) {
            self.signal.end(TurnBreak::Changed(error)).await;
        }
        lock(&self.tries).remove(&step.key);
        self.turns.reader.clock.delay_end().await;
        let at = self.turns.reader.clock.now();
        let is_beside_branch = self.scopes.is_beside_branch(&step.key);
        let number = self.scopes.number(&step.key, at);
        let mut result = result.map_err(AgentError::settle);
        let step_result = loop {
            let outcome = match &result {
                Ok(value) => StepOutcome::Value(value.clone()),
                Err(error) => StepOutcome::Error(error.to_step()),
            };
            let step_result = StepResult {
                ordinal: step.ordinal,
                input_hash: step.input.hash.clone(),
                circumstances_hash: step.input.circumstances.clone(),
                is_beside_branch,
                ..StepResult::at_place(outcome, Some(number), at)
            };
            let step_result = self.with_operations(&step.key, step_result);
            let (key, change) = (step.key.clone(), step_result.clone());
            match self.keep(|values| values.complete_step(key, change)) {
                Ok(()) => break step_result,
                // A result that cannot be kept is an error.
                Err(error) if result.is_ok() => result = Err(error.settle()),
                Err(error) => self.signal.end(TurnBreak::Failed(error)).await,
            }
        };
        if let Some(trace) = &self.trace {
            trace.note(step.scope, result.as_ref());
        }
        self.send_result(&step.key, step_result, result.is_ok())
            .await?;
        self.scopes.make_ready(number);
        self.scopes.wait_until_given(&step.key, number).await;
        result.map(drop)
    }

    /// The result with what the step did to the thread.
    fn with_operations(&self, path: &str, result: StepResult) -> StepResult {
        let operations = self.turn_thread.operations();
        let updates = operations.updates_of(path);
        StepResult {
            operations: operations.stored_of(&updates),
            ..result
        }
    }

    /// Sends a result to the event loop. If it `is_awaited` this returns when it is stored.
    async fn send_result(
        &self,
        path: &str,
        result: StepResult,
        is_awaited: bool,
    ) -> AgentResult<()> {
        let (ack, receiver) = oneshot::channel();
        self.ask(SkillCommand::Step {
            key: path.to_owned(),
            updates: self.turn_thread.operations().updates_of(path),
            result: Box::new(result),
            reads: self.reads.take(),
            ack: is_awaited.then_some(ack),
        })?;
        if is_awaited {
            return receiver.await.map_err(|_| AgentError::canceled());
        }
        self.backlog.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// The skill drops the step, wait or scope at this path before its end. No run of the turn
    /// does its work again.
    pub(super) fn abandon(&self, path: &str, ordinal: u32) {
        let earlier = lock(&self.saved_turn).steps.get(path).cloned();
        let Some(progress) = self.scopes.drop_path(path) else {
            return;
        };
        lock(&self.tries).remove(path);
        if let (Some(earlier), StepProgress::Asked | StepProgress::Abandoned) = (&earlier, progress)
        {
            let mut operations = self.turn_thread.operations();
            operations.replay(&path.into(), earlier);
        }
        if progress == StepProgress::Abandoned {
            return;
        }
        let at = self.turns.reader.clock.now();
        let result = StepResult {
            ordinal,
            ..StepResult::at_place(StepOutcome::Abandoned, None, at)
        };
        let result = self.with_operations(path, result);
        lock(&self.saved_turn).complete_step(path.to_owned(), result.clone());
        let _ended = self.ask(SkillCommand::Step {
            key: path.to_owned(),
            updates: self.turn_thread.operations().updates_of(path),
            result: Box::new(result),
            reads: self.reads.take(),
            ack: None,
        });
        self.backlog.fetch_add(1, Ordering::Relaxed);
    }

    /// Waits as long as the skill asks, unless the wait is over in an earlier run.
    pub(super) async fn wait(&self, name: &str, duration: Duration) -> AgentResult<()> {
        let path = self.scopes.begin_wait(name);
        let result = lock(&self.saved_turn).steps.get(&path).cloned();
        let mut open = OpenResult {
            turn: self,
            path: &path,
            is_over: false,
        };
        match result {
            Some(StepResult {
                number: Some(number),
                ..
            }) => self.scopes.wait_for_stored(&path, number).await,
            Some(_) => {
                self.scopes.set_progress(&path, StepProgress::Abandoned);
                std::future::pending::<()>().await;
            }
            None => {
                self.hold(&path).await;
                let clock = &self.turns.reader.clock;
                clock.sleep_until(clock.now().plus(duration)).await;
                let at = clock.now();
                let number = self.scopes.number(&path, at);
                let result = StepResult {
                    is_beside_branch: self.scopes.is_beside_branch(&path),
                    ..StepResult::at_place(StepOutcome::Waited, Some(number), at)
                };
                self.keep(|values| values.complete_step(path.clone(), result.clone()))?;
                self.send_result(&path, result, false).await?;
                self.scopes.make_ready(number);
                self.scopes.wait_until_given(&path, number).await;
            }
        }
        open.is_over = true;
        Ok(())
    }

    /// Waits until a value that an earlier run saved has its turn among the results.
    async fn wait_for_save(&self, path: &str, number: u64) {
        let mut open = OpenSave(self, path, false);
        self.scopes.wait_for_stored(path, number).await;
        open.2 = true;
    }

    /// Waits until a scope may end. If it continues behind a saved value, a branch beside it may
    /// have won before that value was given.
    pub(super) async fn wait_to_end(&self, scope: ScopeId) {
        if let Some((path, number)) = self.scopes.save_before(scope) {
            self.wait_for_save(&path, number).await;
        }
    }

    /// Saves a value of the task. Outside of steps a save has a place in the order of results, and
    /// is not written again by a run that comes to this place.
    pub(super) async fn save_data(&self, key: String, value: Value) -> AgentResult<()> {
        let at = self.turns.reader.clock.now();
        let mut order = None;
        if !self.scopes.is_in_step() {
            let path = self.scopes.begin_save(&key);
            let earlier = lock(&self.saved_turn).steps.get(&path).cloned();
            if let Some(number) = earlier.and_then(|result| result.number) {
                self.wait_for_save(&path, number).await;
                return Ok(());
            }
            let number = self.scopes.number_save(&path, at);
            order = Some((path, number));
        }
        let mut save_place = Box::new(self.scopes.save_place(at));
        save_place.operations = self.turn_thread.operations().count(&save_place.scope);
        let mut open = order.as_ref().map(|(path, _)| OpenSave(self, path, false));
        self.keep(|saved_turn| {
            saved_turn.data.insert(key.clone(), value.clone());
            if let Some((path, number)) = &order {
                let result = StepResult::from_save(*number, at);
                saved_turn.steps.insert(path.clone(), result);
            }
        })?;
        lock(&self.saves).insert(key.clone(), None);
        let (ack, receiver) = oneshot::channel();
        self.ask(SkillCommand::Save {
            key,
            value,
            save_place,
            order: order.clone(),
            reads: self.reads.take(),
            ack,
        })?;
        receiver.await.map_err(|_| AgentError::canceled())?;
        if let Some((path, number)) = &order {
            self.scopes.make_ready(*number);
            self.scopes.wait_until_given(path, *number).await;
        }
        if let Some(open) = &mut open {
            open.2 = true;
        }
        Ok(())
    }
}

/// A wait that has begun. If it is dropped before its end, the skill has abandoned it.
struct OpenResult<'a> {
    turn: &'a TurnHandle<'a>,
    path: &'a str,
    is_over: bool,
}

impl Drop for OpenResult<'_> {
    fn drop(&mut self) {
        if !self.is_over && !self.turn.is_closed.load(Ordering::Relaxed) {
            self.turn.abandon(self.path, 0);
        }
    }
}

/// A save that has begun. If it is dropped before its end, no result waits for it.
struct OpenSave<'a>(&'a TurnHandle<'a>, &'a str, bool);

impl Drop for OpenSave<'_> {
    fn drop(&mut self) {
        if !self.2 {
            self.0.scopes.drop_path(self.1);
        }
    }
}

/// The bytes of the stored errors.
fn size_of_errors(values: &Saved) -> usize {
    let errors = values
        .steps
        .iter()
        .filter_map(|(path, result)| match &result.outcome {
            StepOutcome::Error(error) => Some(path.len() + size_of_json(error)),
            _ => None,
        });
    errors.sum()
}

fn size_of_json(value: &impl serde::Serialize) -> usize {
    serde_json::to_vec(value).map_or(0, |bytes| bytes.len())
}
