//! Why a function does not start.

use crate::panics::PanicAborts;
use crate::settings::SettingsError;
use a2a_lambda_skill::{AgentBuildError, StateError};
use std::fmt;

/// Why a function does not start. `main` returns it, and Rust prints the `Debug` form of
/// such an error: it is the text for the operator.
#[derive(thiserror::Error)]
pub enum ServeError {
    /// A setting cannot be used.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// `A2A_FUNCTION` names no function.
    #[error("setting `A2A_FUNCTION` has a value that is not allowed; expected: one of {names}")]
    Function {
        /// The names of the functions.
        names: String,
    },
    /// The agent cannot be built.
    #[error("failed to build the agent: {0}")]
    Agent(#[source] AgentBuildError),
    /// A state of the skills cannot be made.
    #[error(transparent)]
    State(#[from] StateError),
    /// The agent has no valid card.
    #[error(transparent)]
    Runtime(#[from] crate::runtime::RuntimeError),
    /// The program is compiled so that a panic ends it.
    #[error(transparent)]
    Panic(#[from] PanicAborts),
    /// The Lambda runtime ended with an error.
    #[error("the lambda runtime failed: {0}")]
    Lambda(#[from] lambda_runtime::Error),
}

impl fmt::Debug for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
