//! One call of a model.

use a2a_lambda_skill::model::{Delta, Model, ModelReply, ModelRequest, StopReason};
use a2a_lambda_skill::{AgentError, AgentResult, ArtifactChunks, Collected};
use futures::StreamExt as _;

/// Asks the model, whose text goes to `chunks` while it arrives. An error is transient if the
/// service has too many requests or is out of order, but not after a part of the answer has
/// arrived.
///
/// # Errors
/// The error of the provider. `CONTENT_FILTERED` and `MODEL_OUTPUT` for an answer that a filter
/// or the limit of tokens ended.
pub(super) async fn converse(
    model: &dyn Model,
    request: ModelRequest,
    mut chunks: Option<ArtifactChunks<'_>>,
) -> AgentResult<ModelReply> {
    let mut has_begun = false;
    let reply = match &mut chunks {
        chunks @ Some(_) => stream_reply(model, request, chunks, &mut has_begun).await,
        None => model.converse(request).await,
    };
    let reply = match reply {
        Err(error) if has_begun => return Err(error.settle()),
        reply => reply?,
    };
    match reply.stop {
        StopReason::Filtered => Err(AgentError::content_filtered("the model stopped: filtered")),
        StopReason::MaxTokens => Err(AgentError::model_output(
            "the answer reached the limit of tokens",
        )),
        StopReason::EndTurn | StopReason::ToolUse | StopReason::Other => Ok(reply),
    }
}

async fn stream_reply(
    model: &dyn Model,
    request: ModelRequest,
    chunks: &mut Option<ArtifactChunks<'_>>,
    has_begun: &mut bool,
) -> AgentResult<ModelReply> {
    let mut deltas = model.converse_stream(request).await?;
    let mut collector = Collected::default();
    while let Some(delta) = deltas.next().await {
        let delta = delta?;
        *has_begun = true;
        if let (Delta::Text(text), Some(artifact)) = (&delta, &mut *chunks) {
            artifact.push(text.clone()).await?;
        }
        if let Some(reply) = collector.add(delta) {
            // The text before tool calls is not the answer: that of a later turn replaces it.
            if !reply.calls_tools()
                && let Some(artifact) = chunks.take()
            {
                artifact.finish().await?;
            }
            return Ok(reply);
        }
    }
    Err(AgentError::model_provider(
        "the stream ended before the answer did",
    ))
}
