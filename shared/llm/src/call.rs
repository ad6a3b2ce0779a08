//! One call of a model, and another attempt for a busy service.

use a2a_lambda_skill::model::{Delta, Model, ModelReply, ModelRequest, StopReason};
use a2a_lambda_skill::{AgentError, AgentResult, ArtifactChunks, Collected};
use futures::StreamExt as _;
use std::time::Duration;

/// How long a call waits before it asks a busy service again.
const WAITS: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(4)];

/// Asks the model, whose text goes to `chunks` while it arrives. When the service has too many
/// requests or is out of order, it waits and asks again, but not after a part of the answer has
/// arrived.
///
/// # Errors
/// The error of the provider. `CONTENT_FILTERED` and `MODEL_OUTPUT` for an answer that a filter
/// or the limit of tokens ended.
pub(super) async fn converse(
    model: &dyn Model,
    request: &ModelRequest,
    mut chunks: Option<ArtifactChunks<'_>>,
) -> AgentResult<ModelReply> {
    for wait in WAITS {
        let mut has_begun = false;
        match once(model, request.clone(), &mut chunks, &mut has_begun).await {
            Err(error) if error.is_transient() && !has_begun => {
                tokio::time::sleep(wait).await;
            }
            reply => return reply,
        }
    }
    once(model, request.clone(), &mut chunks, &mut false).await
}

async fn once(
    model: &dyn Model,
    request: ModelRequest,
    chunks: &mut Option<ArtifactChunks<'_>>,
    has_begun: &mut bool,
) -> AgentResult<ModelReply> {
    let reply = if chunks.is_some() {
        streamed(model, request, chunks, has_begun).await?
    } else {
        model.converse(request).await?
    };
    match reply.stop {
        StopReason::Filtered => Err(AgentError::content_filtered("the model stopped: filtered")),
        StopReason::MaxTokens => Err(AgentError::model_output(
            "the answer reached the limit of tokens",
        )),
        StopReason::EndTurn | StopReason::ToolUse | StopReason::Other => Ok(reply),
    }
}

async fn streamed(
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
