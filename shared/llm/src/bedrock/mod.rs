//! Models of Amazon Bedrock, by its APIs Converse and `ConverseStream`.
//!
//! [`BedrockModel`] is the provider. It sends each request once and never again. It sends no
//! parameter that the request or the options do not name. Region and credentials are those of
//! the AWS SDK: in a function those of its role.
//!
//! - `request`: what a request becomes, and how models differ; `reply`: what an answer becomes, whole or in events
//! - `kept`: reasoning, which returns unchanged
//! - `failure`: maps errors to those of skills

mod failure;
mod kept;
mod reply;
mod request;
#[cfg(test)]
mod tests;

pub use request::BedrockToolChoice;

use crate::provider::{ModelCallError, ReplyDeltas, call_error, check_files, deltas, join, wait};
use a2a_lambda_aws::clients::sdk_config;
use a2a_lambda_skill::AgentResult;
use a2a_lambda_skill::model::{Delta, Model, ModelReply, ModelRequest};
use aws_sdk_bedrockruntime::Client;
use aws_sdk_bedrockruntime::config::retry::RetryConfig;
use aws_sdk_bedrockruntime::config::timeout::TimeoutConfig;
use aws_sdk_bedrockruntime::config::{Builder, StalledStreamProtectionConfig};
use aws_sdk_bedrockruntime::primitives::event_stream::EventReceiver;
use aws_smithy_types::error::operation::BuildError;
use failure::{of_call, of_event};
use futures::future::BoxFuture;
use futures::stream::{self, BoxStream, StreamExt as _};
use reply::{ConverseDecoder, ConverseEvent};
use serde_json::{Map, Value};
use std::time::Duration;
use tokio::sync::OnceCell;

/// The most time of an answer that is not streamed: the longest run of a Lambda function.
const TOTAL: Duration = Duration::from_secs(900);
/// The most time until the first event of a stream, and between two events.
const IDLE: Duration = Duration::from_secs(120);

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
/// | does not read a file, or refuses a request with files | `MODEL_INPUT` |
/// | sends more than 16 MiB | `MODEL_OUTPUT` |
/// | answers 500 to 599, or that the model is not ready | `MODEL_PROVIDER`, transient |
/// | does anything else wrong, is too slow, or breaks off | `MODEL_PROVIDER` |
#[derive(Debug)]
pub struct BedrockModel {
    id: String,
    endpoint: Option<String>,
    options: Map<String, Value>,
    tool_choice: BedrockToolChoice,
    caches: bool,
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
            caches: false,
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

    /// Lets the service cache what requests begin with: it reads that again for a part of the
    /// price. Each request gets cache points behind its tools, its system prompt and its newest
    /// message. Not every model takes them; for how long and from which size it caches is in the
    /// page *Prompt caching* of the user guide of Bedrock.
    #[must_use]
    pub const fn cache_points(mut self) -> Self {
        self.caches = true;
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

    /// The deltas of an answer. A whole one is the only event of its stream.
    async fn answer(&self, request: &ModelRequest, streams: bool) -> ReplyDeltas {
        let fault = |error: BuildError| ModelCallError::Request(error.to_string());
        check_files(request, request::file_limit)?;
        let input = request::input(request, &self.options, self.tool_choice, self.caches);
        let input = input.map_err(fault)?.model_id(&self.id);
        let client = self.client().await;
        let events = if streams {
            let input = input.build().map_err(fault)?;
            let call = client
                .converse_stream()
                .set_model_id(input.model_id)
                .set_system(input.system)
                .set_messages(input.messages)
                .set_tool_config(input.tool_config)
                .set_inference_config(input.inference_config)
                .set_output_config(input.output_config)
                .set_additional_model_request_fields(input.additional_model_request_fields);
            let output = wait(IDLE, call.send()).await?;
            let output = output.map_err(|error| of_call(&error))?;
            let read = async |mut events: EventReceiver<_, _>| {
                let event = wait(IDLE, events.recv()).await?;
                let event = event.map_err(|error| of_event(&error))?;
                Ok(event.map(|event| (ConverseEvent::Piece(event), events)))
            };
            stream::try_unfold(output.stream, read).boxed()
        } else {
            // A future of the SDK is large.
            let output = Box::pin(wait(TOTAL, input.send_with(client))).await?;
            let output = output.map_err(|error| of_call(&error))?;
            stream::iter([Ok(ConverseEvent::Whole(output))]).boxed()
        };
        Ok(deltas(events, Box::<ConverseDecoder>::default()))
    }
}

impl Model for BedrockModel {
    fn id(&self) -> &str {
        &self.id
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
