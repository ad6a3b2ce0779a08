//! Models behind the API of OpenAI: OpenAI, Bedrock, vLLM, Ollama, LiteLLM and others.
//!
//! [`OpenAiModel`] is the provider. It has both APIs: Chat Completions and Responses. It sends
//! each request once and never again. It sends no parameter that the request, the options or
//! the API do not name.
//!
//! Reasoning returns to the service unchanged, as blocks
//! [`ModelContent::Provider`](a2a_lambda_skill::model::ModelContent::Provider). Each block names
//! its API, so a provider skips the blocks of others.
//!
//! - `config`: the builder; `quirks`: how services differ
//! - `chat`, `responses`: the two APIs, as pure values
//! - `transport`: sends requests and limits answers; `sse`: parses streams
//! - `failure`: maps errors to those of skills

mod chat;
mod config;
mod failure;
mod quirks;
mod responses;
mod sse;
mod tool_calls;
mod transport;
mod values;

pub use config::{OpenAiApi, OpenAiConfigError, OpenAiModelBuilder};
pub use quirks::OpenAiQuirks;

use crate::provider::{
    ModelCallError, ReplyDecoder, ReplyDeltas, call_error, check_files, deltas, join,
};
use a2a_lambda_skill::AgentResult;
use a2a_lambda_skill::model::{Delta, Model, ModelReply, ModelRequest};
use chat::ChatDecoder;
use failure::no_json;
use futures::future::BoxFuture;
use futures::stream::{self, BoxStream, StreamExt as _};
use responses::ResponsesDecoder;
use serde_json::{Map, Value};
use sse::{ServerEvent, WHOLE};
use transport::Transport;

/// A model behind the API of OpenAI.
///
/// ```
/// use a2a_lambda::llm::openai::{OpenAiApi, OpenAiConfigError, OpenAiModel};
///
/// # fn main() -> Result<(), OpenAiConfigError> {
/// # let id = "a-model";
/// let local = OpenAiModel::builder("http://127.0.0.1:11434/v1", id).build()?;
/// let responses = OpenAiModel::builder("http://127.0.0.1:8000/v1", id)
///     .api(OpenAiApi::Responses)
///     .build()?;
/// # Ok(())
/// # }
/// ```
///
/// What the service writes in an error is the private cause of the error:
///
/// | The service | The skill's error |
/// |---|---|
/// | answers 401 or 403 | `MODEL_AUTH` |
/// | answers 429 | `MODEL_RATE_LIMITED`, transient |
/// | reports a context that is too long | `CONTEXT_LENGTH_EXCEEDED` |
/// | refuses the content of the request | `CONTENT_FILTERED` |
/// | does not read a file, or refuses a request with files | `MODEL_INPUT` |
/// | sends more bytes than the limit | `MODEL_OUTPUT` |
/// | answers 500 to 599 | `MODEL_PROVIDER`, transient |
/// | does anything else wrong, is too slow, or breaks off | `MODEL_PROVIDER` |
#[derive(Debug)]
pub struct OpenAiModel {
    transport: Transport,
    model: String,
    api: OpenAiApi,
    options: Map<String, Value>,
    quirks: OpenAiQuirks,
}

impl OpenAiModel {
    /// The configuration of the model with the id `model`. The base URL ends before
    /// `/chat/completions` or `/responses`, as in `http://127.0.0.1:11434/v1`.
    pub fn builder(base_url: impl Into<String>, model: impl Into<String>) -> OpenAiModelBuilder {
        OpenAiModelBuilder::new(base_url.into(), model.into())
    }

    /// The deltas of an answer. A whole one is the only event of its stream.
    async fn answer(&self, request: &ModelRequest, streams: bool) -> ReplyDeltas {
        let write = match self.api {
            OpenAiApi::ChatCompletions => chat::body,
            OpenAiApi::Responses => responses::body,
        };
        check_files(request, values::file_limit)?;
        let body = write(request, &self.model, &self.options, &self.quirks, streams);
        let body = serde_json::to_vec(&body);
        let body = body.map_err(|error| ModelCallError::Request(error.to_string()))?;
        let chunks = self.transport.post(body, streams).await?;
        let events = if streams {
            sse::events(chunks)
        } else {
            let data = serde_json::from_slice(&transport::join(chunks).await?);
            let data = data.map_err(|error| no_json(&error))?;
            stream::iter([Ok((WHOLE.to_owned(), data))]).boxed()
        };
        Ok(deltas(events, self.decoder()))
    }

    fn decoder(&self) -> Box<dyn ReplyDecoder<ServerEvent>> {
        match self.api {
            OpenAiApi::ChatCompletions => Box::new(ChatDecoder::new(&self.quirks)),
            OpenAiApi::Responses => Box::<ResponsesDecoder>::default(),
        }
    }
}

impl Model for OpenAiModel {
    fn id(&self) -> &str {
        &self.model
    }

    fn converse(&self, request: ModelRequest) -> BoxFuture<'_, AgentResult<ModelReply>> {
        Box::pin(async move {
            let reply = join(self.answer(&request, false).await).await;
            reply.map_err(|error| call_error(error, request.files().next().is_some()))
        })
    }

    fn converse_stream(
        &self,
        request: ModelRequest,
    ) -> BoxFuture<'_, AgentResult<BoxStream<'_, AgentResult<Delta>>>> {
        Box::pin(async move {
            let deltas = self.answer(&request, true).await;
            let deltas = deltas.map_err(ModelCallError::into_agent);
            deltas.map_err(|error| call_error(error, request.files().next().is_some()))
        })
    }
}

#[cfg(test)]
mod tests;
