//! Models of Amazon Bedrock, by its APIs Converse and `ConverseStream`.
//!
//! [`BedrockModel`] is the provider. It sends each request once and never again. It sends no
//! parameter that the request or the options do not name. Region and credentials are those of
//! the AWS SDK: in a function those of its role.
//!
//! - `request`: what a request becomes; `reply`: what an answer and its events become
//! - `kept`: reasoning, which returns unchanged; `document`: JSON as the SDK has it
//! - `quirks`: how models differ
//! - `failure`: maps errors to those of skills

mod document;
mod failure;
mod kept;
mod quirks;
mod reply;
mod request;
#[cfg(test)]
mod tests;

pub use quirks::BedrockToolChoice;

use crate::provider::{ModelCallError, ReadDeltas, deltas};
use a2a_lambda_aws::clients::sdk_config;
use a2a_lambda_skill::AgentResult;
use a2a_lambda_skill::model::{Delta, Model, ModelReply, ModelRequest};
use aws_sdk_bedrockruntime::Client;
use aws_sdk_bedrockruntime::config::retry::RetryConfig;
use aws_sdk_bedrockruntime::config::timeout::TimeoutConfig;
use aws_sdk_bedrockruntime::config::{Builder, StalledStreamProtectionConfig};
use aws_sdk_bedrockruntime::operation::converse_stream::ConverseStreamOutput as StreamOutput;
use failure::{of_call, of_event};
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use reply::ConverseEvents;
use request::ConverseParts;
use serde_json::{Map, Value};
use std::collections::VecDeque;
use std::time::Duration;
use tokio::sync::OnceCell;

/// The most time of an answer that is not streamed: the longest run of a Lambda function.
const TOTAL: Duration = Duration::from_secs(900);
/// The most time until the first event of a stream, and between two events.
const IDLE: Duration = Duration::from_secs(120);
/// The most bytes of a streamed answer.
const BYTES: usize = 16 * 1024 * 1024;

/// A model of Amazon Bedrock.
///
/// ```
/// use a2a_lambda::llm::bedrock::BedrockModel;
///
/// # let id = "a-model";
/// let model = BedrockModel::new(id);
/// ```
///
/// What the service writes in an error is the private cause of the error:
///
/// | The service | The skill's error |
/// |---|---|
/// | refuses the credentials or the access, or there are no credentials | `MODEL_AUTH` |
/// | throttles | `MODEL_RATE_LIMITED`, transient |
/// | reports an input that is too long | `CONTEXT_LENGTH_EXCEEDED` |
/// | sends more than 16 MiB | `MODEL_OUTPUT` |
/// | answers 500 to 599, or that the model is not ready | `MODEL_PROVIDER`, transient |
/// | does anything else wrong, is too slow, or breaks off | `MODEL_PROVIDER` |
#[derive(Debug)]
pub struct BedrockModel {
    id: String,
    endpoint: Option<String>,
    options: Map<String, Value>,
    tool_choice: BedrockToolChoice,
    client: OnceCell<Client>,
}

impl BedrockModel {
    /// The model with this id: of a foundation model, an inference profile, or an ARN of one.
    /// The first call makes the client.
    pub fn new(id: impl Into<String>) -> Self {
        let id = id.into();
        Self {
            tool_choice: BedrockToolChoice::of_model(&id),
            id,
            endpoint: None,
            options: Map::new(),
            client: OnceCell::new(),
        }
    }

    /// Sends requests to this URL. An endpoint on this machine needs no credentials.
    #[must_use]
    pub fn endpoint(mut self, url: impl Into<String>) -> Self {
        self.endpoint = Some(url.into());
        self
    }

    /// Adds members to each request, as `additionalModelRequestFields`.
    #[must_use]
    pub fn options(mut self, options: Map<String, Value>) -> Self {
        self.options = options;
        self
    }

    /// Sets which `toolChoice` the model takes. Default: what is known of its id.
    #[must_use]
    pub const fn tool_choice(mut self, choice: BedrockToolChoice) -> Self {
        self.tool_choice = choice;
        self
    }

    async fn client(&self) -> &Client {
        let make = async || {
            let common = sdk_config(self.endpoint.as_deref(), None).await;
            let times = TimeoutConfig::builder().connect_timeout(Duration::from_secs(5));
            let config = Builder::from(&common)
                // A busy service is asked again by the caller of the model.
                .retry_config(RetryConfig::disabled())
                .timeout_config(times.disable_operation_attempt_timeout().build())
                // A model that thinks sends nothing for a while.
                .stalled_stream_protection(StalledStreamProtectionConfig::disabled());
            Client::from_conf(config.build())
        };
        self.client.get_or_init(make).await
    }

    fn parts(&self, request: &ModelRequest) -> Result<ConverseParts, ModelCallError> {
        let parts = ConverseParts::of(request, &self.options, self.tool_choice);
        parts.map_err(|error| ModelCallError::Request(error.to_string()))
    }

    async fn whole(&self, request: &ModelRequest) -> Result<ModelReply, ModelCallError> {
        let parts = self.parts(request)?;
        let call = self.client().await.converse().model_id(&self.id);
        let call = call
            .set_system(parts.system)
            .set_messages(Some(parts.messages))
            .set_tool_config(parts.tools)
            .set_inference_config(parts.inference)
            .set_output_config(parts.output)
            .set_additional_model_request_fields(parts.more);
        let output = tokio::time::timeout(TOTAL, call.send()).await;
        let output = output.map_err(|_| ModelCallError::Slow(TOTAL))?;
        reply::reply(&output.map_err(|error| of_call(&error))?)
    }

    async fn streamed(&self, request: &ModelRequest) -> Result<EventReading, ModelCallError> {
        let parts = self.parts(request)?;
        let call = self.client().await.converse_stream().model_id(&self.id);
        let call = call
            .set_system(parts.system)
            .set_messages(Some(parts.messages))
            .set_tool_config(parts.tools)
            .set_inference_config(parts.inference)
            .set_output_config(parts.output)
            .set_additional_model_request_fields(parts.more);
        let output = tokio::time::timeout(IDLE, call.send()).await;
        let output = output.map_err(|_| ModelCallError::Slow(IDLE))?;
        Ok(EventReading {
            output: output.map_err(|error| of_call(&error))?,
            events: ConverseEvents::default(),
            bytes: 0,
        })
    }
}

impl Model for BedrockModel {
    fn id(&self) -> &str {
        &self.id
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

/// A streamed answer that is being read.
struct EventReading {
    output: StreamOutput,
    events: ConverseEvents,
    bytes: usize,
}

impl ReadDeltas for EventReading {
    async fn read(&mut self, out: &mut VecDeque<Delta>) -> Result<(), ModelCallError> {
        let result = tokio::time::timeout(IDLE, self.output.stream.recv()).await;
        let result = result.map_err(|_| ModelCallError::Slow(IDLE))?;
        match result.map_err(|error| of_event(&error))? {
            Some(event) => self.events.event(&event, out)?,
            None => self.events.end(out)?,
        }
        self.bytes += out.iter().map(length).sum::<usize>();
        if self.bytes > BYTES {
            return Err(ModelCallError::TooLong(BYTES));
        }
        Ok(())
    }
}

fn length(delta: &Delta) -> usize {
    match delta {
        Delta::Text(text) | Delta::ToolInput(text) => text.len(),
        Delta::ToolUse { id, name } => id.len() + name.len(),
        Delta::Provider(block) => block.to_string().len(),
        Delta::Stop { .. } => 0,
    }
}
