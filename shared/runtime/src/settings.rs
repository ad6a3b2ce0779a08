//! Reads all settings, once, at the start. `docs/operations.md` lists them.
//!
//! A value that is not allowed stops the start with the setting's name, the value
//! and what is allowed. Only `source` reads the environment and the configuration file.
//!
//! - `source`: where settings come from: the environment
//! - `file`: the configuration file behind the environment
//! - `variables`: every variable as a field of a struct, the forms of their texts, and a warning of
//!   variables that are no settings
//! - `policy`: the settings of the engine, with what the callers of one tenant may use
//! - `model`: the settings of the language model
//! - `credentials`: the settings of API keys and JWTs
//! - `error`: why the settings cannot be used

mod credentials;
mod error;
mod file;
mod model;
mod policy;
mod source;
mod variables;

pub use credentials::CredentialSettings;
pub use error::{FileError, SettingsError};
pub use file::Configuration;
pub use model::{ModelProvider, ModelSettings, Routing};
pub use source::{Environment, Setting, Source};
pub use variables::{parse_duration, warn_of_unknown};

use crate::auth::AuthMode;
use crate::engine::Policy;
use crate::origin::{BaseUrl, CorsOrigin, Hosts};
use crate::task::Timestamp;
use crate::telemetry::metrics::MetricsMode;
use a2a_lambda_wire::{CardShape, CardSignature};
use sha2::{Digest as _, Sha256};
use std::time::Duration;
use variables::{URL, Variables, or};

/// The base URL on the card of a program that is not on AWS and has no other.
const LOCAL_URL: &str = "http://127.0.0.1:8080";
/// The table and the bucket, if no setting names them.
const LOCAL_NAME: &str = "a2a-lambda-local";
/// How often the local agent sweeps.
const SWEEP_INTERVAL: Duration = Duration::from_secs(300);

/// The settings of a function or of the local agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// `A2A_TABLE`: the DynamoDB table.
    pub table: String,
    /// `A2A_BUCKET`: the S3 bucket.
    pub bucket: String,
    /// `A2A_PUBLIC_URL`: the base URL on the card. It never comes from a client.
    pub public_url: BaseUrl,
    /// The hosts under which an agent with `A2A_AUTH=dev` answers: those of this
    /// machine and of the public URL.
    pub hosts: Hosts,
    /// `A2A_CORS_ORIGIN`: the origin whose pages may call the agent from a browser.
    pub cors: Option<CorsOrigin>,
    /// `A2A_AUTH`: `gateway`, `dev`, `keys` or `jwt`.
    pub auth: AuthMode,
    /// `A2A_JWT_…` and `A2A_FIRST_KEY…`: which JWTs are accepted, and whose the first API key
    /// is.
    pub credentials: CredentialSettings,
    /// `A2A_CARD`: `union` or `v1`.
    pub card: CardShape,
    /// `A2A_CARD_SIGNATURES`: signatures of the cards, from `a2a-local sign-card`.
    pub card_signatures: Vec<CardSignature>,
    /// When the cards last changed: the file time of the executable, if that is 2020 or later.
    pub deployed_at: Option<Timestamp>,
    /// `A2A_WORK_QUEUE_URL`: the work queue, which holds the turns for the workers.
    pub work_queue_url: Option<String>,
    /// `A2A_STREAMING`: whether clients may stream.
    pub streaming: bool,
    /// `A2A_PUSH`: whether clients may register webhooks.
    pub push: bool,
    /// `A2A_PUSH_QUEUE_URL`: the push queue, which holds the push deliveries.
    pub push_queue_url: Option<String>,
    /// `A2A_DEAD_LETTERS_URL`: where `worker` or `push` sends messages that nobody can read.
    pub dead_letters_url: Option<String>,
    /// `A2A_METRICS`: where a function keeps what it counts.
    pub metrics: MetricsMode,
    /// `A2A_SWEEP_INTERVAL`: how often the local agent sweeps: it looks for turns
    /// whose process died.
    pub sweep_interval: Duration,
    /// `A2A_SECRET_KEY_ID`: the secret of Secrets Manager that holds the secret keys. Who
    /// reads these settings gives the policy the keys.
    pub secret_key_id: Option<String>,
    /// `A2A_MODEL_…`: the language model, if there is one.
    pub model: Option<ModelSettings>,
    /// `A2A_ROUTING`: when a model chooses the skill of a message.
    pub routing: Routing,
    /// The durations and sizes of the engine, and `A2A_SECRET_KEY`.
    pub policy: Policy,
    /// `TCK_STREAMING_TIMEOUT`: in seconds; the conformance kit sets it.
    pub tck_streaming_timeout: Duration,
}

