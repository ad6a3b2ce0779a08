//! A skill that only replies and makes no task.

use a2a_lambda::prelude::*;

/// Says back what you said.
#[skill(
    id = "echo",
    name = "Echo",
    tags = ["example", "text"],
    examples = ["echo hello"],
    text = "echo {text}",
    input_modes = ["text/plain"],
    effect = "read",
)]
pub(crate) async fn echo(input: Content) -> AgentResult<Content> {
    Ok(Content::from_text(input.text()?))
}
