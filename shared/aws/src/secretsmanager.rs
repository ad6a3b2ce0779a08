//! Reads secrets from Secrets Manager.

use crate::clients::sdk_config;
use aws_sdk_secretsmanager::Client;
use aws_sdk_secretsmanager::error::ProvideErrorMetadata as _;
use aws_smithy_types::error::display::DisplayErrorContext;

/// A client of Secrets Manager.
#[derive(Debug, Clone)]
pub struct SecretsClient {
    client: Client,
}

/// A version of a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// The one in use.
    Current,
    /// The one that was in use before.
    Previous,
}

/// Why a secret cannot be read. The text holds nothing of the secret.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// Secrets Manager did not return it.
    #[error("failed to read the secret `{id}`: {cause}")]
    Unavailable {
        /// The name or ARN.
        id: String,
        /// The cause.
        cause: String,
    },
    /// It has no text.
    #[error("the secret `{0}` is not a text")]
    NoText(String),
}

impl SecretsClient {
    /// A client for AWS, or for the emulator at `endpoint`.
    pub async fn connect(endpoint: Option<&str>) -> Self {
        let config = sdk_config(endpoint, None).await;
        Self {
            client: Client::new(&config),
        }
    }

    /// The text of a version of the secret `id`; `None` if there is no such version.
    ///
    /// # Errors
    /// As [`secret`](Self::secret).
    pub async fn version(&self, id: &str, version: Version) -> Result<Option<String>, SecretError> {
        let request = self.client.get_secret_value().secret_id(id);
        let stage = match version {
            Version::Current => "AWSCURRENT",
            Version::Previous => "AWSPREVIOUS",
        };
        match request.version_stage(stage).send().await {
            Ok(output) => match output.secret_string {
                Some(text) => Ok(Some(text)),
                None => Err(SecretError::NoText(id.to_owned())),
            },
            // A secret that was never replaced has no previous version.
            Err(error)
                if version == Version::Previous
                    && error.code() == Some("ResourceNotFoundException") =>
            {
                Ok(None)
            }
            Err(error) => Err(SecretError::Unavailable {
                id: id.to_owned(),
                cause: DisplayErrorContext(error).to_string(),
            }),
        }
    }

    /// The text of the secret with the name or ARN `id`.
    ///
    /// # Errors
    /// [`SecretError`] when it cannot be read or has no text.
    pub async fn secret(&self, id: &str) -> Result<String, SecretError> {
        let result = self.client.get_secret_value().secret_id(id).send().await;
        let output = result.map_err(|error| SecretError::Unavailable {
            id: id.to_owned(),
            cause: DisplayErrorContext(error).to_string(),
        })?;
        let text = output.secret_string;
        text.ok_or_else(|| SecretError::NoText(id.to_owned()))
    }
}
