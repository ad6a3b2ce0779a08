//! The handlers that a skill author writes.

use super::metadata::SkillMetadata;
use super::state::NeededState;
use super::{
    AgentError, AgentResult, Artifact, Content, NoSlot, OnInputResult, OnRequestResult, SkillInput,
    SkillOutput, SkillSlot, TaskContext,
};
use a2a_lambda_model::task::Caller;
use a2a_lambda_model::task::{ContextId, SkillId, TaskId, TaskState};
use std::future::Future;

/// The metadata of a skill; [`#[skill]`](macro@a2a_lambda_macros::skill) implements it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no skill metadata",
    note = "put `#[skill(id = \"…\", tags = [\"…\"])]` on it"
)]
pub trait Skill {
    /// The metadata.
    const METADATA: SkillMetadata;

    /// The hash of the sources of the skill, and of all that they depend on; empty if unknown.
    #[doc(hidden)]
    const SOURCES: &'static str = "";

    /// The states that the skill needs.
    #[doc(hidden)]
    fn states() -> Vec<NeededState> {
        Vec::new()
    }
}

/// The handlers of a skill.
///
/// `impl SkillHandler for X` is a one-shot skill: it answers a request in one turn. `impl
/// SkillHandler<Ask> for X` can ask questions and gets its slot back with the answer. Write
/// the handlers as plain `async fn`.
///
/// The engine runs a turn again after a crash. So put side effects into
/// [`TaskContext::step`], or give them an idempotency key made of task id, turn and step.
///
/// ```
/// use a2a_lambda::prelude::*;
/// use schemars::JsonSchema;
/// use serde::{Deserialize, Serialize};
///
/// /// Adds two numbers.
/// #[skill(id = "add", tags = ["math"])]
/// struct Add;
///
/// #[derive(Deserialize, JsonSchema)]
/// #[serde(deny_unknown_fields)]
/// struct Terms {
///     a: i64,
///     b: i64,
/// }
///
/// #[derive(Serialize, JsonSchema)]
/// struct Sum {
///     sum: i64,
/// }
///
/// impl SkillHandler for Add {
///     type Input = Terms;
///     type Output = Sum;
///     async fn on_request(
///         &self,
///         _: &mut TaskContext<'_>,
///         terms: Terms,
///     ) -> AgentResult<OnRequestResult<Sum>> {
///         match terms.a.checked_add(terms.b) {
///             Some(sum) => OnRequestResult::done(Sum { sum }),
///             None => Err(AgentError::domain("OVERFLOW", "the sum is too large")),
///         }
///     }
/// }
/// let agent = Agent::builder("calculator").skill(Add).build()?;
/// # Ok::<(), BuildError>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no skill",
    note = "put `#[skill(id = \"…\", tags = [\"…\"])]` on it; a struct also needs \
            `impl SkillHandler for …`"
)]
pub trait SkillHandler<S: SkillSlot = NoSlot>: Skill + Send + Sync + 'static {
    /// The input type. The engine decodes it before the task exists, so an invalid input
    /// makes no task.
    type Input: SkillInput;
    /// The output type.
    type Output: SkillOutput;

    /// Handles the first message of a task. It completes the work, or ends the turn with a
    /// question.
    ///
    /// # Errors
    /// An error fails the task.
    fn on_request(
        &self,
        cx: &mut TaskContext<'_>,
        input: Self::Input,
    ) -> impl Future<Output = AgentResult<OnRequestResult<Self::Output, S>>> + Send;

    /// Handles the answer to a question. `slot` is the slot of that question. A skill with
    /// a slot type must implement this method; otherwise it does not compile.
    ///
    /// # Errors
    /// An error fails the task.
    fn on_input_received(
        &self,
        cx: &mut TaskContext<'_>,
        slot: S,
        content: Content,
    ) -> impl Future<Output = AgentResult<OnInputResult<Self::Output, S>>> + Send {
        // The check runs when code is generated for a skill, so `cargo check` does not
        // report it.
        const {
            assert!(
                !S::CAN_ASK,
                "this skill has a slot type, so it must implement on_input_received"
            );
        }
        drop((cx, slot, content));
        async { Err(AgentError::internal("answer for a skill without a slot")) }
    }

    /// Runs after the task has ended in any state. The engine calls it once per commit that
    /// ends the task, for at most about one second, as best effort. It cannot change the
    /// task. A crash can skip it, so do not use it for work that must happen.
    fn on_completed(&self, task: &FinishedTask) -> impl Future<Output = ()> + Send {
        let _ = task;
        async {}
    }
}

/// A task that has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct FinishedTask {
    /// The task id.
    pub task_id: TaskId,
    /// The id of the context the task belongs to.
    pub context_id: ContextId,
    /// The skill that worked on it.
    pub skill: SkillId,
    /// The final state: completed, failed, canceled or rejected.
    pub state: TaskState,
    /// The artifacts of the task.
    pub artifacts: Vec<Artifact>,
    /// The caller of the task.
    pub caller: Caller,
}
