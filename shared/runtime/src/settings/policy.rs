//! Reads the settings of the engine: its durations, sizes and limits, and the secret key.

use super::variables::{Variables, or};
use super::{SettingsError, Source};
use crate::auth::AuthMode;
use crate::engine::{
    CallRate, LimitPolicy, Policy, RatePolicy, ReadSecretKeys, SECRET_KEY_MIN, SecretKeys,
    SharedStreams,
};
use crate::outbound::AddressPolicy;
use crate::store::StoreError;
use crate::task::Secret;
use async_trait::async_trait;
use std::collections::BTreeMap;
use std::sync::Arc;

const SECRET_KEY: &str = "A2A_SECRET_KEY";
/// The rule of [`SECRET_KEY`].
const KEY: &str = "at least 32 characters, the same for all functions; after it, with a comma, \
                   the key before it";
/// Development identities are not secret either.
const DEVELOPMENT_KEY: &[u8] = b"a2a-lambda development key, not a secret";

/// The limits of a deployed function that its settings do not change: calls a minute, streams,
/// and by day stored bytes (10 GiB) and tokens of models.
const DEPLOYED: (u32, u32, u64, u64) = (100, 20, 10_737_418_240, 20_000_000);
/// The tokens of models that a task may use, also on the machine of a developer.
const TASK_TOKENS: u64 = 1_000_000;
/// The part of the workers that the turns of one tenant may use, in percent.
const WORKER_SHARE: u32 = 80;

/// No place for keys: each use of a key fails.
struct Unread;

#[async_trait]
impl ReadSecretKeys for Unread {
    async fn read(&self) -> Result<Vec<Secret>, StoreError> {
        let why = "this program does not read the secret of `A2A_SECRET_KEY_ID`";
        Err(StoreError::Refused(why.to_owned()))
    }
}

impl Variables {
    /// The engine's durations and sizes, without the secret keys.
    pub(super) fn policy(
        self,
        source: &dyn Source,
        is_deployed: bool,
    ) -> Result<Policy, SettingsError> {
        let (limits, defaults) = (self.clone().limits(is_deployed), Policy::default());
        let reach = match or(self.a2a_push_allow_private, false) {
            true if is_deployed => return Err(SettingsError::PrivateDeployed),
            true => AddressPolicy::Anything,
            false => AddressPolicy::Public,
        };
        let thread_ttl = or(self.a2a_thread_ttl, defaults.thread_ttl);
        let state_ttl = or(self.a2a_state_ttl, defaults.state_ttl);
        if state_ttl > thread_ttl {
            let text = |name, ttl| {
                let value = source.get(name).filter(|text| !text.is_empty());
                value.unwrap_or_else(|| format!("{ttl:?}"))
            };
            return Err(SettingsError::StateOutlivesThread {
                state: text("A2A_STATE_TTL", state_ttl),
                thread: text("A2A_THREAD_TTL", thread_ttl),
            });
        }
        Ok(Policy {
            task_ttl: or(self.a2a_task_ttl, defaults.task_ttl),
            thread_ttl,
            state_ttl,
            lease: or(self.a2a_lease, defaults.lease),
            blocking_budget: or(self.a2a_blocking_budget, defaults.blocking_budget),
            task_run_max: or(self.a2a_task_run_max, defaults.task_run_max),
            flush_interval: or(self.a2a_flush_interval, defaults.flush_interval),
            upload_max: or(self.a2a_upload_max, defaults.upload_max),
            reach,
            may_reach_private: !is_deployed,
            limits,
            idempotent_message_id: or(self.a2a_idempotent_message_id, false),
            ..defaults
        })
    }

    /// The limits of a tenant.
    fn limits(self, is_deployed: bool) -> LimitPolicy {
        let off = (0, 0, 0, 0);
        let (calls, streams, bytes, tokens) = if is_deployed { DEPLOYED } else { off };
        // Of a deployed function the calls of the first key.
        let first = || [("first".to_owned(), CallRate::per_minute(6_000))].into();
        let tiers = is_deployed.then(first).unwrap_or_default();
        let share = or(self.a2a_worker_share, WORKER_SHARE);
        let workers = unless_zero(self.a2a_workers, 0);
        let workers = workers.filter(|_| share < 100);
        let pool: Option<(String, u32)> = self.a2a_concurrency.map(Into::into);
        let pool = pool.filter(|(_, calls)| *calls > 0);
        LimitPolicy {
            rates: RatePolicy {
                calls: unless_zero(self.a2a_rate_limit, calls).map(CallRate::per_minute),
                tiers: or(self.a2a_rate_tiers, tiers),
                skills: or(self.a2a_rate_skills, BTreeMap::new()),
            },
            streams_per_tenant: unless_zero(self.a2a_streams_per_tenant, streams),
            shared_streams: pool.map(|(pool, calls)| SharedStreams {
                pool,
                // The other half stays free for calls that end soon.
                cap: (calls / 2).max(1),
            }),
            // The share of a tenant, rounded up.
            turns_per_tenant: workers.map(|it| it.saturating_mul(share).div_ceil(100)),
            stored_bytes_per_day: unless_zero(self.a2a_stored_per_day, bytes),
            tokens_per_day: unless_zero(self.a2a_tokens_per_day, tokens),
            tokens_per_task: unless_zero(self.a2a_task_tokens, TASK_TOKENS),
        }
    }

    /// The keys, and `A2A_SECRET_KEY_ID`. Who reads the secret with this id replaces the keys,
    /// which fail until then.
    pub(super) fn secret_keys(
        self,
        auth: AuthMode,
    ) -> Result<(SecretKeys, Option<String>), SettingsError> {
        let keys = match (self.a2a_secret_key, &self.a2a_secret_key_id) {
            (Some(_), Some(_)) => return Err(SettingsError::TwoSecretKeys),
            (None, Some(_)) => SecretKeys::from_reader(Arc::new(Unread)),
            (Some(keys), None) => fixed_keys(&keys)?,
            (None, None) if auth == AuthMode::Dev => {
                SecretKeys::from_keys([DEVELOPMENT_KEY.to_vec()])
            }
            (None, None) => {
                return Err(SettingsError::Missing {
                    name: SECRET_KEY,
                    rule: KEY,
                });
            }
        };
        Ok((keys, self.a2a_secret_key_id))
    }
}

/// A number for which 0 means that there is none.
fn unless_zero<N: Default + PartialEq>(number: Option<impl Into<N>>, default: N) -> Option<N> {
    Some(or(number, default)).filter(|number| *number != N::default())
}

/// The keys of `A2A_SECRET_KEY`, the one in use first.
fn fixed_keys(text: &str) -> Result<SecretKeys, SettingsError> {
    let keys: Vec<Vec<u8>> = text.split(',').map(|key| key.trim().into()).collect();
    if keys.iter().all(|key| key.len() >= SECRET_KEY_MIN) {
        return Ok(SecretKeys::from_keys(keys));
    }
    Err(SettingsError::Bad {
        name: SECRET_KEY,
        rule: KEY.to_owned(),
    })
}
