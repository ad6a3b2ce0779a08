//! `#[skill]` checks the form of media types.
//! replace: `"text/plain"`
//! with: `"text-plain"`
//! error: `E0080`

use a2a_lambda::prelude::*;

/// Says back what you said.
#[skill(id = "echo", tags = ["test"], input_modes = ["text/plain"])]
pub async fn echo(input: Content) -> AgentResult<Content> {
    Ok(input)
}
