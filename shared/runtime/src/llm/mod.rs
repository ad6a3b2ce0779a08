//! What skills do with a language model.
//!
//! [`Model`](crate::skill::model::Model) is the interface: two methods that a provider
//! implements. [`TaskContext::model`](crate::skill::TaskContext::model) is the agent's.
//!
//! - `configured`: the model that the settings name
//! - `openai`: models behind the API of OpenAI

mod configured;
#[cfg(feature = "openai")]
pub mod openai;

pub(crate) use configured::ConfiguredModel;
pub use configured::NoModelProvider;
