//! Reads the settings of the language model.

use super::SettingsError;
use super::read::Read;
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelProvider {
    /// Amazon Bedrock: Converse.
    Bedrock,
    /// OpenAI or a compatible server: Chat Completions.
    OpenAi,
    /// OpenAI or a compatible server: Responses.
    OpenAiResponses,
}

impl ModelProvider {
    const ALL: [Self; 3] = [Self::Bedrock, Self::OpenAi, Self::OpenAiResponses];

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

impl Read<'_> {
    /// The model; `None` if the settings name none.
    pub(super) fn model(&self) -> Result<Option<ModelSettings>, SettingsError> {
        let options = self.parsed("A2A_MODEL_OPTIONS", "a JSON object", |text| {
            serde_json::from_str(text).ok()
        })?;
        let settings = ModelSettings {
            provider: self.choice(
                "A2A_MODEL_PROVIDER",
                "`bedrock`, `openai` or `openai-responses`",
                &ModelProvider::ALL.map(|provider| (provider.word(), provider)),
                ModelProvider::Bedrock,
            )?,
            id: self.text("A2A_MODEL_ID", ""),
            endpoint: self.url("A2A_MODEL_ENDPOINT_URL")?,
            options: options.unwrap_or_default(),
            router_id: self.given("A2A_ROUTER_MODEL_ID"),
        };
        Ok((!settings.id.is_empty()).then_some(settings))
    }

    /// When a model chooses the skill of a message.
    pub(super) fn routing(&self) -> Result<Routing, SettingsError> {
        self.choice(
            "A2A_ROUTING",
            "`never` or `ambiguous_only`",
            &[
                ("never", Routing::Never),
                ("ambiguous_only", Routing::AmbiguousOnly),
            ],
            Routing::AmbiguousOnly,
        )
    }
}
