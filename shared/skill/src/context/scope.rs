//! Steps and scopes. A turn that runs again finds the result of a step by its path: the
//! steps and scopes around it, its name, and its number there.

use super::{TaskContext, from_value, to_value};
use crate::field_hash::step_hash;
use crate::turn_host::{ScopeId, StepInput, TurnHost};
use crate::{AgentError, AgentResult, CallNames};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::future::{Future, poll_fn};
use std::pin::pin;

impl TaskContext<'_> {
    /// Runs `future` once and stores its result. When the turn runs again, `step` returns the
    /// stored result and does not run `future`.
    ///
    /// The key of a result is the path of the step: the steps and scopes around it, `name`, and
    /// its number there (`pay#2>charge#1`). So a turn starts the steps of a scope in the same
    /// order each time, one after the other. Branches of a `join!` that have steps each need a
    /// [`TaskContext::scope`].
    ///
    /// A turn that runs again and starts another step at this position ends: its task fails with
    /// `STEP_CHANGED`. [`TaskContext::step_of`] also compares what the step was asked.
    ///
    /// # Errors
    /// The error of `future`, which is not stored. `SERIALIZATION` or `STATE_TOO_LARGE`.
    /// `STATE_INCOMPATIBLE` when the stored result does not decode as `T`. `INTERNAL_ERROR` when
    /// another step of the scope is open. Also when the result cannot be stored.
    pub async fn step<T: Serialize + DeserializeOwned>(
        &self,
        name: &str,
        future: impl Future<Output: StepOutput<T>>,
    ) -> AgentResult<T> {
        self.run_step(name, StepInput::default(), future).await
    }

    /// As [`TaskContext::step`], for a step that is asked `input`. A turn that runs again and
    /// asks something else ends: its task fails with `STEP_CHANGED`. A short hash of the input
    /// is stored with the result.
    ///
    /// # Errors
    /// As [`TaskContext::step`].
    pub async fn step_of<T: Serialize + DeserializeOwned>(
        &self,
        name: &str,
        input: &impl Serialize,
        future: impl Future<Output: StepOutput<T>>,
    ) -> AgentResult<T> {
        let hash = step_hash(name, input).map_err(AgentError::serialization)?;
        let input = StepInput {
            hash: Some(hash),
            circumstances: None,
            row: CallNames::row_of("step", Some(input)),
        };
        self.run_step(name, input, future).await
    }

    /// As [`TaskContext::step`], for a step that is asked `input`.
    ///
    /// # Errors
    /// As [`TaskContext::step`].
    pub async fn run_step<T: Serialize + DeserializeOwned>(
        &self,
        name: &str,
        input: StepInput,
        future: impl Future<Output: StepOutput<T>>,
    ) -> AgentResult<T> {
        let mut step = self.host.begin_step(name, input).await?;
        let open = Open {
            host: self.host,
            scope: step.scope,
        };
        if let Some(value) = step.value.take() {
            return from_value(value);
        }
        // Near the end of the invocation this never returns: the turn then runs again
        // elsewhere.
        self.host.may_start().await;
        let result = open.run(future).await.into();
        if let (Err(error), Some(trace)) = (&result, CallNames::current_trace()) {
            trace.failed(step.scope, error);
        }
        let result = result?;
        self.host.end_step(&step, to_value(&result)?).await?;
        Ok(result)
    }

    /// Runs `future` in a scope of its own: its steps have the scope in their paths and an order
    /// of their own. Branches that run at the same time each need one.
    ///
    /// # Errors
    /// The error of `future`. `INTERNAL_ERROR` when a scope of this name is open.
    pub async fn scope<T>(
        &self,
        name: &str,
        future: impl Future<Output: StepOutput<T>>,
    ) -> AgentResult<T> {
        let open = Open {
            host: self.host,
            scope: self.host.begin_scope(name)?,
        };
        open.run(future).await.into()
    }
}

/// What a step or a scope gives: an [`AgentResult`].
#[diagnostic::on_unimplemented(
    message = "a step gives an `AgentResult`, and this one gives a `{Self}`",
    note = "`?` makes an `AgentError` of the error of a file or a call: `async {{ Ok(read()?) }}`"
)]
pub trait StepOutput<T>: Into<AgentResult<T>> {}

impl<T> StepOutput<T> for AgentResult<T> {}

/// A step or scope that has begun. It ends when this value is dropped.
struct Open<'a> {
    host: &'a dyn TurnHost,
    scope: ScopeId,
}

impl Open<'_> {
    /// Runs `future` in the scope. Other futures of the turn run between two polls, so each poll
    /// enters the scope and leaves it.
    async fn run<F: Future>(&self, future: F) -> F::Output {
        let mut future = pin!(future);
        poll_fn(|task| {
            let outer = self.host.enter(self.scope);
            let poll = future.as_mut().poll(task);
            self.host.enter(outer);
            poll
        })
        .await
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.host.leave(self.scope);
    }
}
