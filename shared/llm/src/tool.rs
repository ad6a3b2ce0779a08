//! Tools that a worker offers to a model.

use super::schema::ObjectSchema;
use a2a_lambda_skill::model::ModelTool;
use a2a_lambda_skill::{AgentError, AgentResult, Consent, Content, SkillInput, TaskContext, Tool};
use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fmt;
use std::sync::Arc;

type ToolFn = dyn Fn(Value) -> BoxFuture<'static, AgentResult<Value>> + Send + Sync;

/// An async function that a model may call.
///
/// Its closure cannot borrow `cx`. A tool that needs the task, its caller or a
/// [`State`](a2a_lambda_skill::State) is a skill instead, which need not be on the card of the
/// agent: see [`LlmWorker::skill`](super::LlmWorker::skill).
///
/// ```
/// use a2a_lambda::llm::LlmTool;
/// use a2a_lambda::prelude::*;
/// use schemars::JsonSchema;
/// use serde::Deserialize;
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Item {
///     /// The number of the article.
///     sku: String,
/// }
///
/// let stock = LlmTool::new("stock", "Counts the pieces on stock.", |item: Item| async move {
///     match item.sku.as_str() {
///         "A-1" => Ok(7_u32),
///         _ => Err(AgentError::invalid_input("there is no such article")),
///     }
/// });
/// ```
#[derive(Debug, Clone)]
pub struct LlmTool(OfferedTool);

impl LlmTool {
    /// A tool with a name of `[a-zA-Z0-9_-]{1,64}`. The model gets the description, and the
    /// JSON schema of `I` with the comments of its members. It gets the result as JSON, and the
    /// public text of an error.
    pub fn new<I, O, F, W>(name: impl Into<String>, description: impl Into<String>, call: F) -> Self
    where
        I: DeserializeOwned + JsonSchema + Send + 'static,
        O: Serialize,
        F: Fn(I) -> W + Send + Sync + 'static,
        W: Future<Output = AgentResult<O>> + Send + 'static,
    {
        let call = move |input: Value| -> BoxFuture<'static, AgentResult<Value>> {
            let input = decode::<I>(&input).map(&call);
            Box::pin(async move {
                let output = input?.await?;
                serde_json::to_value(output).map_err(AgentError::serialization)
            })
        };
        Self(OfferedTool {
            name: name.into(),
            description: description.into(),
            input: ObjectSchema::of(&I::schema()),
            confirm: false,
            run: ToolWork::Function(Arc::new(call)),
        })
    }
}

/// Decodes a value that a model wrote. The text of the error is for the model.
pub(super) fn decode<T: SkillInput>(value: &Value) -> AgentResult<T> {
    T::decode(&Content::from_data(value)?)
}

/// A tool of a worker.
#[derive(Clone)]
pub(super) struct OfferedTool {
    pub(super) name: String,
    description: String,
    pub(super) input: ObjectSchema,
    /// Whether the user is asked before it runs.
    pub(super) confirm: bool,
    run: ToolWork,
}

#[derive(Clone)]
enum ToolWork {
    Function(Arc<ToolFn>),
    Skill(Tool),
}

impl fmt::Debug for OfferedTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OfferedTool").field(&self.name).finish()
    }
}

impl From<LlmTool> for OfferedTool {
    fn from(tool: LlmTool) -> Self {
        tool.0
    }
}

impl From<Tool> for OfferedTool {
    fn from(tool: Tool) -> Self {
        Self {
            // Services take no dot in the name of a tool.
            name: tool.id().replace('.', "_"),
            description: tool.description().to_owned(),
            input: ObjectSchema::of(tool.input_schema()),
            confirm: tool.needs_confirmation(),
            run: ToolWork::Skill(tool),
        }
    }
}

impl OfferedTool {
    pub(super) fn with_confirmation(self) -> Self {
        Self {
            confirm: true,
            ..self
        }
    }

    /// What the model gets.
    pub(super) fn offer(&self) -> ModelTool {
        ModelTool {
            name: self.name.clone(),
            description: self.description.clone(),
            input_schema: self.input.schema.clone(),
        }
    }

    /// Whether it is a skill. Skills run one after the other: their steps have an order.
    pub(super) const fn is_skill(&self) -> bool {
        matches!(self.run, ToolWork::Skill(_))
    }

    /// Runs it, in the turn of `cx` if there is one. A skill to confirm needs the `consent`.
    pub(super) async fn run(
        &self,
        cx: Option<&TaskContext<'_>>,
        input: &Value,
        consent: Option<Consent>,
    ) -> AgentResult<Value> {
        let input = self.input.value(input);
        match (&self.run, cx) {
            (ToolWork::Function(call), _) => call(input).await,
            (ToolWork::Skill(skill), Some(cx)) => {
                let mut cx = cx.reborrow();
                skill.execute_for_model(&mut cx, &input, consent).await
            }
            // The type of the worker has no such method.
            (ToolWork::Skill(_), None) => Err(AgentError::internal("a skill runs in a task only")),
        }
    }
}

/// Whether services take `name` as the name of a tool.
pub(super) fn is_tool_name(name: &str) -> bool {
    let is_known = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    (1..=64).contains(&name.len()) && name.bytes().all(is_known)
}
