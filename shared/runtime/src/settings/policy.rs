//! Reads the settings of the engine: its durations and sizes, and the secret key.

use super::SettingsError;
use super::read::Read;
use crate::auth::AuthMode;
use crate::engine::{Policy, ReadSecretKeys, SECRET_KEY_MIN, SecretKeys};
use crate::outbound::Reach;
use crate::store::StoreError;
use crate::task::Secret;
use crate::telemetry::metrics::MetricsMode;
use async_trait::async_trait;
use std::sync::Arc;
use std::time::Duration;

const SECRET_KEY: &str = "A2A_SECRET_KEY";
/// Development identities are not secret either.
const DEVELOPMENT_KEY: &[u8] = b"a2a-lambda development key, not a secret";

/// 5 GiB: the largest object that S3 takes in one PUT.
const UPLOAD_MOST: usize = 5 * 1024 * 1024 * 1024;

/// No place for keys: each use of a key fails.
struct Unread;

#[async_trait]
impl ReadSecretKeys for Unread {
    async fn read(&self) -> Result<Vec<Secret>, StoreError> {
        let why = "this program does not read the secret of `A2A_SECRET_KEY_ID`";
        Err(StoreError::Refused(why.to_owned()))
    }
}

impl Read<'_> {
    /// The engine's durations and sizes, without the secret.
    pub(super) fn policy(
        &self,
        reach: Reach,
        may_reach_private: bool,
    ) -> Result<Policy, SettingsError> {
        let defaults = Policy::default();
        let (thread_ttl, state_ttl) = self.conversation(&defaults)?;
        let rule = "a whole number from 1 to 5368709120";
        let upload_max = self.parsed("A2A_UPLOAD_MAX", rule, |text| {
            let size = text.parse().ok();
            size.filter(|size| (1..=UPLOAD_MOST).contains(size))
        })?;
        Ok(Policy {
            task_ttl: self.duration("A2A_TASK_TTL", defaults.task_ttl)?,
            thread_ttl,
            state_ttl,
            lease: self.duration("A2A_LEASE", defaults.lease)?,
            blocking_budget: self.duration("A2A_BLOCKING_BUDGET", defaults.blocking_budget)?,
            task_run_max: self.duration("A2A_TASK_RUN_MAX", defaults.task_run_max)?,
            flush_interval: self.duration("A2A_FLUSH_INTERVAL", defaults.flush_interval)?,
            upload_max: upload_max.unwrap_or(defaults.upload_max),
            reach,
            may_reach_private,
            limits: self.limits()?,
            idempotent_message_id: self.switch("A2A_IDEMPOTENT_MESSAGE_ID", false)?,
            ..defaults
        })
    }

    /// The lifetime of a thread, and that of its state.
    fn conversation(&self, defaults: &Policy) -> Result<(Duration, Duration), SettingsError> {
        let (of_thread, of_state) = ("A2A_THREAD_TTL", "A2A_STATE_TTL");
        let thread = self.duration(of_thread, defaults.thread_ttl)?;
        let state = self.duration(of_state, defaults.state_ttl)?;
        if state > thread {
            return Err(SettingsError::StateOutlivesThread {
                state: self.text(of_state, &format!("{:?}", defaults.state_ttl)),
                thread: self.text(of_thread, &format!("{:?}", defaults.thread_ttl)),
            });
        }
        Ok((thread, state))
    }

    /// Where a function keeps what it counts.
    pub(super) fn metrics(&self) -> Result<MetricsMode, SettingsError> {
        let words = [("off", MetricsMode::Off), ("table", MetricsMode::Table)];
        self.choice("A2A_METRICS", "`off` or `table`", &words, MetricsMode::Off)
    }

    /// `A2A_SECRET_KEY_ID`, unless `A2A_SECRET_KEY` is set too.
    pub(super) fn secret_key_id(&self) -> Result<Option<String>, SettingsError> {
        let id = self.given("A2A_SECRET_KEY_ID");
        match (&id, self.given(SECRET_KEY)) {
            (Some(_), Some(_)) => Err(SettingsError::TwoSecretKeys),
            _ => Ok(id),
        }
    }

    /// Keys of a program that does not replace them by those of `A2A_SECRET_KEY_ID`.
    pub(super) fn unread_keys() -> SecretKeys {
        SecretKeys::stored(Arc::new(Unread))
    }

    /// The keys of `A2A_SECRET_KEY`, the one in use first.
    pub(super) fn secret_keys(&self, auth: AuthMode) -> Result<SecretKeys, SettingsError> {
        let rule = "at least 32 characters, the same for all functions; after it, with a \
                       comma, the key before it";
        let Some(value) = self.given(SECRET_KEY) else {
            if auth == AuthMode::Dev {
                return Ok(SecretKeys::fixed([DEVELOPMENT_KEY.to_vec()]));
            }
            return Err(SettingsError::Missing {
                name: SECRET_KEY,
                rule,
            });
        };
        let keys: Vec<Vec<u8>> = value.split(',').map(|key| key.trim().into()).collect();
        if keys.iter().all(|key| key.len() >= SECRET_KEY_MIN) {
            return Ok(SecretKeys::fixed(keys));
        }
        // The error ends in the log, so it must not hold the secret.
        Err(SettingsError::Bad {
            name: SECRET_KEY,
            value: "(too short)".to_owned(),
            rule,
        })
    }
}
