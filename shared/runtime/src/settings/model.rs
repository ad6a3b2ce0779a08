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
    /// Before the words of the message decide. Explicit calls, commands, media types, schemas
    /// and examples still decide before the model.
    Always,
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
        let settings = ModelSettings {
            provider: self.choice(
                "A2A_MODEL_PROVIDER",
                "`bedrock`, `openai` or `openai-responses`",
                &ModelProvider::ALL.map(|provider| (provider.word(), provider)),
                ModelProvider::Bedrock,
            )?,
            id: self.text("A2A_MODEL_ID", ""),
            endpoint: self.optional_url("A2A_MODEL_ENDPOINT_URL")?,
            options: self.object("A2A_MODEL_OPTIONS")?,
            router_id: Some(self.text("A2A_ROUTER_MODEL_ID", "")).filter(|id| !id.is_empty()),
        };
        Ok((!settings.id.is_empty()).then_some(settings))
    }

    /// When a model chooses the skill of a message.
    pub(super) fn routing(&self) -> Result<Routing, SettingsError> {
        self.choice(
            "A2A_ROUTING",
            "`never`, `ambiguous_only` or `always`",
            &[
                ("never", Routing::Never),
                ("ambiguous_only", Routing::AmbiguousOnly),
                ("always", Routing::Always),
            ],
            Routing::AmbiguousOnly,
        )
    }

    fn object(&self, name: &'static str) -> Result<Map<String, Value>, SettingsError> {
        let value = self.text(name, "{}");
        serde_json::from_str(&value).map_err(|_| SettingsError::Bad {
            name,
            value,
            allowed: "a JSON object",
        })
    }
}
