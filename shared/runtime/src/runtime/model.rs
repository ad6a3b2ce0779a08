//! The model that the settings name.

#[cfg(feature = "openai")]
use crate::secrets::{Secret, SecretsError, SkillSecrets};
#[cfg(feature = "bedrock")]
use crate::settings::Environment;
use crate::settings::{ModelProvider, ModelSettings, Routing, Settings};
#[cfg(feature = "bedrock")]
use a2a_lambda_llm::bedrock::BedrockModel;
#[cfg(feature = "openai")]
use a2a_lambda_llm::openai::{OpenAiApi, OpenAiModel};
use a2a_lambda_skill::model::{Delta, Model, ModelReply, ModelRequest};
use a2a_lambda_skill::{AgentError, AgentResult};
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use std::sync::Arc;
use tokio::sync::OnceCell;

/// The secret with the key of the model service.
#[cfg(feature = "openai")]
const KEY: &str = "A2A_MODEL_KEY";
/// The address of the service that gave the API its name.
#[cfg(feature = "openai")]
const OPENAI: &str = "https://api.openai.com/v1";

/// A provider that this program does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "setting `A2A_MODEL_PROVIDER` is `{0}`, and this program is built without the feature for it: \
     `bedrock` or `openai` of a2a-lambda, or of a2a-local"
)]
pub struct NoModelProvider(&'static str);

/// The models that `settings` name: that of the skills, and that which chooses a skill.
///
/// # Errors
/// [`NoModelProvider`] when the program is built without it.
pub fn models_of(settings: &Settings) -> Result<[Option<Arc<dyn Model>>; 2], NoModelProvider> {
    let Some(model) = &settings.model else {
        return Ok([None, None]);
    };
    let skills: Arc<dyn Model> = Arc::new(ConfiguredModel::new(model)?);
    let router: Arc<dyn Model> = Arc::new(ConfiguredModel::new(&model.of_router())?);
    let has_router = settings.routing != Routing::Never;
    Ok([Some(skills), has_router.then_some(router)])
}

/// The model of the settings. Its first call reads the key and makes the client, so that
/// another function, and a start, need neither.
pub(crate) struct ConfiguredModel {
    settings: ModelSettings,
    model: OnceCell<Arc<dyn Model>>,
}

impl ConfiguredModel {
    /// The model that `settings` name.
    ///
    /// # Errors
    /// [`NoModelProvider`] when the program is built without it.
    pub(crate) fn new(settings: &ModelSettings) -> Result<Self, NoModelProvider> {
        let is_supported = match settings.provider {
            ModelProvider::Bedrock => cfg!(feature = "bedrock"),
            ModelProvider::OpenAi | ModelProvider::OpenAiResponses => cfg!(feature = "openai"),
        };
        // A program that runs no skills never asks it.
        if !is_supported && cfg!(feature = "turns") {
            return Err(NoModelProvider(settings.provider.word()));
        }
        Ok(Self {
            settings: settings.clone(),
            model: OnceCell::new(),
        })
    }

    async fn get(&self) -> AgentResult<&Arc<dyn Model>> {
        self.model.get_or_try_init(|| make(&self.settings)).await
    }
}

async fn make(settings: &ModelSettings) -> AgentResult<Arc<dyn Model>> {
    match settings.provider {
        #[cfg(feature = "bedrock")]
        ModelProvider::Bedrock => Ok(Arc::new(bedrock(settings))),
        #[cfg(feature = "openai")]
        ModelProvider::OpenAi => openai(settings, OpenAiApi::ChatCompletions).await,
        #[cfg(feature = "openai")]
        ModelProvider::OpenAiResponses => openai(settings, OpenAiApi::Responses).await,
        #[cfg(not(all(feature = "bedrock", feature = "openai")))]
        provider => {
            let cause = NoModelProvider(provider.word());
            Err(AgentError::model_unavailable().with_cause(&cause))
        }
    }
}

#[cfg(feature = "bedrock")]
fn bedrock(settings: &ModelSettings) -> BedrockModel {
    let model = BedrockModel::new(&settings.id).options(settings.options.clone());
    // The names of the AWS SDK.
    let of_sdk = || Environment::aws_endpoint("AWS_ENDPOINT_URL_BEDROCK_RUNTIME");
    match settings.endpoint.clone().or_else(of_sdk) {
        Some(url) => model.endpoint(url),
        None => model,
    }
}

#[cfg(feature = "openai")]
async fn openai(settings: &ModelSettings, api: OpenAiApi) -> AgentResult<Arc<dyn Model>> {
    let endpoint = settings.endpoint.as_deref().unwrap_or(OPENAI);
    let mut builder = OpenAiModel::builder(endpoint, &settings.id);
    builder = builder.api(api).options(settings.options.clone());
    if let Some(key) = key().await? {
        builder = builder.key(key);
    }
    Ok(Arc::new(
        builder.build().map_err(AgentError::model_provider)?,
    ))
}

/// The key, if there is one. A server on this machine needs none.
#[cfg(feature = "openai")]
async fn key() -> AgentResult<Option<Secret>> {
    let secrets = SkillSecrets::read().await.map_err(AgentError::model_auth)?;
    match secrets.get(KEY) {
        Ok(key) => Ok(Some(key)),
        Err(SecretsError::Missing { .. }) => Ok(None),
        Err(error) => Err(AgentError::model_auth(error)),
    }
}

impl Model for ConfiguredModel {
    fn id(&self) -> &str {
        &self.settings.id
    }

    fn converse(&self, request: ModelRequest) -> BoxFuture<'_, AgentResult<ModelReply>> {
        Box::pin(async move { self.get().await?.converse(request).await })
    }

    fn converse_stream(
        &self,
        request: ModelRequest,
    ) -> BoxFuture<'_, AgentResult<BoxStream<'_, AgentResult<Delta>>>> {
        Box::pin(async move { self.get().await?.converse_stream(request).await })
    }
}

#[cfg(test)]
mod tests;
