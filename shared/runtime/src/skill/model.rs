//! A model, as skills and the router see it: two methods.

use super::AgentResult;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use serde_json::Value;

/// A language model. An implementation maps these few types to its provider
/// and the provider's errors to the `model_…` constructors of
/// [`AgentError`](super::AgentError).
pub trait Model: Send + Sync {
    /// One answer, whole.
    fn converse(&self, request: ModelRequest) -> BoxFuture<'_, AgentResult<ModelReply>>;

    /// One answer, as it is made.
    fn converse_stream(
        &self,
        request: ModelRequest,
    ) -> BoxFuture<'_, AgentResult<BoxStream<'_, AgentResult<Delta>>>>;
}

/// A question to a model.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ModelRequest {
    /// Instructions.
    pub system: String,
    /// What was said, oldest first.
    pub messages: Vec<ModelMessage>,
    /// What the model may call.
    pub tools: Vec<ModelTool>,
    /// Whether it must.
    pub tool_choice: ToolChoice,
    /// 0 to 1; none = the model's own.
    pub temperature: Option<f32>,
    /// Most tokens to answer with; none = the model's own.
    pub max_tokens: Option<u32>,
}

/// One side's words.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelMessage {
    /// The user's text.
    User(String),
    /// What the model said.
    Model(Vec<ModelContent>),
    /// What the tools it called gave.
    ToolResults(Vec<ToolResult>),
}

/// A piece of what a model says.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelContent {
    /// Text.
    Text(String),
    /// A call of a tool.
    ToolUse {
        /// The model's id of the call.
        id: String,
        /// The tool.
        name: String,
        /// Its arguments, unchecked.
        input: Value,
    },
}

/// What a called tool gave.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolResult {
    /// The model's id of the call.
    pub id: String,
    /// The result, or the error's public text.
    pub result: Result<Value, String>,
}

/// A tool offered to a model.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelTool {
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: String,
    /// The JSON schema of its arguments.
    pub input_schema: Value,
}

/// Whether a model must call a tool.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ToolChoice {
    /// It may.
    #[default]
    Auto,
    /// It must call some tool.
    Any,
    /// It must call this one.
    Tool(String),
}

/// A model's answer.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelReply {
    /// What it said.
    pub content: Vec<ModelContent>,
    /// Why it stopped.
    pub stop: StopReason,
    /// What it cost.
    pub usage: Usage,
}

/// Why a model stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// It had nothing more to say.
    EndTurn,
    /// It waits for its tools.
    ToolUse,
    /// The most tokens were reached.
    MaxTokens,
    /// A filter or guardrail stepped in.
    Filtered,
    /// Anything else.
    Other,
}

/// Tokens of one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Tokens read.
    pub input_tokens: u64,
    /// Tokens written.
    pub output_tokens: u64,
}

/// A piece of an answer as it is made.
#[derive(Debug, Clone, PartialEq)]
pub enum Delta {
    /// More text.
    Text(String),
    /// A tool call begins.
    ToolUse {
        /// The model's id of the call.
        id: String,
        /// The tool.
        name: String,
    },
    /// More of the arguments of the newest tool call, as JSON text.
    ToolInput(String),
    /// The end.
    Stop {
        /// Why it stopped.
        stop: StopReason,
        /// What it cost.
        usage: Usage,
    },
}
