//! A loop of a model and its tools.

use super::confirm::{LlmConfirm, LlmOutcome, LlmSlot, consent};
use super::conversation::{Approval, ConversationEnd, ModelHost, ModelSession};
use super::function::{answer_of, calls, setters};
use super::setup::{AnswerForm, LlmBudget, LlmSetup, TextArtifact};
use super::tool::{LlmTool, OfferedTool, decode};
use super::transcript::{self, LlmInput};
use a2a_lambda_model::thread::Thread;
use a2a_lambda_skill::gate::is_refusal;
use a2a_lambda_skill::model::{Model, ModelInput};
use a2a_lambda_skill::{
    AgentError, AgentResult, Content, FilePart, LoggedModel, SkillHandler, SkillSlot, TaskContext,
    Tool,
};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

/// The kind of a worker that never asks its user.
#[derive(Debug, Clone, Copy)]
pub enum Alone {}

/// The kind of a worker with tools that the user confirms. It runs in a task and may ask.
#[derive(Debug, Clone, Copy)]
pub enum Confirming {}

/// A model that works with tools until it has a `T`.
///
/// The model calls tools as often as it needs, within the [`LlmBudget`]. It gives its answer by
/// the tool `answer`, or as text if `T` is a text. It gets the error of a tool, and of a call
/// that does not fit, as the result of the call.
///
/// In a task each answer of the model and each result of a tool is a stored step. A turn that
/// runs again, in another process too, continues with the next call. A tool that was running
/// at the end of its process runs again.
///
/// ```
/// use a2a_lambda::llm::{LlmBudget, LlmTool, LlmWorker};
/// use a2a_lambda::prelude::*;
/// use schemars::JsonSchema;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize, JsonSchema)]
/// struct Plan {
///     steps: Vec<String>,
/// }
///
/// /// Reads the weather of a city.
/// #[skill(id = "weather", tags = ["tool"], effect = "read")]
/// async fn weather(city: String) -> AgentResult<String> {
///     Ok(format!("It rains in {city}."))
/// }
///
/// /// Plans a trip.
/// #[skill(id = "plan-trip", tags = ["travel"])]
/// async fn plan_trip(cx: &mut TaskContext<'_>, wish: String) -> AgentResult<Plan> {
///     let double = LlmTool::new("double", "Doubles.", |n: i64| async move { Ok(n * 2) });
///     LlmWorker::new("Plan the trip.")
///         .tool(double)
///         .skill(weather)
///         .budget(LlmBudget::default().turns(8))
///         .run(cx, &wish)
///         .await
/// }
/// ```
pub struct LlmWorker<T, K = Alone> {
    setup: LlmSetup,
    kind: PhantomData<fn() -> (T, K)>,
}

impl<T: DeserializeOwned + JsonSchema + Send + 'static> LlmWorker<T> {
    /// A worker with the instructions for the model.
    pub fn new(instructions: impl Into<String>) -> Self {
        Self {
            setup: LlmSetup::new(instructions.into()),
            kind: PhantomData,
        }
    }

    calls!();
}

impl<T, K> LlmWorker<T, K> {
    setters!();

    /// Sets what the worker may use up.
    #[must_use]
    pub const fn budget(mut self, budget: LlmBudget) -> Self {
        self.setup.budget = budget;
        self
    }

    /// Offers a function to the model.
    #[must_use]
    pub fn tool(mut self, tool: LlmTool) -> Self {
        self.setup.tools.push(tool.into());
        self
    }

    /// Offers a skill to the model. It runs in the turn of the worker: same caller, same task.
    /// As for [`skills`](Self::skills), one that writes is confirmed by the user.
    #[must_use]
    pub fn skill<S: SkillSlot, H: SkillHandler<S>>(self, skill: H) -> Self {
        self.skills([Tool::new(skill)])
    }

    /// Offers skills to the model, such as those of
    /// [`AgentDefinition::tools`](a2a_lambda_skill::AgentDefinition::tools). One that writes, or
    /// does not say that it reads, runs only after the user has confirmed the call: the worker has
    /// to be [`asking`](LlmWorker::asking), or the skill a tool that is [`Tool::trusted`]. Otherwise
    /// a run fails with `INTERNAL_ERROR`.
    #[must_use]
    pub fn skills(mut self, skills: impl IntoIterator<Item = Tool>) -> Self {
        let tools = skills.into_iter().map(OfferedTool::from);
        self.setup.tools.extend(tools);
        self
    }

