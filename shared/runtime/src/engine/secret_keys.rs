//! The secret keys of a deployment: they authenticate page tokens, and seal secrets at rest.
//!
//! The first key makes tokens and seals, each of the others still opens what it has made. So
//! a key can be replaced without an end of any webhook. What is sealed names its key by an id.

use crate::clock::{Clock, SystemClock};
use crate::store::StoreError;
use crate::task::{Secret, Timestamp};
use async_trait::async_trait;
use ring::hmac;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;

/// The fewest characters of a secret key.
pub const SECRET_KEY_MIN: usize = 32;
/// How long keys are used before they are read again.
pub(super) const FRESH: Duration = Duration::from_secs(300);
/// How soon they are read again if a key is not among them, or they could not be read.
const AGAIN: Duration = Duration::from_secs(10);
/// The purpose for which the id of a key is derived.
const ID_PURPOSE: &[u8] = b"a2a-lambda key id 1";

/// Reads the secret keys of a deployment.
#[async_trait]
pub trait ReadSecretKeys: Send + Sync {
    /// The keys, the one in use first. Each has at least [`SECRET_KEY_MIN`] characters.
    ///
    /// # Errors
    /// [`StoreError`] when they cannot be read.
    async fn read(&self) -> Result<Vec<Secret>, StoreError>;
}

/// The secret keys of a deployment. Copies share what was read.
#[derive(Clone)]
pub struct SecretKeys(SecretKeySource);

#[derive(Clone)]
enum SecretKeySource {
    Fixed(Arc<SecretKeySet>),
    Stored(Arc<StoredSecretKeys>),
}

/// Keys that are read when they are first needed.
struct StoredSecretKeys {
    read: Arc<dyn ReadSecretKeys>,
    clock: Arc<dyn Clock>,
    cache: Mutex<Option<KnownSecretKeys>>,
}

struct KnownSecretKeys {
    keys: Arc<SecretKeySet>,
    read_at: Timestamp,
    /// When they are read again.
    until: Timestamp,
}

impl SecretKeys {
    /// The keys of a setting, the one in use first. Without a key, an empty one is used.
    #[must_use]
    pub fn from_keys(keys: impl IntoIterator<Item = Vec<u8>>) -> Self {
        Self(SecretKeySource::Fixed(Arc::new(SecretKeySet::of(keys))))
    }

    /// Keys that `read` reads when they are first needed, and then every five minutes. If
    /// they cannot be read again, the last ones stay in use.
    #[must_use]
    pub fn from_reader(read: Arc<dyn ReadSecretKeys>) -> Self {
        Self::from_reader_with_clock(read, Arc::new(SystemClock))
    }

    fn from_reader_with_clock(read: Arc<dyn ReadSecretKeys>, clock: Arc<dyn Clock>) -> Self {
        Self(SecretKeySource::Stored(Arc::new(StoredSecretKeys {
            read,
            clock,
            cache: Mutex::default(),
        })))
    }

    /// The keys, with that of `text`, a token or what was sealed, if there is one: another
    /// process may already use a newer key.
    ///
    /// # Errors
    /// [`StoreError`] when they were never read and cannot be.
    pub(super) async fn keys_of(
        &self,
        text: Option<&str>,
    ) -> Result<Arc<SecretKeySet>, StoreError> {
        match &self.0 {
            SecretKeySource::Fixed(keys) => Ok(Arc::clone(keys)),
            SecretKeySource::Stored(source) => source.keys_of(text).await,
        }
    }
}

impl StoredSecretKeys {
    async fn keys_of(&self, text: Option<&str>) -> Result<Arc<SecretKeySet>, StoreError> {
        let mut cache = self.cache.lock().await;
        let now = self.clock.now();
        if let Some(cache) = &*cache {
            let is_known = text.is_none_or(|text| cache.keys.split(text).is_some());
            let again = cache.read_at.plus(AGAIN);
            if now < if is_known { cache.until } else { again } {
                return Ok(Arc::clone(&cache.keys));
            }
        }
        match self.read.read().await {
            Ok(keys) => {
                let keys = keys.iter().map(|key| key.expose().as_bytes().to_vec());
                let keys = Arc::new(SecretKeySet::of(keys));
                *cache = Some(KnownSecretKeys {
                    keys: Arc::clone(&keys),
                    read_at: now,
                    until: now.plus(FRESH),
                });
                Ok(keys)
            }
            Err(error) => match &mut *cache {
                Some(cache) => {
                    tracing::warn!("failed to read the secret keys again: {error}");
                    cache.read_at = now;
                    cache.until = now.plus(AGAIN);
                    Ok(Arc::clone(&cache.keys))
                }
                None => Err(error),
            },
        }
    }
}

impl Default for SecretKeys {
    fn default() -> Self {
        Self::from_keys([])
    }
}

/// Equal if they have the same keys, or the same place to read them from.
impl PartialEq for SecretKeys {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (SecretKeySource::Fixed(one), SecretKeySource::Fixed(two)) => one == two,
            (SecretKeySource::Stored(one), SecretKeySource::Stored(two)) => Arc::ptr_eq(one, two),
            _ => false,
        }
    }
}

impl Eq for SecretKeys {}

impl fmt::Debug for SecretKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretKeys(..)")
    }
}

/// Some secret keys, the one in use first.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct SecretKeySet {
    /// The key that makes tokens and seals.
    pub(super) current: SecretKey,
    older: Vec<SecretKey>,
}

/// A secret key.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct SecretKey {
    /// 8 hex digits that say nothing about the key.
    pub(super) id: String,
    bytes: Vec<u8>,
}

