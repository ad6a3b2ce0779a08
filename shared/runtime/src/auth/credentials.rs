//! Decides who a bearer token belongs to: the decision of the authorizer and of `cargo run`.
//!
//! A token that begins with `a2a_` is only ever an API key, every other token only ever a
//! JWT. So no key is sent to the code for JWTs, and a key never waits for the issuer.

use super::api_key::{ApiKey, PREFIX};
use super::first_key::{FIRST, FirstKey};
#[cfg(feature = "jwt")]
use super::jwt::JwtVerifier;
use super::{AuthError, Authenticated, Caller, RefusalReason};
use crate::clock::Clock;
use crate::store::StoreError;
use crate::store::api_keys::{ApiKeyReader, KeyCheck};
use crate::store::table::ReadTable;
use crate::task::Timestamp;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;

/// The most bytes of a token: API Gateway accepts headers of 10 KB in total.
const LONGEST: usize = 8 * 1024;

/// How long a process waits before it looks again for a check that the table did not have.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// What a process knows of the check of the keys.
struct KnownCheck {
    /// `None` if the table had none.
    check: Option<KeyCheck>,
    read_at: Timestamp,
}

/// The credentials that an agent accepts.
#[derive(Clone)]
pub struct Credentials {
    keys: ApiKeyReader,
    /// The check of the keys, once it was read.
    check: Arc<Mutex<Option<KnownCheck>>>,
    first: Option<FirstKey>,
    #[cfg(feature = "jwt")]
    jwt: Option<Arc<JwtVerifier>>,
    clock: Arc<dyn Clock>,
}

impl Credentials {
    /// Accepts the API keys in `table`.
    #[must_use]
    pub fn new(table: Arc<dyn ReadTable>, clock: Arc<dyn Clock>) -> Self {
        Self {
            keys: ApiKeyReader::new(table),
            check: Arc::default(),
            first: None,
            #[cfg(feature = "jwt")]
            jwt: None,
            clock,
        }
    }

    /// Also accepts the first key of a deployment.
    #[must_use]
    pub fn with_first_key(mut self, first: FirstKey) -> Self {
        self.first = Some(first);
        self
    }

    /// Also accepts the JWTs of an issuer.
    #[cfg(feature = "jwt")]
    #[must_use]
    pub fn with_jwt(mut self, jwt: JwtVerifier) -> Self {
        self.jwt = Some(Arc::new(jwt));
        self
    }

    /// The caller with this `Authorization` header.
    ///
    /// # Errors
    /// [`AuthError::Refused`] for every token that is not valid, whatever the reason;
    /// [`AuthError::Unavailable`] when that cannot be decided now.
    pub async fn admit(&self, authorization: Option<&str>) -> Result<Authenticated, AuthError> {
        let token = token(authorization.unwrap_or_default());
        if token.is_empty() || token.len() > LONGEST {
            return Err(AuthError::Refused(RefusalReason::Malformed));
        }
        if token.starts_with(PREFIX) {
            let key = ApiKey::parse(token);
            let key = key.ok_or(AuthError::Refused(RefusalReason::Malformed))?;
            return self.with_key(&key).await;
        }
        self.with_token(token).await
    }

    async fn with_key(&self, key: &ApiKey) -> Result<Authenticated, AuthError> {
        let unknown = || AuthError::Refused(RefusalReason::UnknownKey(key.id().clone()));
        if key.id().as_str() == FIRST {
            let first = self.first.as_ref().ok_or_else(unknown)?;
            let caller = first.caller(key, self.clock.as_ref()).await?;
            return Ok(Authenticated { caller, ends: None });
        }
        // Anybody can make up keys, and each read is paid.
        if !self.can_be_issued(key).await? {
            return Err(unknown());
        }
        // To the sender an unknown id, a wrong secret and an expired key look the same.
        let record = self.keys.api_key(key.id()).await?;
        let record = record.filter(|record| key.matches(&record.hash));
        let record = record.ok_or_else(unknown)?;
        // DynamoDB's TTL removes an item days after its time.
        if record.expires_at.is_some_and(|end| end <= self.clock.now()) {
            let reason = RefusalReason::ExpiredKey(key.id().clone());
            return Err(AuthError::Refused(reason));
        }
        Ok(Authenticated {
            caller: Caller {
                owner: record.owner,
                tier: record
                    .tier
                    .unwrap_or_else(|| Caller::DEFAULT_TIER.to_owned()),
                scopes: record.scopes,
            },
            ends: record.expires_at,
        })
    }

    /// Whether the key passes the check of the deployment. A process reads a check once. Before
    /// there is one, no key was made.
    async fn can_be_issued(&self, key: &ApiKey) -> Result<bool, StoreError> {
        let mut cache = self.check.lock().await;
        let now = self.clock.now();
        let is_due = match cache.as_ref() {
            Some(cache) => cache.check.is_none() && now >= cache.read_at.plus(LOOK_AGAIN),
            None => true,
        };
        if is_due {
            *cache = Some(KnownCheck {
                check: self.keys.key_check().await?,
                read_at: now,
            });
        }
        let check = cache.as_ref().and_then(|cache| cache.check.as_ref());
        Ok(check.is_some_and(|check| key.passes(check)))
    }

    #[cfg(feature = "jwt")]
    async fn with_token(&self, token: &str) -> Result<Authenticated, AuthError> {
        let jwt = self.jwt.as_ref();
        let jwt = jwt.ok_or(AuthError::Refused(RefusalReason::NoIssuer))?;
        jwt.verify(token).await
    }

    #[cfg(not(feature = "jwt"))]
    #[expect(clippy::unused_async, reason = "with the feature `jwt` it waits")]
    async fn with_token(&self, _token: &str) -> Result<Authenticated, AuthError> {
        Err(AuthError::Refused(RefusalReason::NoIssuer))
    }
}

/// The token in an `Authorization` header, with or without the scheme `Bearer`.
fn token(header: &str) -> &str {
    let header = header.trim();
    match header.split_once(' ') {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => token.trim(),
        _ => header,
    }
}

debug_as_name!(Credentials);

#[cfg(test)]
pub(crate) mod tests;
