//! Seals secrets at rest: the tokens and credentials of push configs, and answers to
//! `auth-required`. An answer leaves a fingerprint, which recognises it when it is sent again. A key derived from a secret key encrypts and authenticates each
//! secret and binds it to its place.
//!
//! The cipher is AES-256-GCM. The key is derived for this purpose only, so that page
//! tokens and other uses of the secret key reveal nothing about it. The nonce is
//! random and has 96 bits, which is safe for 2^32 secrets per key (NIST SP 800-38D
//! §8.3).

use super::secret_keys::{self, SecretKey, SecretKeySet};
use super::{Engine, EngineError};
use crate::store::StoreError;
use crate::task::{
    A2aError, FieldViolation, Message, Owner, PartContent, PushId, Sealed, SealedAnswer, Secret,
    TaskId, TaskRecord, WriteId,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hmac;
use std::sync::Arc;

/// The purpose for which the key is derived.
const PURPOSE: &[u8] = b"a2a-lambda secrets 1";
/// The purpose of the key of fingerprints.
const FINGERPRINT: &[u8] = b"a2a-lambda fingerprints 1";
/// The most bytes of an answer to `auth-required`, in the form that is sealed.
const ANSWER_MAX: usize = 32 * 1024;

/// Seals and opens secrets.
pub(super) struct Sealer {
    keys: Arc<SecretKeySet>,
}

/// Where a secret belongs: it opens only there.
#[derive(Debug, Clone, Copy)]
pub(super) struct SealPlace<'a> {
    pub(super) owner: &'a Owner,
    pub(super) task: &'a TaskId,
    pub(super) of: SealPurpose<'a>,
}

/// Which secret of its task it is.
#[derive(Debug, Clone, Copy)]
pub(super) enum SealPurpose<'a> {
    /// A secret of a push config: the config's id and the secret's name.
    Webhook(&'a PushId, &'static str),
    /// The answer that opened a turn: incarnation and turn number.
    Answer(&'a WriteId, u32),
}

impl<'a> SealPlace<'a> {
    /// The place of the answer that opens turn number `turn` of `record`.
    pub(super) fn of_answer(record: &'a TaskRecord, turn: u32) -> Self {
        Self {
            owner: record.owner(),
            task: record.id(),
            of: SealPurpose::Answer(record.incarnation(), turn),
        }
    }

    /// The place as bytes. The length of each field comes first, so that two places
    /// never have the same bytes.
    fn bytes(&self) -> Vec<u8> {
        let (kind, whose, which) = match self.of {
            SealPurpose::Webhook(id, name) => ("webhook", id.as_str(), name.to_owned()),
            SealPurpose::Answer(incarnation, turn) => {
                ("answer", incarnation.as_str(), turn.to_string())
            }
        };
        let mut bytes = Vec::new();
        for field in [
            kind,
            self.owner.tenant.as_str(),
            self.owner.subject.as_str(),
            self.task.as_str(),
            whose,
            &which,
        ] {
            bytes.extend((field.len() as u64).to_be_bytes());
            bytes.extend(field.as_bytes());
        }
        bytes
    }
}

impl Sealer {
    /// Creates a sealer that seals with the current key, and opens with each of `keys`.
    pub(super) const fn new(keys: Arc<SecretKeySet>) -> Self {
        Self { keys }
    }

    /// Seals `secret` for `seal_place`. All bits of `number` must be random, since 96 of
    /// them are the nonce. `None` does not occur.
    pub(super) fn seal(
        &self,
        secret: &Secret,
        seal_place: SealPlace<'_>,
        number: u128,
    ) -> Option<Sealed> {
        let nonce: [u8; NONCE_LEN] = number.to_be_bytes().first_chunk().copied()?;
        let mut text = secret.expose().as_bytes().to_vec();
        let key = self.keys.current();
        cipher(key)?
            .seal_in_place_append_tag(
                Nonce::assume_unique_for_key(nonce),
                Aad::from(seal_place.bytes()),
                &mut text,
            )
            .ok()?;
        let body = [nonce.as_slice(), &text].concat();
        let body = STANDARD_NO_PAD.encode(body);
        Some(Sealed::stored(format!("{}.{body}", key.id())))
    }

    /// The fingerprint of a text at its place: it recognises the text and reveals nothing
    /// about it.
    pub(super) fn fingerprint(&self, text: &[u8], seal_place: SealPlace<'_>) -> String {
        let key = self.keys.current();
        let hash = hmac::sign(&fingerprint_key(key), &[&seal_place.bytes(), text].concat());
        format!("{}.{}", key.id(), STANDARD_NO_PAD.encode(hash))
    }

