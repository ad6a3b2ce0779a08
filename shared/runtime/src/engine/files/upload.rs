//! Uploads: files that clients send directly to the blob store.
//!
//! An order returns a URL that accepts exactly the announced bytes, and a reference.
//! The reference holds id, length and digest of the upload, so the server stores
//! nothing for an order. When a message names the upload, the object below the caller's
//! prefix confirms it.

use super::Files;
use crate::auth::Caller;
use crate::engine::error::EngineError;
use crate::engine::files::object_key;
use crate::store::{BlobReader, StoreError, UploadTerms};
use crate::task::{A2aError, Blob, Message, PartContent, Timestamp, UploadGrant, UploadOrder};
use a2a_lambda_model::store::measured_to_end;
use std::collections::BTreeMap;
use std::time::Duration;

/// How long the URL of an order is valid.
const GRANT_LIFE: Duration = Duration::from_secs(300);
/// How long an upload is kept for the message that names it.
const UPLOAD_LIFE: Duration = Duration::from_secs(24 * 3600);
/// How the URL of a part begins that names an upload.
const SCHEME: &str = "urn:a2a-lambda:upload:";
/// The digits of an id, in order (Crockford's Base32).
const DIGITS: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
/// The number of digits of an id.
const ID: usize = 26;

/// An upload as a part names it: `urn:a2a-lambda:upload:<id>:<size>:<sha256>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::engine) struct UploadReference {
    /// A ULID: 48 bits of time in milliseconds, and 80 random bits.
    id: String,
    size: u64,
    /// The digest of its bytes.
    pub(in crate::engine) sha256: String,
}

impl UploadReference {
    /// Reads the URL of a part; `None` if it does not name an upload.
    ///
    /// # Errors
    /// What is wrong with the reference.
    pub(in crate::engine) fn of(url: &str) -> Option<Result<Self, &'static str>> {
        let fields = url.strip_prefix(SCHEME)?;
        Some(Self::read(fields).ok_or("is not a reference to an upload"))
    }

    fn read(fields: &str) -> Option<Self> {
        let mut fields = fields.split(':');
        let (id, size, sha256) = (fields.next()?, fields.next()?, fields.next()?);
        let plain = size.bytes().all(|b| b.is_ascii_digit());
        let hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
        let digest = sha256.len() == 64 && sha256.bytes().all(hex);
        time_of(id)?;
        (fields.next().is_none() && plain && digest).then_some(Self {
            id: id.to_owned(),
            size: size.parse().ok()?,
            sha256: sha256.to_owned(),
        })
    }

    fn url(&self) -> String {
        let Self { id, size, sha256 } = self;
        format!("{SCHEME}{id}:{size}:{sha256}")
    }

    fn is_over(&self, now: Timestamp) -> bool {
        time_of(&self.id).is_none_or(|created_at| created_at.plus(UPLOAD_LIFE) <= now)
    }
}

impl Files {
    /// Grants the upload of one file, which a message can name later.
    ///
    /// # Errors
    /// [`A2aError::InvalidParams`] for a file that is too large;
    /// [`A2aError::RateLimited`] when the tenant has ordered the bytes of its day;
    /// [`A2aError::UnsupportedOperation`] if the blob store has no upload URLs.
    pub(crate) async fn create_upload(
        &self,
        caller: &Caller,
        order: UploadOrder,
    ) -> Result<UploadGrant, EngineError> {
        let limit = self.reader.policy.upload_max as u64;
        if order.size > limit {
            let why = format!("must be at most {limit} bytes");
            return Err(A2aError::invalid("size", why).into());
        }
        let now = self.reader.clock.now();
        self.charge_bytes(&caller.owner.tenant, order.size).await?;
        let reference = UploadReference {
            id: ulid(now, self.reader.ids.next()),
            size: order.size,
            sha256: order.sha256,
        };
        let terms = UploadTerms {
            key: &object_key::upload(&caller.owner, &reference.id),
            size: reference.size,
            sha256: &reference.sha256,
        };
        let blobs = &self.blobs;
        let Some(upload) = blobs.upload_url(&terms, now, GRANT_LIFE).await? else {
            let why = "this agent takes no uploads: send the file inside a message";
            return Err(A2aError::UnsupportedOperation { why }.into());
        };
        Ok(UploadGrant {
            url: upload.url,
            headers: upload.headers,
            expires_at: now.plus(GRANT_LIFE),
            reference: reference.url(),
            filename: order.filename,
            media_type: order.media_type,
        })
    }

