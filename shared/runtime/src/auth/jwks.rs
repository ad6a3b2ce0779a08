//! Keeps the public keys of an issuer (RFC 7517).
//!
//! The last good set stays in use while the issuer does not answer, for a day: who has a key that
//! the issuer has withdrawn may be who keeps its answers away. One caller at a time
//! fetches. Callers whose key is known do not wait for it.

use super::issuer::{JwtIssuer, configuration_url};
use super::signatures::is_rsa_size;
use super::{AuthError, RefusalReason};
use crate::clock::{Clock, lock};
use crate::outbound::{Fetcher, OutboundUrl};
use crate::store::StoreError;
use crate::task::Timestamp;
use async_trait::async_trait;
use bytes::Bytes;
use http::{HeaderMap, Method};
use jsonwebtoken::jwk::{AlgorithmParameters, Jwk, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use serde_json::Value;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How long one fetch may take.
pub(super) const TIMEOUT: Duration = Duration::from_secs(2);
/// The most bytes of one response: 256 KB.
const MOST: usize = 256 * 1024;
/// The age at which a set is fetched again.
const REFRESH: Duration = Duration::from_secs(300);
/// The age from which on a set is not used.
const OLDEST: Duration = Duration::from_secs(24 * 3_600);
/// The shortest time between two fetches, whatever tokens arrive.
const PAUSE: Duration = Duration::from_secs(60);
/// The same while no set was ever read, so that one lost packet does not refuse callers for
/// a minute.
const FIRST_PAUSE: Duration = Duration::from_secs(5);

/// Fetches the documents of an issuer.
#[async_trait]
pub(super) trait FetchKeys: Send + Sync {
    /// The document at `url`; an error says for the log why there is none.
    async fn get(&self, url: &str) -> Result<Bytes, String>;
}

/// Fetches over HTTPS from public addresses. With [`AddressPolicy::Loopback`] it also uses HTTP to this
/// machine.
#[async_trait]
impl FetchKeys for Fetcher {
    async fn get(&self, url: &str) -> Result<Bytes, String> {
        let target = OutboundUrl::parse(url, self.reach());
        let target = target.map_err(|error| format!("the URL {error}"))?;
        let (headers, body) = (HeaderMap::new(), Bytes::new());
        let response = self.send(&target, Method::GET, headers, body, MOST).await;
        let response = response.map_err(|error| error.to_string())?;
        match (response.status, response.cut) {
            (200, false) => Ok(response.body),
            (200, true) => Err(format!("it has more than {MOST} bytes")),
            (status, _) => Err(format!("its status is {status}")),
        }
    }
}

/// The keys of an issuer.
pub(super) struct KeySet {
    issuer: String,
    fetch: Arc<dyn FetchKeys>,
    clock: Arc<dyn Clock>,
    state: Mutex<KnownKeys>,
    /// Held during a fetch.
    gate: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct KnownKeys {
    /// The last good set.
    keys: Option<Vec<Jwk>>,
    /// When it was fetched.
    fetched_at: Option<Timestamp>,
    /// When the last fetch began, whatever came of it.
    tried_at: Option<Timestamp>,
}

impl KnownKeys {
    /// The key for a token. A token without a key id fits a set with one key only.
    fn find(&self, kid: Option<&str>, algorithm: Algorithm) -> Option<DecodingKey> {
        let keys = self.keys.as_ref()?;
        let key = match (kid, keys.as_slice()) {
            (Some(kid), keys) => keys
                .iter()
                .find(|key| key.common.key_id.as_deref() == Some(kid))?,
            (None, [only]) => only,
            (None, _) => return None,
        };
        fits(key, algorithm).then(|| DecodingKey::from_jwk(key).ok())?
    }
}

/// Whether a key may verify tokens of this algorithm (RFC 7517 §4.2, §4.4).
fn fits(key: &Jwk, algorithm: Algorithm) -> bool {
    let signs = matches!(
        key.common.public_key_use,
        None | Some(PublicKeyUse::Signature)
    );
    let key_algorithm = key.common.key_algorithm;
    let same = key_algorithm
        .is_none_or(|key_algorithm| key_algorithm.to_string() == format!("{algorithm:?}"));
    signs && same
}

/// Whether a key is public, and of a size that verifies.
fn is_usable(key: &Jwk) -> bool {
    match &key.algorithm {
        AlgorithmParameters::OctetKey(_) => false,
        AlgorithmParameters::RSA(rsa) if !is_rsa_size(&rsa.n) => {
            let kid = key.common.key_id.as_deref().unwrap_or_default();
            tracing::warn!(
                "the RSA key `{kid}` of the JWT issuer is not used: it has less than 2,048 or more \
                 than 8,192 bits"
            );
            false
        }
        _ => true,
    }
}

impl KeySet {
    pub(super) fn new(
        issuer: &JwtIssuer,
        fetch: Arc<dyn FetchKeys>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            issuer: issuer.issuer.clone(),
            fetch,
            clock,
            state: Mutex::default(),
            gate: tokio::sync::Mutex::default(),
        }
    }

    /// The key with this id. An unknown id causes a fetch, at most once a minute.
    pub(super) async fn key(
        &self,
        kid: Option<&str>,
        algorithm: Algorithm,
    ) -> Result<DecodingKey, AuthError> {
        let find = || {
            let mut state = lock(&self.state);
            let now = self.clock.now();
            if state.fetched_at.is_some_and(|at| now >= at.plus(OLDEST)) {
                state.keys = None;
            }
            let fresh = state.fetched_at.is_some_and(|at| now < at.plus(REFRESH));
            (state.find(kid, algorithm), fresh)
        };
        let _gate = match find() {
            (Some(key), true) => return Ok(key),
            (Some(old), false) => match self.gate.try_lock() {
                Ok(gate) => gate,
                Err(_) => return Ok(old),
            },
            (None, _) => self.gate.lock().await,
        };
        // Another caller may have fetched meanwhile.
        if let (Some(key), true) = find() {
            return Ok(key);
        }
        self.refresh().await;
        let state = lock(&self.state);
        match (state.find(kid, algorithm), &state.keys) {
            (Some(key), _) => Ok(key),
            (None, Some(_)) => Err(AuthError::Refused(RefusalReason::TokenSignature)),
            (None, None) => Err(AuthError::Unavailable(StoreError::Unavailable(
                "no keys of the issuer were read in the last day".to_owned(),
            ))),
        }
    }

    /// Fetches the set, unless the last fetch was less than a minute ago.
    async fn refresh(&self) {
        let now = self.clock.now();
        {
            let mut state = lock(&self.state);
            let pause = state.keys.as_ref().map_or(FIRST_PAUSE, |_| PAUSE);
            if state.tried_at.is_some_and(|at| now < at.plus(pause)) {
                return;
            }
            state.tried_at = Some(now);
        }
        match self.fetch().await {
            Ok(keys) => {
                let mut state = lock(&self.state);
                state.keys = Some(keys);
                state.fetched_at = Some(now);
            }
            Err(error) => tracing::warn!("the keys of the JWT issuer stay as they are: {error}"),
        }
    }

    async fn fetch(&self) -> Result<Vec<Jwk>, String> {
        let url = self.discover().await?;
        let set = self.document(&url).await?;
        let entries = set.get("keys").and_then(Value::as_array);
        // RFC 7517 §5: a reader ignores keys of a kind that it does not know.
        let readable_keys = entries
            .into_iter()
            .flatten()
            .filter_map(|key| serde_json::from_value::<Jwk>(key.clone()).ok());
        let keys: Vec<Jwk> = readable_keys.filter(is_usable).collect();
        if keys.is_empty() {
            let what = "key for signatures that this program knows";
            return Err(format!("`{url}` has no {what}"));
        }
        Ok(keys)
    }

    /// The address of the keys, from the issuer's `OpenID` configuration.
    async fn discover(&self) -> Result<String, String> {
        let url = configuration_url(&self.issuer);
        let document = self.document(&url).await?;
        let text = |name: &str| document.get(name).and_then(Value::as_str);
        // OpenID Connect Discovery 1.0 §4.3: the issuer must be the same text.
        if text("issuer") != Some(self.issuer.as_str()) {
            return Err(format!(
                "`{url}` has no `issuer` that is the configured one"
            ));
        }
        let keys = text("jwks_uri").map(str::to_owned);
        keys.ok_or_else(|| format!("`{url}` has no `jwks_uri`"))
    }

    /// The document at `url`; null if it is not JSON.
    async fn document(&self, url: &str) -> Result<Value, String> {
        let body = self.fetch.get(url).await;
        let body = body.map_err(|why| format!("failed to fetch `{url}`: {why}"))?;
        Ok(serde_json::from_slice(&body).unwrap_or_default())
    }
}
