//! The configuration of a model behind the API of OpenAI.

use super::OpenAiModel;
use super::quirks::OpenAiQuirks;
use super::transport::{CallLimits, Transport};
use a2a_lambda_model::task::Secret;
use http::{HeaderValue, Uri};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::time::Duration;

/// The default of [`OpenAiModelBuilder::timeout`]: the longest run of a Lambda function.
const TIMEOUT: Duration = Duration::from_secs(900);
/// The default of [`OpenAiModelBuilder::idle_timeout`].
const IDLE_TIMEOUT: Duration = Duration::from_secs(120);
/// The default of [`OpenAiModelBuilder::max_reply_bytes`].
const MAX_REPLY_BYTES: usize = 16 * 1024 * 1024;

/// The API of the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
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
pub enum OpenAiConfigError {
    /// The base URL.
    #[error("the base URL of the model has {0}")]
    BaseUrl(&'static str),
    /// The model id is empty.
    #[error("the model id is empty")]
    ModelId,
    /// The key has a character that no header can have.
    #[error("the key of the model service has a character that no header can have")]
    Key,
}

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
            limits: CallLimits {
                total: TIMEOUT,
                idle: IDLE_TIMEOUT,
                bytes: MAX_REPLY_BYTES,
            },
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

    /// Ends a call after this time, with its stream. The default is 900 s.
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.limits.total = timeout;
        self
    }

    /// Ends a call when its stream is silent for this time, also before the first byte. The
    /// default is 120 s. An answer that is not streamed is silent while the model works: there
    /// the limit counts from the first byte.
    pub const fn idle_timeout(mut self, timeout: Duration) -> Self {
        self.limits.idle = timeout;
        self
    }

    /// Refuses an answer with more bytes. The default is 16 MiB.
    pub const fn max_reply_bytes(mut self, bytes: usize) -> Self {
        self.limits.bytes = bytes;
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
            return Err(OpenAiConfigError::ModelId);
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
    let wrong = OpenAiConfigError::BaseUrl;
    let uri: Uri = url.parse().map_err(|_| wrong("a wrong form"))?;
    if !matches!(uri.scheme_str(), Some("http" | "https")) {
        return Err(wrong("a scheme other than `http` and `https`"));
    }
    let authority = uri.authority().ok_or_else(|| wrong("no host"))?;
    if authority.as_str().contains('@') {
        return Err(wrong("credentials, which belong in the key"));
    }
    if url.contains(['?', '#']) {
        return Err(wrong("a query or a fragment"));
    }
    match authority.host() {
        "" => Err(wrong("no host")),
        host => Ok(host.to_owned()),
    }
}

fn bearer(key: &Secret) -> Result<HeaderValue, OpenAiConfigError> {
    let value = HeaderValue::from_str(&format!("Bearer {}", key.expose()));
    let mut value = value.map_err(|_| OpenAiConfigError::Key)?;
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
            assert!(
                matches!(refused, Err(OpenAiConfigError::BaseUrl(_))),
                "{url}: {refused:?}"
            );
        }
    }

    #[test]
    fn model_id_and_key_are_checked() {
        let empty = OpenAiModel::builder("http://a", "").build();
        assert_eq!(empty.err(), Some(OpenAiConfigError::ModelId));
        let key = Secret::new("a\nb");
        let broken = OpenAiModel::builder("http://a", "m").key(key).build();
        assert_eq!(broken.err(), Some(OpenAiConfigError::Key));
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
