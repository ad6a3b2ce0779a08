//! A model for tests that counts what another model does.

use crate::clock::lock;
use a2a_lambda_skill::AgentResult;
use a2a_lambda_skill::model::{Delta, Model, ModelContent, ModelReply, ModelRequest, Usage};
use futures::future::BoxFuture;
use futures::stream::{BoxStream, StreamExt as _};
use std::fmt;
use std::sync::{Arc, Mutex};

/// A model in front of another one, which counts its tokens and notes the tools that it calls.
/// Clones share what is counted.
#[derive(Clone)]
pub struct ModelMeter {
    model: Arc<dyn Model>,
    usage: Arc<Mutex<ModelUse>>,
}

/// What a model did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModelUse {
    /// The tokens of its requests and answers.
    pub tokens: u64,
    /// The names of the tools that it called, in order.
    pub tools: Vec<String>,
}

impl ModelMeter {
    /// A meter of `model`.
    #[must_use]
    pub fn new(model: Arc<dyn Model>) -> Self {
        Self {
            model,
            usage: Arc::default(),
        }
    }

    /// What the model did since the last call of this method.
    #[must_use]
    pub fn take(&self) -> ModelUse {
        std::mem::take(&mut lock(&self.usage))
    }

    fn add_tool(&self, name: &str) {
        lock(&self.usage).tools.push(name.to_owned());
    }

    fn add_tokens(&self, usage: Usage) {
        lock(&self.usage).tokens += usage.input_tokens + usage.output_tokens;
    }
}

impl Model for ModelMeter {
    fn id(&self) -> &str {
        self.model.id()
    }

    fn converse(&self, request: ModelRequest) -> BoxFuture<'_, AgentResult<ModelReply>> {
        Box::pin(async move {
            let reply = self.model.converse(request).await?;
            for content in &reply.content {
                if let ModelContent::ToolUse { name, .. } = content {
                    self.add_tool(name);
                }
            }
            self.add_tokens(reply.usage);
            Ok(reply)
        })
    }

    fn converse_stream(
        &self,
        request: ModelRequest,
    ) -> BoxFuture<'_, AgentResult<BoxStream<'_, AgentResult<Delta>>>> {
        Box::pin(async move {
            let deltas = self.model.converse_stream(request).await?;
            let deltas = deltas.inspect(|delta| match delta {
                Ok(Delta::ToolUse { name, .. }) => self.add_tool(name),
                Ok(Delta::Stop { usage, .. }) => self.add_tokens(*usage),
                _ => {}
            });
            Ok(deltas.boxed())
        })
    }
}

impl fmt::Debug for ModelMeter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelMeter")
            .field("usage", &self.usage)
            .finish_non_exhaustive()
    }
}