    /// Whether [`fingerprint`](Self::fingerprint) made this fingerprint of `text` at `seal_place`.
    pub(super) fn recognises(
        &self,
        fingerprint: &str,
        text: &[u8],
        seal_place: SealPlace<'_>,
    ) -> bool {
        let check = || {
            let (id, hash) = fingerprint.split_once('.')?;
            let (key, hash) = (self.keys.key(id)?, STANDARD_NO_PAD.decode(hash).ok()?);
            let text = [&seal_place.bytes(), text].concat();
            hmac::verify(&fingerprint_key(key), &text, &hash).ok()
        };
        check().is_some()
    }

    /// Opens what was sealed for `seal_place`; `None` if it was sealed for another place or
    /// under a key that is not known.
    pub(super) fn open(&self, ciphertext: &Sealed, seal_place: SealPlace<'_>) -> Option<Secret> {
        let (id, body) = ciphertext.as_str().split_once('.')?;
        let mut body = STANDARD_NO_PAD.decode(body).ok()?;
        let (nonce, text) = body.split_at_mut_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let plain = cipher(self.keys.key(id)?)?
            .open_in_place(nonce, Aad::from(seal_place.bytes()), text)
            .ok()?;
        String::from_utf8(plain.to_vec()).ok().map(Secret::new)
    }
}

/// The key of fingerprints under a secret key.
fn fingerprint_key(key: &SecretKey) -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA256, &key.derive(FINGERPRINT))
}

/// The cipher under a secret key.
fn cipher(key: &SecretKey) -> Option<LessSafeKey> {
    let key = UnboundKey::new(&AES_256_GCM, &key.derive(PURPOSE)).ok()?;
    Some(LessSafeKey::new(key))
}

/// The id of the key under which something was sealed.
pub(super) fn key_id(ciphertext: &Sealed) -> Option<&str> {
    secret_keys::id_in(ciphertext.as_str())
}

/// Refuses files in an answer to `auth-required`. The answer itself is sealed, but its
/// files would be stored unencrypted with the task.
///
/// # Errors
/// [`A2aError::InvalidParams`] naming each such part.
pub(super) fn check_answer(message: &Message) -> Result<(), A2aError> {
    let parts = message.parts.iter().enumerate();
    let is_file =
        |content: &PartContent| !matches!(content, PartContent::Text(_) | PartContent::Data(_));
    let files = parts.filter(|(_, part)| is_file(&part.content));
    let violations: Vec<FieldViolation> = files
        .map(|(index, _)| {
            let why = "an answer to auth-required holds text and data, and no files";
            FieldViolation::new(format!("message.parts[{index}]"), why)
        })
        .collect();
    if violations.is_empty() {
        return Ok(());
    }
    Err(A2aError::InvalidParams { violations })
}

impl Engine {
    /// Seals the answer that opens the next turn of `record`. The fingerprint is that of
    /// `print`.
    ///
    /// # Errors
    /// [`A2aError::InvalidParams`] if it is too large.
    pub(super) async fn seal_answer(
        &self,
        record: &TaskRecord,
        message: &Message,
        print: &[u8],
    ) -> Result<SealedAnswer, EngineError> {
        let too_large = |size: String| {
            let why =
                format!("an answer to auth-required has at most {ANSWER_MAX} bytes, not {size}");
            EngineError::from(A2aError::invalid("message.parts", why))
        };
        let text = match a2a_lambda_model::stored::message_text(message) {
            Ok(text) if text.len() <= ANSWER_MAX => text,
            Ok(text) => return Err(too_large(text.len().to_string())),
            Err(StoreError::TooLarge(size)) => return Err(too_large(size.to_string())),
            Err(error) => return Err(error.into()),
        };
        let seal_place = SealPlace::of_answer(record, record.turn() + 1);
        let sealer = Sealer::new(self.reader.policy.secrets.keys().await?);
        let ciphertext = sealer.seal(&Secret::new(text), seal_place, self.ids.next());
        Ok(SealedAnswer {
            sealed: ciphertext.ok_or_else(|| EngineError::broken("failed to seal an answer"))?,
            fingerprint: sealer.fingerprint(print, seal_place),
        })
    }

    /// Whether `fingerprint` is that of `print` for the answer that opened the current turn
    /// of `record`. It is not if its key is no longer known.
    ///
    /// # Errors
    /// [`StoreError`] when the keys cannot be read.
    pub(super) async fn has_fingerprint(
        &self,
        record: &TaskRecord,
        fingerprint: &str,
        print: &[u8],
    ) -> Result<bool, StoreError> {
        let id = secret_keys::id_in(fingerprint);
        let keys = self.reader.policy.secrets.keys_with(id).await?;
        let seal_place = SealPlace::of_answer(record, record.turn());
        Ok(Sealer::new(keys).recognises(fingerprint, print, seal_place))
    }

