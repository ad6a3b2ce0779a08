//! What skills do with a language model.
//!
//! [`Model`](crate::skill::model::Model) is the interface: two methods that a provider
//! implements. [`TaskContext::model`](crate::skill::TaskContext::model) is the agent's.
//!
//! - `openai`: models behind the API of OpenAI

#[cfg(feature = "openai")]
pub mod openai;
