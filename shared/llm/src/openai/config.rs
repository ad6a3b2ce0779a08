//! The configuration of a model behind the API of OpenAI.

use super::OpenAiModel;
use super::quirks::OpenAiQuirks;
use super::transport::{CallLimits, Transport};
use a2a_lambda_model::task::Secret;
use http::{HeaderValue, Uri};
use serde_json::{Map, Value};

/// The API of the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OpenAiApi {
    /// Chat Completions: `POST …/chat/completions`. Most services have it.
    #[default]
    ChatCompletions,
    /// Responses: `POST …/responses`, without stored responses.
    Responses,
}

impl OpenAiApi {
    /// What follows the base URL.
    const fn path(self) -> &'static str {
        match self {
            Self::ChatCompletions => "/chat/completions",
            Self::Responses => "/responses",
        }
    }
}

/// Why a configuration is not valid. The text has nothing of the key and of the URL.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the {0}")]
pub struct OpenAiConfigError(&'static str);

/// The configuration of an [`OpenAiModel`]: see [`OpenAiModel::builder`].
#[derive(Debug, Clone)]
#[must_use]
pub struct OpenAiModelBuilder {
    base_url: String,
    model: String,
    key: Option<Secret>,
    api: OpenAiApi,
    limits: CallLimits,
    options: Map<String, Value>,
    quirks: Option<OpenAiQuirks>,
}

impl OpenAiModelBuilder {
    pub(super) fn new(base_url: String, model: String) -> Self {
        Self {
            base_url,
            model,
            key: None,
            api: OpenAiApi::default(),
            limits: CallLimits::default(),
            options: Map::new(),
            quirks: None,
        }
    }

    /// Sends `key` as `Authorization: Bearer`.
    pub fn key(mut self, key: Secret) -> Self {
        self.key = Some(key);
        self
    }

    /// Calls this API. The default is [`OpenAiApi::ChatCompletions`].
    pub const fn api(mut self, api: OpenAiApi) -> Self {
        self.api = api;
        self
    }

    #[cfg(test)]
    pub(super) const fn limits(mut self, limits: CallLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Adds members to every request, such as `temperature`. The options of a
    /// [`ModelRequest`](a2a_lambda_skill::model::ModelRequest) win over them. The members that the
    /// provider itself writes win over both.
    pub fn options(mut self, options: Map<String, Value>) -> Self {
        self.options = options;
        self
    }

    /// Replaces what is known of the service. The default is [`OpenAiQuirks::of_host`].
    pub fn quirks(mut self, quirks: OpenAiQuirks) -> Self {
        self.quirks = Some(quirks);
        self
    }

    /// The model. It opens no connection.
    ///
    /// # Errors
    /// [`OpenAiConfigError`] when the base URL, the model id or the key is not valid.
    pub fn build(self) -> Result<OpenAiModel, OpenAiConfigError> {
        if self.model.is_empty() {
            return Err(OpenAiConfigError("model id is empty"));
        }
        let host = checked_host(&self.base_url)?;
        let quirks = self.quirks.unwrap_or_else(|| OpenAiQuirks::of_host(&host));
        let url = format!("{}{}", self.base_url.trim_end_matches('/'), self.api.path());
        let key = self.key.as_ref().map(bearer).transpose()?;
        Ok(OpenAiModel {
            transport: Transport::new(url, key, self.limits),
            model: self.model,
            api: self.api,
            options: self.options,
            quirks,
        })
    }
}

/// The host of a base URL. An operator sets it, so every address is allowed.
fn checked_host(url: &str) -> Result<String, OpenAiConfigError> {
    let wrong = OpenAiConfigError;
    let uri: Uri = (url.parse()).map_err(|_| wrong("base URL of the model has a wrong form"))?;
    let host = uri.host().unwrap_or_default();
    if !matches!(uri.scheme_str(), Some("http" | "https")) || host.is_empty() {
        return Err(wrong(
            "base URL of the model needs `http` or `https` and a host",
        ));
    }
    // Credentials belong in the key.
    let has_user = uri
        .authority()
        .is_some_and(|part| part.as_str().contains('@'));
    if has_user || url.contains(['?', '#']) {
        return Err(wrong(
            "base URL of the model has credentials, a query or a fragment",
        ));
    }
    Ok(host.to_owned())
}

fn bearer(key: &Secret) -> Result<HeaderValue, OpenAiConfigError> {
    let value = HeaderValue::from_str(&format!("Bearer {}", key.expose()));
    let mut value =
        value.map_err(|_| OpenAiConfigError("key of the model service is no header"))?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn built(url: &str) -> Result<OpenAiModel, OpenAiConfigError> {
        OpenAiModel::builder(url, "m").build()
    }

    #[test]
    fn base_url_may_be_local_and_has_no_credentials() {
        for url in [
            "http://127.0.0.1:11434/v1",
            "https://api.example/v1/",
            "http://[::1]:8000",
        ] {
            assert!(built(url).is_ok(), "{url}");
        }
        let bad = [
            "",
            "v1",
            "ftp://a/v1",
            "http://",
            "https://u:p@a/v1",
            "https://a/v1?x=1",
            "https://a/#x",
        ];
        for url in bad {
            let refused = built(url);
            let error = refused.unwrap_err().to_string();
            assert!(error.contains("base URL"), "{url}: {error}");
        }
    }

    #[test]
    fn model_id_and_key_are_checked() {
        let empty = OpenAiModel::builder("http://a", "").build();
        assert_eq!(empty.unwrap_err().to_string(), "the model id is empty");
        let key = Secret::new("a\nb");
        let broken = OpenAiModel::builder("http://a", "m").key(key).build();
        assert!(broken.unwrap_err().to_string().contains("key"));
    }

    #[test]
    fn debug_form_shows_no_key() {
        let model = OpenAiModel::builder("http://a/v1", "m").key(Secret::new("sk-1234"));
        assert!(!format!("{model:?}").contains("1234"));
        let model = model.build().unwrap();
        let shown = format!("{model:?}");
        assert!(
            !shown.contains("1234") && shown.contains("http://a/v1/chat/completions"),
            "{shown}"
        );
    }
}
