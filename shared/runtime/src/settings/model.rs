//! Reads the settings of the language model.

use super::variables::{Variables, or};
use serde::Deserialize;
use serde_json::{Map, Value};

/// The provider and the model of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelSettings {
    /// `A2A_MODEL_PROVIDER`: which API the service has.
    pub provider: ModelProvider,
    /// `A2A_MODEL_ID`: the model, as its service names it.
    pub id: String,
    /// `A2A_MODEL_ENDPOINT_URL`: where the service is. The operator names it, so it may be on
    /// this machine.
    pub endpoint: Option<String>,
    /// `A2A_MODEL_OPTIONS`: more members of each request.
    pub options: Map<String, Value>,
    /// `A2A_ROUTER_MODEL_ID`: the model that chooses. Without one it is [`ModelSettings::id`].
    pub router_id: Option<String>,
}

/// When a model chooses the skill of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Routing {
    /// Never: the client is asked.
    Never,
    /// When no rule decides.
    #[default]
    AmbiguousOnly,
}

impl ModelSettings {
    /// The settings of the model that chooses the skill of a message.
    #[must_use]
    pub(crate) fn of_router(&self) -> Self {
        let id = self.router_id.clone().unwrap_or_else(|| self.id.clone());
        Self { id, ..self.clone() }
    }
}

/// The API of a model service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ModelProvider {
    /// Amazon Bedrock: Converse.
    Bedrock,
    /// OpenAI or a compatible server: Chat Completions.
    OpenAi,
    /// OpenAI or a compatible server: Responses.
    #[serde(rename = "openai-responses")]
    OpenAiResponses,
}

impl ModelProvider {
    /// The word of the setting.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Bedrock => "bedrock",
            Self::OpenAi => "openai",
            Self::OpenAiResponses => "openai-responses",
        }
    }
}

impl Variables {
    /// The model; `None` if the variables name none.
    pub(super) fn model(self) -> Option<ModelSettings> {
        let Some(id) = self.a2a_model_id else {
            if self.a2a_model_provider.is_some() {
                tracing::warn!("`A2A_MODEL_PROVIDER` has no effect: `A2A_MODEL_ID` names no model");
            }
            return None;
        };
        Some(ModelSettings {
            provider: self.a2a_model_provider.unwrap_or(ModelProvider::Bedrock),
            id,
            endpoint: self.a2a_model_endpoint_url.map(Into::into),
            options: or(self.a2a_model_options, Map::new()),
            router_id: self.a2a_router_model_id,
        })
    }
}