impl Settings {
    /// Reads the settings.
    ///
    /// # Errors
    /// [`SettingsError`] for the first setting that cannot be used.
    pub fn read(source: &dyn Source) -> Result<Self, SettingsError> {
        let variables = Variables::read(source)?;
        let mut settings = Self::from_variables(variables.clone(), source)?;
        let keys = variables.secret_keys(settings.auth)?;
        (settings.policy.secrets, settings.secret_key_id) = keys;
        Ok(settings)
    }

    /// Reads the settings without the secret keys, for functions that do not have
    /// them: they neither make nor read page tokens and sealed secrets.
    ///
    /// # Errors
    /// [`SettingsError`] for the first setting that cannot be used.
    pub fn read_public(source: &dyn Source) -> Result<Self, SettingsError> {
        Self::from_variables(Variables::read(source)?, source)
    }

    fn from_variables(variables: Variables, source: &dyn Source) -> Result<Self, SettingsError> {
        let is_deployed = is_deployed(source);
        let auth = variables.a2a_auth.unwrap_or(AuthMode::Gateway);
        if auth != AuthMode::Gateway && is_deployed {
            return Err(SettingsError::AuthDeployed(auth.word()));
        }
        // Each part takes its own variables.
        let credentials = variables.clone().credentials(is_deployed)?;
        let model = variables.clone().model();
        let policy = variables.clone().policy(source, is_deployed)?;
        if auth == AuthMode::Jwt {
            credentials.required_issuer()?;
        }
        let cors = variables.a2a_cors_origin.map(CorsOrigin::from);
        // Development identities are not for every page that the developer opens.
        if auth == AuthMode::Dev && cors.as_ref().is_some_and(CorsOrigin::is_any) {
            return Err(SettingsError::EveryPageInDevelopment);
        }
        // On AWS a card with an address of this machine would be wrong for every client.
        let otherwise = (!is_deployed).then(|| LOCAL_URL.to_owned());
        let public_url = BaseUrl::new(variables.a2a_public_url.map(Into::into), otherwise);
        Ok(Self {
            table: or(variables.a2a_table, LOCAL_NAME.to_owned()),
            bucket: or(variables.a2a_bucket, LOCAL_NAME.to_owned()),
            hosts: Hosts::local(public_url.without_stage().unwrap_or(LOCAL_URL)),
            public_url,
            cors,
            auth,
            credentials,
            card: variables.a2a_card.unwrap_or_default(),
            card_signatures: or(variables.a2a_card_signatures, Vec::new()),
            deployed_at: source.built_at(),
            work_queue_url: variables.a2a_work_queue_url.map(Into::into),
            streaming: or(variables.a2a_streaming, true),
            push: or(variables.a2a_push, true),
            push_queue_url: variables.a2a_push_queue_url.map(Into::into),
            dead_letters_url: variables.a2a_dead_letters_url.map(Into::into),
            metrics: variables.a2a_metrics.unwrap_or_default(),
            sweep_interval: or(variables.a2a_sweep_interval, SWEEP_INTERVAL),
            secret_key_id: None,
            model,
            routing: variables.a2a_routing.unwrap_or_default(),
            policy,
            tck_streaming_timeout: or(variables.tck_streaming_timeout, Duration::from_secs(2)),
        })
    }

    /// The beginning of a hash over what is in force, without the secret keys and the time of the
    /// executable: the same program with the same settings has the same.
    #[must_use]
    pub(crate) fn fingerprint(&self) -> String {
        let timeless = Self {
            deployed_at: None,
            ..self.clone()
        };
        let mut hash = hex::encode(Sha256::digest(format!("{timeless:?}")));
        hash.truncate(12);
        hash
    }

    /// The URL of the push queue, for the functions that require it.
    ///
    /// # Errors
    /// [`SettingsError::Missing`] when it is not set.
    pub fn push_queue(&self) -> Result<&str, SettingsError> {
        require(self.push_queue_url.as_deref(), "A2A_PUSH_QUEUE_URL")
    }

    /// The URL of the work queue, for the functions that require it.
    ///
    /// # Errors
    /// [`SettingsError::Missing`] when it is not set.
    pub fn work_queue(&self) -> Result<&str, SettingsError> {
        require(self.work_queue_url.as_deref(), "A2A_WORK_QUEUE_URL")
    }
}

fn require<'a>(url: Option<&'a str>, name: &'static str) -> Result<&'a str, SettingsError> {
    url.ok_or(SettingsError::Missing { name, rule: URL })
}

/// Whether this process is a function on AWS, not on a developer's machine. AWS
/// Lambda sets `AWS_LAMBDA_INITIALIZATION_TYPE` and unpacks code to `/var/task`.
fn is_deployed(source: &dyn Source) -> bool {
    source.get("AWS_LAMBDA_INITIALIZATION_TYPE").is_some()
        || source
            .get("LAMBDA_TASK_ROOT")
            .is_some_and(|root| root == "/var/task")
}

#[cfg(test)]
mod tests;
