//! A loop of a model and its tools.

use super::budget::LlmBudget;
use super::confirm::{LlmConfirm, LlmOutcome, LlmSlot, approval};
use super::conversation::{ConversationEnd, Place, Talk};
use super::function::{answer_of, setters};
use super::setup::{AnswerForm, LlmSetup, TextArtifact};
use super::tool::{LlmTool, OfferedTool, decoded};
use super::transcript::{self, LlmInput};
use a2a_lambda_model::thread::Thread;
use a2a_lambda_skill::model::Model;
use a2a_lambda_skill::{
    AgentError, AgentResult, Content, SkillHandler, SkillSlot, TaskContext, Tool,
};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

/// The kind of a worker whose tools are functions. It also runs without a task.
#[derive(Debug, Clone, Copy)]
pub enum Alone {}

/// The kind of a worker with skills among its tools. It runs in a task.
#[derive(Debug, Clone, Copy)]
pub enum InTask {}

/// The kind of a worker with tools that the user confirms. It runs in a task and may ask.
#[derive(Debug, Clone, Copy)]
pub enum Confirming {}

/// A kind of worker.
pub trait LlmWorkerKind: sealed::Sealed {
    /// The kind with a skill among its tools.
    type WithSkill: LlmWorkerKind;
}

mod sealed {
    /// Only this crate has kinds of workers.
    pub trait Sealed {}
}

impl sealed::Sealed for Alone {}
impl sealed::Sealed for InTask {}
impl sealed::Sealed for Confirming {}

impl LlmWorkerKind for Alone {
    type WithSkill = InTask;
}
impl LlmWorkerKind for InTask {
    type WithSkill = Self;
}
impl LlmWorkerKind for Confirming {
    type WithSkill = Self;
}

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
/// #[skill(id = "weather", tags = ["tool"])]
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
    /// A worker with the instructions for the model. Its steps are named after `T`.
    pub fn new(instructions: impl Into<String>) -> Self {
        Self {
            setup: LlmSetup::new(&T::schema_name(), instructions.into()),
            kind: PhantomData,
        }
    }

    /// Works with `model`, without a task, an agent or a runtime. Nothing is stored.
    ///
    /// # Errors
    /// As [`LlmWorker::run`].
    pub async fn run_with(&self, model: &dyn Model, input: impl Serialize) -> AgentResult<T> {
        self.answer(Place::Program(model), transcript::prompt(&input)?)
            .await
    }

    /// Works with `model` on a conversation that the caller holds. Nothing is stored: the
    /// caller adds the answer to the thread.
    ///
    /// # Errors
    /// As [`LlmWorker::run`].
    pub async fn chat_with(&self, model: &dyn Model, thread: &Thread) -> AgentResult<T> {
        self.answer(Place::Program(model), transcript::chat(thread))
            .await
    }
}

impl<T, K: LlmWorkerKind> LlmWorker<T, K> {
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
    #[must_use]
    pub fn skill<S: SkillSlot, H: SkillHandler<S>>(self, skill: H) -> LlmWorker<T, K::WithSkill> {
        self.skills([Tool::new(skill)])
    }

    /// Offers skills to the model, such as those of
    /// [`AgentDefinition::tools`](a2a_lambda_skill::AgentDefinition::tools).
    #[must_use]
    pub fn skills(self, skills: impl IntoIterator<Item = Tool>) -> LlmWorker<T, K::WithSkill> {
        self.with(skills.into_iter().map(OfferedTool::from))
    }

    /// Offers a function that runs only after the user has confirmed it.
    #[must_use]
    pub fn confirm_tool(self, tool: LlmTool) -> LlmWorker<T, Confirming> {
        self.with([OfferedTool::from(tool).confirmed()])
    }

    /// Offers a skill that runs only after the user has confirmed it.
    #[must_use]
    pub fn confirm_skill<S: SkillSlot, H: SkillHandler<S>>(
        self,
        skill: H,
    ) -> LlmWorker<T, Confirming> {
        self.with([OfferedTool::from(Tool::new(skill)).confirmed()])
    }

