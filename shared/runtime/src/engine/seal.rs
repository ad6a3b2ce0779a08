//! Seals secrets at rest: the tokens and credentials of push configs, answers to `auth-required`,
//! and messages to skills that keep no input. A message leaves a fingerprint, which recognises it
//! when it is sent again.
//! A key derived from a secret key encrypts and authenticates each secret and binds it to its
//! place.
//!
//! The cipher is AES-256-GCM. The key is derived for this purpose only, so that page
//! tokens and other uses of the secret key reveal nothing about it. The nonce is
//! random and has 96 bits, which is safe for 2^32 secrets per key (NIST SP 800-38D
//! §8.3).

use super::error::EngineError;
use super::reader::Reader;
use super::secret_keys::SecretKeys;
use super::secret_keys::{self, SecretKey, SecretKeySet, bytes_of};
use crate::clock::{Clock, Ids};
use crate::engine::repeat::{MessagePrint, last_message};
use crate::store::StoreError;
use crate::task::{
    A2aError, Change, Message, Owner, Part, PartContent, PushId, Sealed, SealedAnswer, Secret,
    TaskId, TaskRecord, TaskState,
};
use a2a_lambda_skill::SkillMetadata;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hmac;
use std::sync::Arc;

/// The purpose for which the key is derived.
const PURPOSE: &[u8] = b"a2a-lambda secrets 1";
/// The purpose of the key of fingerprints.
const FINGERPRINT: &[u8] = b"a2a-lambda fingerprints 1";
/// The most bytes of a message, in the form that is sealed.
const SEALED_MAX: usize = 32 * 1024;

/// Where a secret belongs: it opens only there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AssociatedData(Vec<u8>);

impl AssociatedData {
    fn of(owner: &Owner, task: &TaskId, [kind, whose, which]: [&str; 3]) -> Self {
        let (tenant, subject) = (owner.tenant.as_str(), owner.subject.as_str());
        Self(bytes_of([
            kind,
            tenant,
            subject,
            task.as_str(),
            whose,
            which,
        ]))
    }

    /// The place of the secret `name` of a push config.
    pub(super) fn of_webhook(owner: &Owner, task: &TaskId, id: &PushId, name: &str) -> Self {
        Self::of(owner, task, ["webhook", id.as_str(), name])
    }

    /// The place of the message that opens turn number `turn` of `record`.
    fn of_answer(record: &TaskRecord, turn: u32) -> Self {
        let (incarnation, turn) = (record.incarnation.as_str(), turn.to_string());
        Self::of(&record.owner, &record.id, ["answer", incarnation, &turn])
    }
}

impl SecretKeySet {
    /// Seals `secret` for `seal_place` under the current key. All bits of `number` must be
    /// random, since 96 of them are the nonce.
    pub(super) fn seal(
        &self,
        secret: &Secret,
        seal_place: &AssociatedData,
        number: u128,
    ) -> Result<Sealed, EngineError> {
        let key = &self.current;
        let seal = || {
            let nonce: [u8; NONCE_LEN] = number.to_be_bytes().first_chunk().copied()?;
            let mut text = secret.expose().as_bytes().to_vec();
            let (unique, aad) = (
                Nonce::assume_unique_for_key(nonce),
                Aad::from(seal_place.0.as_slice()),
            );
            cipher(key)?
                .seal_in_place_append_tag(unique, aad, &mut text)
                .ok()?;
            Some(STANDARD_NO_PAD.encode([nonce.as_slice(), &text].concat()))
        };
        let body = seal().ok_or_else(|| EngineError::internal("failed to seal a secret"))?;
        Ok(Sealed::from_text(format!("{}.{body}", key.id)))
    }

