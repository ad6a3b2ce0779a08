//! What an author writes: a skill's metadata and its handlers.

use super::{
    AgentError, AgentResult, Artifact, Content, NoSlot, OnInputResult, OnRequestResult, SkillInput,
    SkillOutput, SkillSlot, TaskContext,
};
use crate::auth::Caller;
use crate::task::{ContextId, SkillId, TaskId, TaskState};
use serde::Serialize;
use std::future::Future;

/// What a skill says about itself, in the agent's card and to the router.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SkillMetadata {
    /// `[a-z0-9][a-z0-9._-]{0,63}`, unique in the agent.
    pub id: &'static str,
    /// For people; empty = the id.
    pub name: &'static str,
    /// What it does; never empty.
    pub description: &'static str,
    /// Key words; never empty.
    pub tags: &'static [&'static str],
    /// Requests it answers.
    pub examples: &'static [&'static str],
    /// Media types it takes; empty = what the input type implies.
    pub input_modes: &'static [&'static str],
    /// Media types it gives; empty = what the output type implies.
    pub output_modes: &'static [&'static str],
    /// Whether its work is handed to a worker at once: recommended above about
    /// 20 s.
    pub background: bool,
}

impl SkillMetadata {
    /// Metadata with only what is needed.
    #[must_use]
    pub const fn new(
        id: &'static str,
        description: &'static str,
        tags: &'static [&'static str],
    ) -> Self {
        Self {
            id,
            name: "",
            description,
            tags,
            examples: &[],
            input_modes: &[],
            output_modes: &[],
            background: false,
        }
    }
}

/// The metadata of a skill; [`#[skill]`](macro@crate::skill) writes it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no skill metadata",
    note = "put `#[skill(id = \"…\", tags = [\"…\"])]` on it"
)]
pub trait Skill {
    /// The metadata.
    const METADATA: SkillMetadata;
}

/// The handlers of a skill.
///
/// `impl SkillHandler for X` is one-shot; `impl SkillHandler<Ask> for X` can
/// ask, and gets its slot back with the answer. Write the handlers as plain
/// `async fn`. A turn may run more than once (after a crash): do outside
/// effects in [`TaskContext::step`] or with a key of task, turn and step.
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
pub trait SkillHandler<S: SkillSlot = NoSlot>: Skill + Send + Sync + 'static {
    /// What it takes; read before a task exists.
    type Input: SkillInput;
    /// What it gives.
    type Output: SkillOutput;

    /// Answers a request: the whole way if it can, else up to a question.
    ///
    /// # Errors
    /// An error fails the task.
    fn on_request(
        &self,
        cx: &mut TaskContext<'_>,
        input: Self::Input,
    ) -> impl Future<Output = AgentResult<OnRequestResult<Self::Output, S>>> + Send;

    /// Goes on with the answer to a question. A skill with a slot must
    /// implement it: otherwise it does not build.
    ///
    /// # Errors
    /// An error fails the task.
    fn on_input_received(
        &self,
        cx: &mut TaskContext<'_>,
        slot: S,
        content: Content,
    ) -> impl Future<Output = AgentResult<OnInputResult<Self::Output, S>>> + Send {
        const {
            assert!(
                !S::CAN_ASK,
                "this skill has a slot type, so it must implement on_input_received"
            );
        }
        drop((cx, slot, content));
        async { Err(AgentError::internal("an answer to a skill that never asks")) }
    }

    /// Runs after the task has ended, in whatever way, once per ending commit,
    /// for about a second at most and best effort: it can change nothing any
    /// more, and what must happen belongs elsewhere.
    fn on_completed(&self, task: &Settled) -> impl Future<Output = ()> + Send {
        let _ = task;
        async {}
    }
}

/// A task that has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Settled {
    /// Its id.
    pub task_id: TaskId,
    /// Its conversation.
    pub context_id: ContextId,
    /// The skill that worked on it.
    pub skill: SkillId,
    /// Completed, failed, canceled or rejected.
    pub state: TaskState,
    /// What it delivered.
    pub artifacts: Vec<Artifact>,
    /// Who asked.
    pub caller: Caller,
}
