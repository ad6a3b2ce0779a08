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

use crate::provider::{ModelCallError, ReadDeltas, deltas};
use a2a_lambda_skill::AgentResult;
use a2a_lambda_skill::model::{Delta, Model, ModelReply, ModelRequest};
use bytes::Bytes;
use chat::ChatStream;
use failure::no_json;
use futures::future::BoxFuture;
use futures::stream::{BoxStream, StreamExt as _};
use responses::ResponsesStream;
use serde_json::{Map, Value};
use sse::{ServerEvent, ServerEventParser};
use std::collections::VecDeque;
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

    /// The body of a request.
    fn body(&self, request: &ModelRequest, streams: bool) -> Result<Vec<u8>, ModelCallError> {
        let write = match self.api {
            OpenAiApi::ChatCompletions => chat::body,
            OpenAiApi::Responses => responses::body,
        };
        let body = write(request, &self.model, &self.options, &self.quirks, streams);
        serde_json::to_vec(&body).map_err(|error| ModelCallError::Request(error.to_string()))
    }

    async fn whole(&self, request: &ModelRequest) -> Result<ModelReply, ModelCallError> {
        let body = self.body(request, false)?;
        let response = self.transport.post(body, false).await?.whole().await?;
        let response: Value = serde_json::from_slice(&response).map_err(no_json)?;
        match self.api {
            OpenAiApi::ChatCompletions => chat::reply(&response, &self.quirks),
            OpenAiApi::Responses => responses::reply(&response),
        }
    }

    /// Begins to read a streamed answer.
    fn reading(&self, chunks: BoxStream<'static, Result<Bytes, ModelCallError>>) -> ReplyReading {
        let members = &self.quirks.returned_members;
        ReplyReading {
            chunks,
            parser: ServerEventParser::default(),
            decoder: match self.api {
                OpenAiApi::ChatCompletions => ReplyDecoder::Chat(ChatStream::new(members.clone())),
                OpenAiApi::Responses => ReplyDecoder::Responses(ResponsesStream::default()),
            },
            events: VecDeque::new(),
        }
    }

    async fn streamed(&self, request: &ModelRequest) -> Result<ReplyReading, ModelCallError> {
        let body = self.body(request, true)?;
        let body = self.transport.post(body, true).await?;
        Ok(self.reading(body.into_chunks()))
    }
}

impl Model for OpenAiModel {
    fn id(&self) -> &str {
        &self.model
    }

    fn converse(&self, request: ModelRequest) -> BoxFuture<'_, AgentResult<ModelReply>> {
        Box::pin(async move {
            let reply = self.whole(&request).await;
            reply.map_err(ModelCallError::into_agent)
        })
    }

    fn converse_stream(
        &self,
        request: ModelRequest,
    ) -> BoxFuture<'_, AgentResult<BoxStream<'_, AgentResult<Delta>>>> {
        Box::pin(async move {
            let reading = self.streamed(&request).await;
            reading.map(deltas).map_err(ModelCallError::into_agent)
        })
    }
}

/// The decoder of a streamed answer.
enum ReplyDecoder {
    Chat(ChatStream),
    Responses(ResponsesStream),
}

impl ReplyDecoder {
    fn event(
        &mut self,
        event: &ServerEvent,
        out: &mut VecDeque<Delta>,
    ) -> Result<(), ModelCallError> {
        // An event without data keeps the connection open.
        if event.data.trim().is_empty() {
            return Ok(());
        }
        match self {
            Self::Chat(chat) => chat.event(&event.data, out),
            Self::Responses(responses) => responses.event(event, out),
        }
    }

    /// The end of the stream, before a terminal event.
    fn end(&mut self, out: &mut VecDeque<Delta>) -> Result<(), ModelCallError> {
        match self {
            Self::Chat(chat) => chat.end(out),
            Self::Responses(_) => Err(ModelCallError::Cut),
        }
    }
}

/// A streamed answer that is being read.
struct ReplyReading {
    chunks: BoxStream<'static, Result<Bytes, ModelCallError>>,
    parser: ServerEventParser,
    decoder: ReplyDecoder,
    /// Events that are not decoded. One is decoded at a time, so that an error comes after the
    /// deltas of the events before it.
    events: VecDeque<ServerEvent>,
}

impl ReadDeltas for ReplyReading {
    /// Decodes the next event, or reads the next chunk.
    async fn read(&mut self, out: &mut VecDeque<Delta>) -> Result<(), ModelCallError> {
        if let Some(event) = self.events.pop_front() {
            return self.decoder.event(&event, out);
        }
        match self.chunks.next().await {
            Some(chunk) => self.events.extend(self.parser.push(&chunk?)),
            None => self.decoder.end(out)?,
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