    /// Replaces references to the caller's uploads by pointers to the objects. The
    /// commit that stores the message copies the bytes into the task.
    ///
    /// # Errors
    /// [`A2aError::InvalidParams`] naming the first part with a missing upload, or with one
    /// too many: all uploads of a message together must not exceed the size limit of
    /// one.
    pub(in crate::engine) async fn take_uploads(
        &self,
        caller: &Caller,
        message: &mut Message,
    ) -> Result<(), EngineError> {
        let mut blobs = BTreeMap::<String, Blob>::new();
        let mut remaining = self.reader.policy.upload_max as u64;
        for (index, part) in message.parts.iter_mut().enumerate() {
            let PartContent::Url(url) = &part.content else {
                continue;
            };
            // A reference that occurs twice is checked and counted once.
            let outcome = match (UploadReference::of(url), blobs.get(url).cloned()) {
                (None, _) => continue,
                (Some(_), Some(blob)) => Ok(blob),
                (Some(Err(why)), None) => Err(why),
                (Some(Ok(reference)), None) => match remaining.checked_sub(reference.size) {
                    Some(rest) => {
                        remaining = rest;
                        self.find_upload(caller, reference).await?
                    }
                    None => Err("brings the uploads of the message above what one may hold"),
                },
            };
            let fault = |why| A2aError::invalid(format!("message.parts[{index}]"), why);
            let blob = outcome.map_err(fault)?;
            blobs.insert(url.clone(), blob.clone());
            part.content = PartContent::Stored(blob);
        }
        Ok(())
    }

    /// The object of a reference, if size and digest match.
    async fn find_upload(
        &self,
        caller: &Caller,
        reference: UploadReference,
    ) -> Result<Result<Blob, &'static str>, EngineError> {
        if reference.is_over(self.reader.clock.now()) {
            return Ok(Err("names an upload that has expired"));
        }
        let key = object_key::upload(&caller.owner, &reference.id);
        let blobs = &self.blobs;
        // Uploads of another caller have another prefix, so they look like missing
        // ones.
        let Some(head) = none_if_denied(blobs.head(&key).await)? else {
            return Ok(Err("names an upload that was never received"));
        };
        let sha256 = match head.sha256 {
            Some(sha256) => sha256,
            None => match none_if_denied(blobs.open(&key).await)? {
                Some(mut bytes) => digest_of(&mut bytes).await?,
                None => return Ok(Err("names an upload that was never received")),
            },
        };
        if head.size != reference.size || sha256 != reference.sha256 {
            return Ok(Err("names an upload of other bytes"));
        }
        Ok(Ok(Blob {
            key,
            size: reference.size,
            sha256,
            upload: Some(reference.id),
        }))
    }
}

/// What was received under a key that a client names. S3 refuses a key without an object if
/// the role may not list the bucket.
fn none_if_denied<T>(result: Result<Option<T>, StoreError>) -> Result<Option<T>, StoreError> {
    match result {
        Err(StoreError::Denied(_)) => Ok(None),
        result => result,
    }
}

async fn digest_of(bytes: &mut BlobReader) -> Result<String, StoreError> {
    let measure = measured_to_end(bytes).await;
    // A read that breaks off is an error of the store, not of the client.
    let measure = measure.map_err(|error| StoreError::Unavailable(error.to_string()))?;
    Ok(measure.sha256)
}

/// The ULID of time `now` and random number `number`.
fn ulid(now: Timestamp, number: u128) -> String {
    let millis = u128::try_from(now.as_millis().max(0)).unwrap_or_default();
    // A ULID has 80 random bits behind its 48 bits of time.
    let bits = (millis << 80) | (number >> 48);
    (0..ID)
        .rev()
        .filter_map(|index| DIGITS.get(usize::try_from((bits >> (5 * index)) & 31).ok()?))
        .map(|digit| char::from(*digit))
        .collect()
}

/// When a ULID was made; `None` for another id.
fn time_of(id: &str) -> Option<Timestamp> {
    if id.len() != ID {
        return None;
    }
    let mut bits: u128 = 0;
    for digit in id.bytes() {
        let value = DIGITS.iter().position(|symbol| *symbol == digit)?;
        bits = bits.checked_mul(32)? | value as u128;
    }
    let millis = i64::try_from(bits >> 80).ok()?;
    // 26 digits hold 130 bits, but a ULID has 128: its first digit is at most 7.
    (id.as_bytes().first()? <= &b'7').then(|| Timestamp::from_millis(millis))
}

#[cfg(test)]
mod tests;