    /// Opens what was sealed for `seal_place`; `None` if it was sealed for another place or
    /// under a key that is not known.
    pub(super) fn open(&self, ciphertext: &Sealed, seal_place: &AssociatedData) -> Option<Secret> {
        let (key, body) = self.split(ciphertext.as_str())?;
        let mut body = STANDARD_NO_PAD.decode(body).ok()?;
        let (nonce, text) = body.split_at_mut_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let plain = cipher(key)?
            .open_in_place(nonce, Aad::from(seal_place.0.as_slice()), text)
            .ok()?;
        String::from_utf8(plain.to_vec()).ok().map(Secret::new)
    }

    /// The fingerprint of a text at its place: it recognises the text and reveals nothing
    /// about it.
    fn fingerprint(&self, text: &[u8], seal_place: &AssociatedData) -> String {
        let key = &self.current;
        let text = [&seal_place.0, text].concat();
        let hash = hmac::sign(&key.hmac_key(FINGERPRINT), &text);
        format!("{}.{}", key.id, STANDARD_NO_PAD.encode(hash))
    }

    /// Whether [`fingerprint`](Self::fingerprint) made this fingerprint of `text` at `seal_place`.
    fn recognises(&self, fingerprint: &str, text: &[u8], seal_place: &AssociatedData) -> bool {
        let text = [&seal_place.0, text].concat();
        self.split(fingerprint).is_some_and(|(key, hash)| {
            let hash = STANDARD_NO_PAD.decode(hash);
            hash.is_ok_and(|hash| hmac::verify(&key.hmac_key(FINGERPRINT), &text, &hash).is_ok())
        })
    }
}

/// The cipher under a secret key.
fn cipher(key: &SecretKey) -> Option<LessSafeKey> {
    let key = UnboundKey::new(&AES_256_GCM, key.derive(PURPOSE).as_ref()).ok()?;
    Some(LessSafeKey::new(key))
}

/// Refuses files in a message that is sealed, such as an answer to `auth-required`. Its files would
/// be stored unencrypted with the task.
///
/// # Errors
/// [`A2aError::InvalidParams`] naming the first such part.
pub(super) fn check_answer(message: &Message) -> Result<(), A2aError> {
    let is_file =
        |part: &Part| !matches!(part.content, PartContent::Text(_) | PartContent::Data(_));
    let Some(index) = message.parts.iter().position(is_file) else {
        return Ok(());
    };
    let why = "a message that is not kept holds text and data, and no files";
    Err(A2aError::invalid(format!("message.parts[{index}]"), why))
}

/// Seals and recognises messages that are not kept.
#[derive(Clone)]
pub(crate) struct Secrets {
    keys: SecretKeys,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn Ids>,
}

impl Secrets {
    pub(super) fn new(reader: &Reader) -> Self {
        Self {
            keys: reader.policy.secrets.clone(),
            clock: reader.clock.clone(),
            ids: reader.ids.clone(),
        }
    }

    /// Whether the client sends its last message of the task again: the same id with the
    /// same content. A record without a fingerprint has that message in its history.
    pub(in crate::engine) async fn is_repeat(
        &self,
        record: &TaskRecord,
        print: &MessagePrint,
    ) -> Result<bool, EngineError> {
        if !print.can_repeat(record) {
            return Ok(false);
        }
        if let Some(fingerprint) = record.fingerprint.as_deref() {
            // One whose key is no longer known recognises nothing.
            let keys = self.keys.keys_of(Some(fingerprint)).await?;
            let seal_place = AssociatedData::of_answer(record, record.turn);
            return Ok(keys.recognises(fingerprint, &print.bytes(), &seal_place));
        }
        Ok(last_message(record).is_some_and(|last| print.is_of(last)))
    }