    /// Offers a function that runs only after the user has confirmed it.
    #[must_use]
    pub fn confirm_tool(self, tool: LlmTool) -> LlmWorker<T, Confirming> {
        self.confirming(tool.into())
    }

    /// Offers a skill that runs only after the user has confirmed it.
    #[must_use]
    pub fn confirm_skill<S: SkillSlot, H: SkillHandler<S>>(
        self,
        skill: H,
    ) -> LlmWorker<T, Confirming> {
        self.confirming(Tool::new(skill).into())
    }

    /// Lets the worker ask its user to confirm calls of skills that write.
    #[must_use]
    pub fn asking(mut self) -> LlmWorker<T, Confirming> {
        self.setup.asks = true;
        LlmWorker {
            setup: self.setup,
            kind: PhantomData,
        }
    }

    fn confirming(mut self, tool: OfferedTool) -> LlmWorker<T, Confirming> {
        self.setup.tools.push(tool.with_confirmation());
        self.asking()
    }
}

impl<T: DeserializeOwned + JsonSchema + Send + 'static> LlmWorker<T, Confirming> {
    /// Lets the worker ask its user, once, when [`LlmBudget::tokens`] leave no room for more calls:
    /// after a `yes` it may use `max` tokens in all, after a `no` its next call is the last. The
    /// budgets of the task and of the day bind as before.
    #[must_use]
    pub const fn may_ask_for_more(mut self, max: u64) -> Self {
        self.setup.more_tokens = Some(max);
        self
    }

    /// Works until there is an answer, or a tool that the user has to confirm. The skill then
    /// asks the question and keeps the slot.
    ///
    /// # Errors
    /// As for other workers.
    pub async fn run(
        &self,
        cx: &TaskContext<'_>,
        input: impl ModelInput,
    ) -> AgentResult<LlmOutcome<T>> {
        let input = transcript::prompt(&self.setup, &input)?;
        let end = answer_of::<T>(&self.setup, ModelHost::Turn(cx), input).await?;
        self.outcome(cx, end)
    }

    /// As `run`, with the conversation of the task as its input. The answer, also one after a
    /// confirmation, becomes an event of its thread.
    ///
    /// # Errors
    /// As `run`.
    pub async fn chat(&self, cx: &TaskContext<'_>, thread: &Thread) -> AgentResult<LlmOutcome<T>> {
        let input = transcript::chat(&self.setup, thread);
        let end = answer_of::<T>(&self.setup, ModelHost::Turn(cx), input).await?;
        self.outcome(cx, end)
    }

    /// Continues with the answer of the user: `yes` runs the tools, or gives more tokens, and the
    /// model learns of a `no`. Other answers do not reach the skill; the client gets the question again. After a
    /// deployment that has changed the schema of a tool the worker asks a new question.
    ///
    /// # Errors
    /// As for other workers.
    pub async fn resume(
        &self,
        cx: &TaskContext<'_>,
        slot: LlmSlot,
        answer: &Content,
    ) -> AgentResult<LlmOutcome<T>> {
        let conversation = slot.0;
        let approval = match consent(cx, &conversation, &self.setup)? {
            Some(consent) => Approval::Given(consent),
            None if is_refusal(answer) => Approval::Refused,
            None => return self.outcome(cx, ConversationEnd::Confirm(conversation)),
        };
        let check = |value: &Value| decode::<T>(value).map(drop);
        let form = AnswerForm::of::<T>();
        // The answer has begun the turn, so its model answers have no other input.
        let input = Value::Null;
        let host = ModelHost::Turn(cx);
        let talk = ModelSession::new(&self.setup, host, form, &input, &check).await?;
        let talk = talk.with_files(self.setup.files.clone());
        let end = talk.run(conversation, Some(approval)).await?;
        self.outcome(cx, end)
    }

    fn outcome(&self, cx: &TaskContext<'_>, end: ConversationEnd) -> AgentResult<LlmOutcome<T>> {
        Ok(match end {
            ConversationEnd::Answer(value) => LlmOutcome::Answer(decode(&value)?),
            ConversationEnd::Confirm(conversation) => {
                LlmOutcome::Confirm(LlmConfirm::of(cx, conversation, &self.setup)?)
            }
        })
    }
}

impl<T, K> Clone for LlmWorker<T, K> {
    fn clone(&self) -> Self {
        Self {
            setup: self.setup.clone(),
            kind: PhantomData,
        }
    }
}

impl<T, K> fmt::Debug for LlmWorker<T, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.setup.fmt(f)
    }
}
