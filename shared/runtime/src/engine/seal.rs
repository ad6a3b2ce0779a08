//! Secrets at rest: encrypted and authenticated with a key made of
//! `A2A_SECRET_KEY`, and bound to the place they belong to.
//!
//! AES-256-GCM. The key is derived for this purpose alone, so that no page
//! token or other use of the secret says anything about it. The nonce is random
//! and 96 bits wide, which is good for the 2^32 secrets a key may seal.

use crate::task::{Owner, PushId, Sealed, Secret, TaskId};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use hmac::{Hmac, Mac as _};
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use sha2::Sha256;

/// What the key is for.
const PURPOSE: &[u8] = b"a2a-lambda push secrets 1";

/// Seals and opens the secrets of webhooks.
pub(super) struct Sealer {
    key: Option<LessSafeKey>,
}

/// Where a secret belongs: it opens nowhere else.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) owner: &'a Owner,
    pub(super) task: &'a TaskId,
    pub(super) config: &'a PushId,
    /// Which secret of the webhook it is.
    pub(super) name: &'static str,
}

impl Place<'_> {
    /// Lengths stand before the names, so that no two places feed the same.
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for field in [
            self.owner.tenant.as_str(),
            self.owner.subject.as_str(),
            self.task.as_str(),
            self.config.as_str(),
            self.name,
        ] {
            bytes.extend((field.len() as u64).to_be_bytes());
            bytes.extend(field.as_bytes());
        }
        bytes
    }
}

impl Sealer {
    /// The sealer of all functions that share `secret`.
    pub(super) fn new(secret: &[u8]) -> Self {
        let derived = Hmac::<Sha256>::new_from_slice(secret).map(|mut mac| {
            mac.update(PURPOSE);
            mac.finalize().into_bytes()
        });
        let key = derived
            .ok()
            .and_then(|bytes| UnboundKey::new(&AES_256_GCM, &bytes).ok());
        Self {
            key: key.map(LessSafeKey::new),
        }
    }

    /// Seals `secret` for `place`; `number` is random. `None`, never.
    pub(super) fn seal(&self, secret: &Secret, place: Place<'_>, number: u128) -> Option<Sealed> {
        let nonce: [u8; NONCE_LEN] = number.to_be_bytes().first_chunk().copied()?;
        let mut text = secret.expose().as_bytes().to_vec();
        self.key
            .as_ref()?
            .seal_in_place_append_tag(
                Nonce::assume_unique_for_key(nonce),
                Aad::from(place.bytes()),
                &mut text,
            )
            .ok()?;
        let whole = [nonce.as_slice(), &text].concat();
        Some(Sealed::stored(STANDARD_NO_PAD.encode(whole)))
    }

    /// What was sealed for `place`; `None` if it was not, or under another key.
    pub(super) fn open(&self, sealed: &Sealed, place: Place<'_>) -> Option<Secret> {
        let mut whole = STANDARD_NO_PAD.decode(sealed.as_str()).ok()?;
        let (nonce, text) = whole.split_at_mut_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let plain = self
            .key
            .as_ref()?
            .open_in_place(nonce, Aad::from(place.bytes()), text)
            .ok()?;
        String::from_utf8(plain.to_vec()).ok().map(Secret::new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::{Subject, TenantId};

    #[test]
    fn a_sealed_secret_opens_at_its_place_under_its_key_and_nowhere_else() {
        let owner = |tenant: &str| Owner {
            tenant: TenantId::parse(tenant).unwrap(),
            subject: Subject::parse("ann").unwrap(),
        };
        let (mine, other) = (owner("acme"), owner("other"));
        let (task, another) = (TaskId::made_of(1), TaskId::made_of(2));
        let (config, second) = (PushId::only(), PushId::made_of(1));
        let place = Place {
            owner: &mine,
            task: &task,
            config: &config,
            name: "token",
        };
        let sealer = Sealer::new(b"secret");
        let secret = Secret::new("canary");
        let sealed = sealer.seal(&secret, place, 7 << 100).unwrap();
        assert!(!sealed.as_str().contains("canary"));
        assert_eq!(sealer.open(&sealed, place), Some(secret.clone()));
        let again = sealer.seal(&secret, place, 8 << 100).unwrap();
        assert_ne!(sealed, again, "each sealing has a nonce of its own");
        for elsewhere in [
            Place {
                owner: &other,
                ..place
            },
            Place {
                task: &another,
                ..place
            },
            Place {
                config: &second,
                ..place
            },
            Place {
                name: "credentials",
                ..place
            },
        ] {
            assert_eq!(sealer.open(&sealed, elsewhere), None);
        }
        assert_eq!(Sealer::new(b"guess").open(&sealed, place), None);
        let cut: String = sealed.as_str().chars().skip(2).collect();
        for broken in ["", "AAAA", "not base64!", &cut] {
            assert_eq!(
                sealer.open(&Sealed::stored(broken), place),
                None,
                "{broken}"
            );
        }
    }
}
