//! The context comes first, and the compiler says the order.
//! replace: `cx: &mut TaskContext<'_>, text: String`
//! with: `text: String, cx: &mut TaskContext<'_>`
//! error: `first if it needs one, then each`

use a2a_lambda::prelude::*;

/// Repeats.
#[skill(id = "echo", tags = ["test"])]
pub async fn echo(cx: &mut TaskContext<'_>, text: String) -> AgentResult<String> {
    cx.send_intermediate_update("one moment").await?;
    Ok(text)
}