    /// The answer that opened the current turn of `record`; `None` if it does not open, or
    /// if its key is still not known when every process has read the keys again.
    ///
    /// # Errors
    /// [`StoreError`] when the keys cannot be read, or do not yet contain the key of the
    /// answer. Another process may have sealed it with a key that this one gets later.
    pub(super) async fn open_answer(
        &self,
        record: &TaskRecord,
        ciphertext: &Sealed,
    ) -> Result<Option<Message>, StoreError> {
        let seal_place = SealPlace::of_answer(record, record.turn());
        let (policy, id) = (&self.reader.policy, key_id(ciphertext));
        let keys = policy.secrets.keys_with(id).await?;
        let unknown = id.is_some_and(|id| keys.key(id).is_none());
        let read_again = record.progress_at().plus(secret_keys::FRESH);
        if unknown && self.reader.clock.now() < read_again {
            let why = "the key of an answer is not known to this process";
            return Err(StoreError::Unavailable(why.to_owned()));
        }
        let secret = Sealer::new(keys).open(ciphertext, seal_place);
        Ok(secret.and_then(|text| a2a_lambda_model::stored::message_of_text(text.expose()).ok()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::{Subject, TenantId};

    fn sealer_of(keys: &[&str]) -> Sealer {
        let keys = keys.iter().map(|key| key.as_bytes().to_vec());
        Sealer::new(Arc::new(SecretKeySet::of(keys)))
    }

    #[test]
    fn a_replaced_key_still_opens_what_it_has_sealed() {
        let owner = Owner {
            tenant: TenantId::parse("acme").unwrap(),
            subject: Subject::parse("ann").unwrap(),
        };
        let (task, config) = (TaskId::made_of(1), PushId::only());
        let place = SealPlace {
            owner: &owner,
            task: &task,
            of: SealPurpose::Webhook(&config, "token"),
        };
        let secret = Secret::new("canary");
        let before = sealer_of(&["old"]).seal(&secret, place, 7 << 100).unwrap();
        let after = sealer_of(&["new", "old"]);
        assert_eq!(after.open(&before, place), Some(secret.clone()));
        let newer = after.seal(&secret, place, 8 << 100).unwrap();
        assert_ne!(key_id(&before), key_id(&newer));
        assert_eq!(sealer_of(&["old"]).open(&newer, place), None);
        assert_eq!(sealer_of(&["new"]).open(&before, place), None);
    }

    #[test]
    fn a_sealed_secret_opens_only_at_its_place_under_its_key() {
        let owner = |tenant: &str| Owner {
            tenant: TenantId::parse(tenant).unwrap(),
            subject: Subject::parse("ann").unwrap(),
        };
        let (mine, other) = (owner("acme"), owner("other"));
        let (task, another) = (TaskId::made_of(1), TaskId::made_of(2));
        let (config, second) = (PushId::only(), PushId::made_of(1));
        let write = WriteId::made_of(1);
        let place = SealPlace {
            owner: &mine,
            task: &task,
            of: SealPurpose::Webhook(&config, "token"),
        };
        let sealer = sealer_of(&["secret"]);
        let secret = Secret::new("canary");
        let sealed = sealer.seal(&secret, place, 7 << 100).unwrap();
        assert!(!sealed.as_str().contains("canary"));
        assert_eq!(sealer.open(&sealed, place), Some(secret.clone()));
        let again = sealer.seal(&secret, place, 8 << 100).unwrap();
        assert_ne!(sealed, again, "each sealing uses a new nonce");
        for elsewhere in [
            SealPlace {
                owner: &other,
                ..place
            },
            SealPlace {
                task: &another,
                ..place
            },
            SealPlace {
                of: SealPurpose::Webhook(&second, "token"),
                ..place
            },
            SealPlace {
                of: SealPurpose::Webhook(&config, "credentials"),
                ..place
            },
            SealPlace {
                of: SealPurpose::Answer(&write, 1),
                ..place
            },
        ] {
            assert_eq!(sealer.open(&sealed, elsewhere), None);
        }
        assert_eq!(sealer_of(&["guess"]).open(&sealed, place), None);
        let cut: String = sealed.as_str().chars().skip(2).collect();
        for broken in ["", ".", "AAAA", "not base64!", &cut] {
            assert_eq!(
                sealer.open(&Sealed::stored(broken), place),
                None,
                "{broken}"
            );
        }
    }

    #[test]
    fn a_sealed_answer_opens_only_in_its_turn_and_incarnation() {
        let owner = Owner {
            tenant: TenantId::parse("acme").unwrap(),
            subject: Subject::parse("ann").unwrap(),
        };
        let (task, write, later) = (TaskId::made_of(1), WriteId::made_of(1), WriteId::made_of(2));
        let place = |of| SealPlace {
            owner: &owner,
            task: &task,
            of,
        };
        let (sealer, secret) = (sealer_of(&["secret"]), Secret::new("canary"));
        let own = place(SealPurpose::Answer(&write, 2));
        let sealed = sealer.seal(&secret, own, 9 << 100).unwrap();
        assert_eq!(sealer.open(&sealed, own), Some(secret));
        for elsewhere in [
            SealPurpose::Answer(&write, 1),
            SealPurpose::Answer(&later, 2),
        ] {
            assert_eq!(sealer.open(&sealed, place(elsewhere)), None);
        }
    }
}
