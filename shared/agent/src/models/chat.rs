//! A conversation with a model that has tools. The client sees the text while it is written.

use super::process_order::{price, stock};
use a2a_lambda::llm::LlmWorker;
use a2a_lambda::prelude::*;

/// Answers questions about the articles of the shop.
#[skill(
    id = "chat",
    name = "Shop assistant",
    tags = ["chat", "questions", "articles"],
    examples = ["How many pieces of A-1 are on stock?"],
    input_modes = ["text/plain", "image/png", "image/jpeg", "image/webp", "image/gif", "application/pdf"],
    effect = "read",
)]
pub(super) async fn chat(cx: &mut TaskContext<'_>, _question: Content) -> AgentResult<String> {
    // The thread ends with the question.
    let thread = cx.thread().await?;
    LlmWorker::new("Answer the question. Look prices and stock up; do not guess.")
        .named("chat")
        .tool(price())
        .tool(stock())
        .stream_to("chat")
        .chat(cx, &thread)
        .await
}
