//! A function is a skill with `#[skill]` only, and the compiler says so.
//! replace: `#[skill(id = "echo", tags = ["test"])]`
//! with: `#[rustfmt::skip]`
//! error: `E0277`
//! text: `{echo}` is no skill`

use a2a_lambda::prelude::*;

/// Repeats.
#[skill(id = "echo", tags = ["test"])]
pub async fn echo(text: String) -> AgentResult<String> {
    Ok(text)
}

pub fn agent() -> Result<AgentDefinition, BuildError> {
    Agent::builder("agent").skill(echo).build()
}
