//! The first API key of a deployment. Its secret is in Secrets Manager and not in the table.
//!
//! So the first caller needs no rights on the table, only the right to read one secret.

use super::{AuthError, Caller, RefusalReason, api_key::ApiKey};
use crate::clock::Clock;
use crate::store::StoreError;
use crate::task::{Owner, Timestamp};
use async_trait::async_trait;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;

/// The id of the first key, which no other key has, and the rate tier of its callers.
pub const FIRST: &str = "first";
/// How long a secret is used before it is read again.
const FRESH: Duration = Duration::from_secs(300);
/// The scope that the first key has: its caller operates the deployment.
const SCOPE: &str = "ops";

/// Where the secret of the first key is.
#[async_trait]
pub trait FirstSecret: Send + Sync {
    /// The secret: the part of the key after `a2a_first_`.
    ///
    /// # Errors
    /// [`StoreError`] when it cannot be read.
    async fn secret(&self) -> Result<String, StoreError>;
}

/// The first key of a deployment, and whose it is.
#[derive(Clone)]
pub struct FirstKey {
    owner: Owner,
    source: Arc<dyn FirstSecret>,
    cache: Arc<Mutex<Option<KnownSecret>>>,
}

/// A secret that was read.
struct KnownSecret {
    hash: [u8; 32],
    read_at: Timestamp,
}

impl FirstKey {
    /// The first key, whose callers are `owner`.
    #[must_use]
    pub fn new(owner: Owner, source: Arc<dyn FirstSecret>) -> Self {
        Self {
            owner,
            source,
            cache: Arc::default(),
        }
    }

    /// The caller with this key.
    pub(super) async fn caller(
        &self,
        key: &ApiKey,
        clock: &dyn Clock,
    ) -> Result<Caller, AuthError> {
        let mut cache = self.cache.lock().await;
        let now = clock.now();
        let fresh = cache.as_ref().filter(|it| now < it.read_at.plus(FRESH));
        // A wrong key is no reason to read the secret again: anybody can send one.
        let hash = match fresh {
            Some(cache) => cache.hash,
            None => {
                let secret = self.source.secret().await?;
                let hash = ApiKey::of(key.id().clone(), secret.trim()).hash();
                *cache = Some(KnownSecret { hash, read_at: now });
                hash
            }
        };
        if !key.matches(&hash) {
            return Err(AuthError::Refused(RefusalReason::UnknownKey(
                key.id().clone(),
            )));
        }
        Ok(Caller {
            owner: self.owner.clone(),
            tier: FIRST.to_owned(),
            scopes: BTreeSet::from([SCOPE.to_owned()]),
        })
    }
}

debug_as_name!(FirstKey { owner });