    fn with<L>(mut self, tools: impl IntoIterator<Item = OfferedTool>) -> LlmWorker<T, L> {
        self.setup.tools.extend(tools);
        LlmWorker {
            setup: self.setup,
            kind: PhantomData,
        }
    }
}

/// The workers that never ask.
macro_rules! answering {
    ($kind:ty) => {
        impl<T: DeserializeOwned + JsonSchema + Send + 'static> LlmWorker<T, $kind> {
            /// Works with the model of the agent, in the turn of `cx`. The instructions of the
            /// agent come before those of the worker.
            ///
            /// # Errors
            /// `BUDGET_EXCEEDED` or `DEADLINE` when the budget is used up. `MODEL_OUTPUT` when
            /// the second answer does not decode either, or ends at the limit of tokens.
            /// `MODEL_UNAVAILABLE` without a model. The errors of the model, and of a step.
            pub async fn run(&self, cx: &TaskContext<'_>, input: impl Serialize) -> AgentResult<T> {
                self.answer(Place::Turn(cx), transcript::prompt(&input)?)
                    .await
            }

            /// As `run`, with a conversation as its input.
            ///
            /// # Errors
            /// As `run`.
            pub async fn chat(&self, cx: &TaskContext<'_>, thread: &Thread) -> AgentResult<T> {
                self.answer(Place::Turn(cx), transcript::chat(thread)).await
            }
        }
    };
}

answering!(Alone);
answering!(InTask);

impl<T: DeserializeOwned + JsonSchema + Send + 'static, K> LlmWorker<T, K> {
    async fn answer(&self, place: Place<'_>, input: LlmInput) -> AgentResult<T> {
        match answer_of::<T>(&self.setup, place, input).await? {
            ConversationEnd::Answer(value) => decoded(&value),
            ConversationEnd::Confirm(_) => Err(AgentError::internal(
                "a tool to confirm in a worker without",
            )),
        }
    }
}

impl<T: DeserializeOwned + JsonSchema + Send + 'static> LlmWorker<T, Confirming> {
    /// Works until there is an answer, or a tool that the user has to confirm. The skill then
    /// asks the question and keeps the slot.
    ///
    /// # Errors
    /// As for other workers.
    pub async fn run(
        &self,
        cx: &TaskContext<'_>,
        input: impl Serialize,
    ) -> AgentResult<LlmOutcome<T>> {
        let input = transcript::prompt(&input)?;
        let end = answer_of::<T>(&self.setup, Place::Turn(cx), input).await?;
        self.outcome(end)
    }

    /// Continues with the answer of the user. A confirmation is `yes`, `ok` or `true`, or the
    /// data `{"confirm": true}`. The model gets any other answer as a refusal, with its words.
    ///
    /// # Errors
    /// As for other workers. `MISSING_INPUT` for an answer without text or data.
    pub async fn resume(
        &self,
        cx: &TaskContext<'_>,
        slot: LlmSlot,
        answer: &Content,
    ) -> AgentResult<LlmOutcome<T>> {
        let check = |value: &Value| decoded::<T>(value).map(drop);
        let form = AnswerForm::of::<T>();
        // The answer has begun the turn, so its model answers have no other input.
        let input = Value::Null;
        let talk = Talk::new(&self.setup, Place::Turn(cx), form, &input, &check).await?;
        let end = talk.run(slot.0, Some(approval(answer)?)).await?;
        self.outcome(end)
    }

    fn outcome(&self, end: ConversationEnd) -> AgentResult<LlmOutcome<T>> {
        Ok(match end {
            ConversationEnd::Answer(value) => LlmOutcome::Answer(decoded(&value)?),
            ConversationEnd::Confirm(conversation) => {
                let tools = self.setup.tools.iter().filter(|tool| tool.confirm);
                let names: Vec<&str> = tools.map(|tool| tool.name.as_str()).collect();
                let confirms = |call: &super::conversation::ToolCall| names.contains(&&*call.name);
                LlmOutcome::Confirm(LlmConfirm::of(conversation, confirms))
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