    /// Seals the message that opens turn number `turn` of `record`. The fingerprint is that of
    /// `print`.
    ///
    /// # Errors
    /// [`A2aError::InvalidParams`] if it is too large.
    async fn seal_answer(
        &self,
        record: &TaskRecord,
        message: &Message,
        turn: u32,
        print: &MessagePrint,
    ) -> Result<SealedAnswer, EngineError> {
        let too_large = |size: String| {
            let why =
                format!("a message that is not kept has at most {SEALED_MAX} bytes, not {size}");
            EngineError::from(A2aError::invalid("message.parts", why))
        };
        let text = match a2a_lambda_model::stored::message_text(message) {
            Ok(text) if text.len() <= SEALED_MAX => text,
            Ok(text) => return Err(too_large(text.len().to_string())),
            Err(StoreError::TooLarge(size)) => return Err(too_large(size.to_string())),
            Err(error) => return Err(error.into()),
        };
        let seal_place = AssociatedData::of_answer(record, turn);
        let keys = self.keys.keys_of(None).await?;
        Ok(SealedAnswer {
            content: keys.seal(&Secret::new(text), &seal_place, self.ids.next())?,
            fingerprint: keys.fingerprint(&print.bytes(), &seal_place),
        })
    }

    /// Seals the message in the opening of turn number `turn` of `record`, if it is not kept: an
    /// answer to `auth-required`, or the input of a skill that keeps none. The answer to a question
    /// of the router is no input.
    ///
    /// # Errors
    /// [`A2aError::InvalidParams`] if an input has a file, or the message is too large.
    pub(super) async fn seal_opening(
        &self,
        record: &TaskRecord,
        skill: Option<SkillMetadata>,
        turn: u32,
        print: Option<&MessagePrint>,
        opening: &mut Vec<Change>,
    ) -> Result<(), EngineError> {
        let print_of = |message: &Message| match print {
            Some(print) => print.clone(),
            None => MessagePrint::of_message(message),
        };
        let is_credential = record.state() == TaskState::AuthRequired;
        let has_skill = turn == 1 || record.skill.is_some();
        let is_unkept = has_skill && skill.is_some_and(|skill| !skill.keeps_input);
        for change in opening.iter_mut() {
            match change {
                Change::Resume {
                    message, secret, ..
                }
                | Change::Queue { message, secret }
                    if is_credential =>
                {
                    let print = print_of(message);
                    *secret = Some(self.seal_answer(record, message, turn, &print).await?);
                    return Ok(());
                }
                Change::Accept { message }
                | Change::Resume { message, .. }
                | Change::Queue { message, .. }
                    if is_unkept =>
                {
                    check_answer(message)?;
                    let stand_in = message.not_kept();
                    let message = std::mem::replace(message, stand_in);
                    let print = print_of(&message);
                    return self
                        .seal_input(record, message, turn, &print, opening)
                        .await;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Seals an input, as the router made it of the message: the route keeps none.
    async fn seal_input(
        &self,
        record: &TaskRecord,
        mut message: Message,
        turn: u32,
        print: &MessagePrint,
        opening: &mut Vec<Change>,
    ) -> Result<(), EngineError> {
        let input = opening.iter_mut().find_map(|change| match change {
            Change::Pin(_, Some(route)) => route.input.take(),
            _ => None,
        });
        if let Some(input) = input {
            message.parts = vec![Part::data(input)];
        }
        let answer = self.seal_answer(record, &message, turn, print).await?;
        opening.push(Change::Seal(answer));
        Ok(())
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
        let text = ciphertext.as_str();
        let keys = self.keys.keys_of(Some(text)).await?;
        let read_again = record.progress_at().plus(secret_keys::FRESH);
        if keys.split(text).is_none() && self.clock.now() < read_again {
            let why = "the key of an answer is not known to this process";
            return Err(StoreError::Unavailable(why.to_owned()));
        }
        let secret = keys.open(ciphertext, &AssociatedData::of_answer(record, record.turn));
        Ok(secret.and_then(|text| a2a_lambda_model::stored::message_of_text(text.expose()).ok()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::{ContextId, Generation, Metadata, Subject, TenantId, Timestamp, WriteId};
    use a2a_lambda_rows::each_row;

    fn keys_of(keys: &[&str]) -> SecretKeySet {
        SecretKeySet::of(keys.iter().map(|key| key.as_bytes().to_vec()))
    }

    fn owner(tenant: &str) -> Owner {
        Owner {
            tenant: TenantId::parse(tenant).unwrap(),
            subject: Subject::parse("ann").unwrap(),
        }
    }

    fn key_id(ciphertext: &Sealed) -> &str {
        ciphertext.as_str().split_once('.').unwrap().0
    }

    #[test]
    fn a_replaced_key_still_opens_what_it_has_sealed() {
        let (task, config) = (TaskId::made_of(1), PushId::only());
        let place = AssociatedData::of_webhook(&owner("acme"), &task, &config, "token");
        let secret = Secret::new("canary");
        let before = keys_of(&["old"]).seal(&secret, &place, 7 << 100).unwrap();
        let after = keys_of(&["new", "old"]);
        assert_eq!(after.open(&before, &place), Some(secret.clone()));
        let newer = after.seal(&secret, &place, 8 << 100).unwrap();
        assert_ne!(key_id(&before), key_id(&newer));
        assert_eq!(keys_of(&["old"]).open(&newer, &place), None);
        assert_eq!(keys_of(&["new"]).open(&before, &place), None);
    }

    #[test]
    fn a_sealed_secret_opens_only_at_its_place_under_its_key() {
        let (mine, other) = (owner("acme"), owner("other"));
        let (task, another) = (TaskId::made_of(1), TaskId::made_of(2));
        let (config, second) = (PushId::only(), PushId::made_of(1));
        let place = AssociatedData::of_webhook(&mine, &task, &config, "token");
        let keys = keys_of(&["secret"]);
        let secret = Secret::new("canary");
        let sealed = keys.seal(&secret, &place, 7 << 100).unwrap();
        assert!(!sealed.as_str().contains("canary"));
        assert_eq!(keys.open(&sealed, &place), Some(secret.clone()));
        let again = keys.seal(&secret, &place, 8 << 100).unwrap();
        assert_ne!(sealed, again, "each sealing uses a new nonce");
        let rows = [
            AssociatedData::of_webhook(&other, &task, &config, "token"),
            AssociatedData::of_webhook(&mine, &another, &config, "token"),
            AssociatedData::of_webhook(&mine, &task, &second, "token"),
            AssociatedData::of_webhook(&mine, &task, &config, "credentials"),
            AssociatedData::of_answer(&record(1), 1),
        ];
        each_row(rows, |elsewhere| {
            assert_eq!(keys.open(&sealed, &elsewhere), None);
        });
        assert_eq!(keys_of(&["guess"]).open(&sealed, &place), None);
        let cut: String = sealed.as_str().chars().skip(2).collect();
        each_row(["", ".", "AAAA", "not base64!", &cut], |broken| {
            assert_eq!(
                keys.open(&Sealed::from_text(broken), &place),
                None,
                "{broken}"
            );
        });
    }

    /// The task of `acme` and `ann` in this incarnation.
    fn record(incarnation: u128) -> TaskRecord {
        TaskRecord::create(
            TaskId::made_of(1),
            owner("acme"),
            ContextId::made_of(1),
            WriteId::made_of(incarnation),
            Generation::V10,
            Metadata::new(),
            Timestamp::default(),
        )
    }

    #[test]
    fn a_sealed_answer_opens_only_in_its_turn_and_incarnation() {
        let (keys, secret) = (keys_of(&["secret"]), Secret::new("canary"));
        let own = AssociatedData::of_answer(&record(1), 2);
        let sealed = keys.seal(&secret, &own, 9 << 100).unwrap();
        assert_eq!(keys.open(&sealed, &own), Some(secret));
        for elsewhere in [
            AssociatedData::of_answer(&record(1), 1),
            AssociatedData::of_answer(&record(2), 2),
        ] {
            assert_eq!(keys.open(&sealed, &elsewhere), None);
        }
    }
}