impl SecretKeySet {
    /// The set of these keys; of an empty key if there is none.
    pub(crate) fn of(keys: impl IntoIterator<Item = Vec<u8>>) -> Self {
        let mut keys = keys.into_iter().map(SecretKey::new);
        Self {
            current: keys.next().unwrap_or_else(|| SecretKey::new(Vec::new())),
            older: keys.collect(),
        }
    }

    /// The key of `text`, whose id is before the first dot, and the rest of the text.
    pub(super) fn split<'t>(&self, text: &'t str) -> Option<(&SecretKey, &'t str)> {
        let (id, rest) = text.split_once('.')?;
        let mut keys = std::iter::once(&self.current).chain(&self.older);
        Some((keys.find(|key| key.id == id)?, rest))
    }
}

impl SecretKey {
    fn new(bytes: Vec<u8>) -> Self {
        let mut key = Self {
            id: String::new(),
            bytes,
        };
        let digest = key.derive(ID_PURPOSE);
        key.id = hex::encode(digest.as_ref().get(..4).unwrap_or_default());
        key
    }

    /// A key of 32 bytes for one purpose. Keys for other purposes say nothing about it.
    pub(super) fn derive(&self, purpose: &[u8]) -> hmac::Tag {
        hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &self.bytes), purpose)
    }

    /// The key that authenticates texts for one purpose.
    pub(super) fn hmac_key(&self, purpose: &[u8]) -> hmac::Key {
        hmac::Key::new(hmac::HMAC_SHA256, self.derive(purpose).as_ref())
    }
}

/// Fields as bytes. The length of each comes first, so that two lists of fields never have
/// the same bytes.
pub(super) fn bytes_of<'f>(fields: impl IntoIterator<Item = &'f str>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for field in fields {
        bytes.extend((field.len() as u64).to_be_bytes());
        bytes.extend(field.as_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestClock;
    use std::sync::Mutex as StdMutex;

    /// What Secrets Manager holds, how often it was read, and the time.
    struct Place {
        keys: StdMutex<Option<Vec<&'static str>>>,
        reads: StdMutex<u32>,
        clock: Arc<TestClock>,
    }

    impl Place {
        fn holding(keys: &[&'static str]) -> Arc<Self> {
            Arc::new(Self {
                keys: StdMutex::new(Some(keys.to_vec())),
                reads: StdMutex::default(),
                clock: Arc::new(TestClock::standing(Timestamp::default())),
            })
        }

        fn keys(self: &Arc<Self>) -> SecretKeys {
            SecretKeys::from_reader_with_clock(self.clone(), self.clock.clone())
        }

        fn hold(&self, keys: Option<&[&'static str]>) {
            *self.keys.lock().unwrap() = keys.map(<[_]>::to_vec);
        }

        fn wait(&self, time: Duration) {
            self.clock.advance(time);
        }

        fn reads(&self) -> u32 {
            *self.reads.lock().unwrap()
        }
    }

    #[async_trait]
    impl ReadSecretKeys for Place {
        async fn read(&self) -> Result<Vec<Secret>, StoreError> {
            *self.reads.lock().unwrap() += 1;
            let keys = self.keys.lock().unwrap().clone();
            let keys = keys.ok_or_else(|| StoreError::Unavailable("no answer".to_owned()))?;
            Ok(keys.into_iter().map(Secret::new).collect())
        }
    }

    fn id(key: &str) -> String {
        SecretKey::new(key.as_bytes().to_vec()).id
    }

    /// What this key has made.
    fn text(key: &str) -> String {
        format!("{}.", id(key))
    }

    #[tokio::test]
    async fn keys_are_read_when_they_are_needed_and_after_five_minutes() {
        let place = Place::holding(&["first"]);
        let keys = place.keys();
        assert_eq!(place.reads(), 0);
        keys.keys_of(None).await.unwrap();
        place.wait(FRESH.saturating_sub(Duration::from_millis(1)));
        keys.clone().keys_of(None).await.unwrap();
        assert_eq!(place.reads(), 1);
        place.hold(Some(&["second", "first"]));
        place.wait(Duration::from_millis(1));
        let key_set = keys.keys_of(None).await.unwrap();
        assert_eq!((place.reads(), &*key_set.current.id), (2, &*id("second")));
        assert!(key_set.split(&text("first")).is_some());
    }

    #[tokio::test]
    async fn a_seal_of_a_newer_key_is_a_reason_to_read_again_once_in_ten_seconds() {
        let place = Place::holding(&["first"]);
        let keys = place.keys();
        keys.keys_of(None).await.unwrap();
        place.hold(Some(&["second", "first"]));
        let newer = text("second");
        let before = keys.keys_of(Some(&newer)).await.unwrap();
        assert!(before.split(&newer).is_none());
        place.wait(AGAIN);
        let after = keys.keys_of(Some(&newer)).await.unwrap();
        assert!(after.split(&newer).is_some());
        for _ in 0..5 {
            keys.keys_of(Some("ffffffff.")).await.unwrap();
        }
        assert_eq!(place.reads(), 2);
    }

    #[tokio::test]
    async fn keys_that_cannot_be_read_again_stay_in_use() {
        let place = Place::holding(&["first"]);
        let keys = place.keys();
        place.hold(None);
        assert!(keys.keys_of(None).await.is_err());
        place.hold(Some(&["first"]));
        keys.keys_of(None).await.unwrap();
        place.hold(None);
        place.wait(FRESH);
        assert_eq!(keys.keys_of(None).await.unwrap().current.id, id("first"));
        assert_eq!(place.reads(), 3);
        keys.keys_of(None).await.unwrap();
        assert_eq!(place.reads(), 3, "not at each call");
    }

    #[test]
    fn no_debug_output_shows_a_key() {
        let keys = SecretKeys::from_keys([b"canary".to_vec()]);
        assert!(!format!("{keys:?}").contains("canary"));
    }
}
