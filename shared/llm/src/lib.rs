//! What skills do with a language model.
//!
//! [`Model`](a2a_lambda_skill::model::Model) is the interface: two methods that a provider
//! implements. [`TaskContext::model`](a2a_lambda_skill::TaskContext::model) is the agent's.
//!
//! - [`LlmFunction`]: one question, whose answer is a value of a type
//! - [`LlmWorker`]: a loop of a model and its tools, until there is such a value
//!
//! Both run in a task, where each answer of the model is a stored step. They also run in any
//! program, with `run_with` and `chat_with`.
//!
//! - `function`, `worker`: the two, and what authors set
//! - `tool`, `confirm`: what a worker may call, and do only when confirmed
//! - `setup`: what a worker may use up, and with `schema`, `transcript` and `files` what a request has
//! - `conversation`: the turns of a model and its tools; `call`: one call
//! - `provider`: what the two providers share
//! - `bedrock`: models of Amazon Bedrock
//! - `openai`: models behind the API of OpenAI

#[cfg(feature = "bedrock")]
pub mod bedrock;
mod call;
mod confirm;
mod conversation;
mod files;
mod function;
#[cfg(test)]
#[cfg(any(feature = "bedrock", feature = "openai"))]
mod model_stub;
#[cfg(feature = "openai")]
pub mod openai;
#[cfg(any(feature = "bedrock", feature = "openai"))]
mod provider;
mod schema;
mod setup;
mod tool;
mod transcript;
mod worker;

pub use confirm::{LlmConfirm, LlmOutcome, LlmSlot};
pub use function::LlmFunction;
pub use setup::LlmBudget;
pub use tool::LlmTool;
pub use worker::{Alone, Confirming, LlmWorker};
