//! Reads all settings, once, at the start. `docs/operations.md` lists them.
//!
//! A value that is not allowed stops the start with the setting's name, the value
//! and what is allowed. Only `source` reads the environment and the configuration file.
//!
//! - `source`: where settings come from: the environment
//! - `file`: the configuration file behind the environment
//! - `read`: single settings by their kind
//! - `policy`: the settings of the engine
//! - `limits`: what the callers of one tenant may use
//! - `model`: the settings of the language model
//! - `credentials`: the settings of API keys and JWTs
//! - `names`: the names of all settings, and a warning of others
//! - `error`: why the settings cannot be used

mod credentials;
mod error;
mod file;
mod limits;
mod model;
mod names;
mod policy;
mod read;
mod source;

pub use credentials::CredentialSettings;
pub use error::{FileError, SettingsError};
pub use file::Configuration;
pub use model::{ModelProvider, ModelSettings, Routing};
pub use names::warn_of_unknown;
pub use read::parse_duration;
pub(crate) use source::build;
pub use source::{Environment, Source};

use crate::auth::AuthMode;
use crate::engine::Policy;
use crate::http::{BaseUrl, CorsOrigin, Hosts};
use crate::outbound::Reach;
use crate::task::Timestamp;
use crate::telemetry::metrics::MetricsMode;
use a2a_lambda_wire::{CardShape, CardSignature};
use read::{Read, URL};
use sha2::{Digest as _, Sha256};
use std::time::Duration;

/// The base URL on the card of a program that is not on AWS and has no other.
const LOCAL_URL: &str = "http://127.0.0.1:8080";
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
        let mut settings = Self::read_public(source)?;
        let reader = Read(source);
        settings.secret_key_id = reader.secret_key_id()?;
        settings.policy.secrets = match settings.secret_key_id {
            Some(_) => Read::unread_keys(),
            None => reader.secret_keys(settings.auth)?,
        };
        Ok(settings)
    }

    /// Reads the settings without the secret keys, for functions that do not have
    /// them: they neither make nor read page tokens and sealed secrets.
    ///
    /// # Errors
    /// [`SettingsError`] for the first setting that cannot be used.
    pub fn read_public(source: &dyn Source) -> Result<Self, SettingsError> {
        let reader = Read(source);
        let auth = reader.choice(
            "A2A_AUTH",
            "`gateway`, `dev`, `keys` or `jwt`",
            &AuthMode::ALL.map(|mode| (mode.word(), mode)),
            AuthMode::Gateway,
        )?;
        if auth != AuthMode::Gateway && deployed(source) {
            return Err(SettingsError::AuthDeployed(auth.word()));
        }
        let credentials = reader.credentials(deployed(source))?;
        if auth == AuthMode::Jwt {
            credentials.required_issuer()?;
        }
        let reach = if reader.switch("A2A_PUSH_ALLOW_PRIVATE", false)? {
            Reach::Anything
        } else {
            Reach::Public
        };
        if reach == Reach::Anything && deployed(source) {
            return Err(SettingsError::PrivateDeployed);
        }
        let setting = reader.url("A2A_PUBLIC_URL")?;
        // On AWS a card with an address of this machine would be wrong for every client.
        let otherwise = (!deployed(source)).then(|| LOCAL_URL.to_owned());
        let public_url = BaseUrl::new(setting, otherwise);
        Ok(Self {
            table: reader.text("A2A_TABLE", "a2a-lambda-local"),
            bucket: reader.text("A2A_BUCKET", "a2a-lambda-local"),
            hosts: Hosts::local(public_url.without_stage().unwrap_or(LOCAL_URL)),
            public_url,
            cors: reader.cors_origin(auth)?,
            auth,
            credentials,
            card: reader.choice(
                "A2A_CARD",
                "`union` or `v1`",
                &[("union", CardShape::Union), ("v1", CardShape::V1)],
                CardShape::Union,
            )?,
            card_signatures: reader.card_signatures()?,
            deployed_at: source.built_at(),
            work_queue_url: reader.url("A2A_WORK_QUEUE_URL")?,
            streaming: reader.switch("A2A_STREAMING", true)?,
            push: reader.switch("A2A_PUSH", true)?,
            push_queue_url: reader.url("A2A_PUSH_QUEUE_URL")?,
            dead_letters_url: reader.url("A2A_DEAD_LETTERS_URL")?,
            metrics: reader.metrics()?,
            sweep_interval: reader.duration("A2A_SWEEP_INTERVAL", SWEEP_INTERVAL)?,
            secret_key_id: None,
            model: reader.model()?,
            routing: reader.routing()?,
            policy: reader.policy(reach, !deployed(source))?,
            tck_streaming_timeout: reader.tck_streaming_timeout()?,
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
        required(self.push_queue_url.as_deref(), "A2A_PUSH_QUEUE_URL")
    }

    /// The URL of the work queue, for the functions that require it.
    ///
    /// # Errors
    /// [`SettingsError::Missing`] when it is not set.
    pub fn work_queue(&self) -> Result<&str, SettingsError> {
        required(self.work_queue_url.as_deref(), "A2A_WORK_QUEUE_URL")
    }
}

fn required<'a>(url: Option<&'a str>, name: &'static str) -> Result<&'a str, SettingsError> {
    url.ok_or(SettingsError::Missing { name, rule: URL })
}

impl Read<'_> {
    /// The origin whose pages may call the agent. Development identities are not for every
    /// page that the developer opens.
    fn cors_origin(&self, auth: AuthMode) -> Result<Option<CorsOrigin>, SettingsError> {
        let rule = "`*`, or an origin as `https://app.example.com`, without a path";
        let origin = self.parsed("A2A_CORS_ORIGIN", rule, CorsOrigin::parse)?;
        if auth == AuthMode::Dev && origin.as_ref().is_some_and(CorsOrigin::is_any) {
            return Err(SettingsError::EveryPageInDevelopment);
        }
        Ok(origin)
    }

    fn card_signatures(&self) -> Result<Vec<CardSignature>, SettingsError> {
        let rule = "what `a2a-local sign-card --print setting` prints";
        let signatures = self.parsed("A2A_CARD_SIGNATURES", rule, |text| {
            let signatures = text.split_whitespace().map(|it| it.parse().ok());
            signatures.collect()
        })?;
        Ok(signatures.unwrap_or_default())
    }

    fn tck_streaming_timeout(&self) -> Result<Duration, SettingsError> {
        let seconds = self.parsed("TCK_STREAMING_TIMEOUT", "seconds, 0-3600", |text| {
            let seconds = text.parse::<f64>().ok();
            seconds.filter(|seconds| (0.0..=3600.0).contains(seconds))
        })?;
        Ok(Duration::from_secs_f64(seconds.unwrap_or(2.0)))
    }
}

/// Whether this process is a function on AWS, not on a developer's machine. AWS
/// Lambda sets `AWS_LAMBDA_INITIALIZATION_TYPE` and unpacks code to `/var/task`.
fn deployed(source: &dyn Source) -> bool {
    source.get("AWS_LAMBDA_INITIALIZATION_TYPE").is_some()
        || source
            .get("LAMBDA_TASK_ROOT")
            .is_some_and(|root| root == "/var/task")
}

#[cfg(test)]
mod tests;
