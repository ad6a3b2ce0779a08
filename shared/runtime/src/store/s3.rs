//! Bytes in an S3 bucket.
//!
//! Keys are server-made and never used twice, so a put is conditional: what
//! already stands under its key can only be our own earlier try.

use super::{Blobs, StoreError};
use async_trait::async_trait;
use aws_sdk_s3::Client;
use aws_sdk_s3::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_s3::primitives::ByteStream;
use bytes::Bytes;

/// Puts that meet another put of the same key (409) are tried this often.
const TRIES: usize = 4;

/// The blobs of one bucket.
#[derive(Debug, Clone)]
pub struct S3Blobs {
    client: Client,
    bucket: String,
}

/// What one try of a put came to.
enum Put {
    Stored,
    /// Something stands under the key.
    Taken,
    /// Another put of the key runs; nothing is decided.
    Racing,
}

impl S3Blobs {
    /// The blobs of `bucket`.
    #[must_use]
    pub fn new(client: Client, bucket: impl Into<String>) -> Self {
        Self {
            client,
            bucket: bucket.into(),
        }
    }

    async fn try_put(&self, key: &str, bytes: Bytes) -> Result<Put, StoreError> {
        let sent = self
            .client
            .put_object()
            .bucket(&self.bucket)
            .key(key)
            .if_none_match("*")
            .body(ByteStream::from(bytes))
            .send()
            .await;
        match sent {
            Ok(_) => Ok(Put::Stored),
            Err(error) => match status(&error) {
                Some(412) => Ok(Put::Taken),
                Some(409) => Ok(Put::Racing),
                status => Err(failed(status, &error)),
            },
        }
    }
}

/// Makes `bucket`, unless it is there already: for emulators.
///
/// # Errors
/// [`StoreError`] when the service does not answer or refuses.
pub async fn create_bucket(client: &Client, bucket: &str) -> Result<(), StoreError> {
    let made = client.create_bucket().bucket(bucket).send().await;
    match made {
        Ok(_) => Ok(()),
        Err(error) => match error.code() {
            Some("BucketAlreadyOwnedByYou" | "BucketAlreadyExists") => Ok(()),
            _ => Err(failed(status(&error), &error)),
        },
    }
}

fn status<E>(error: &SdkError<E>) -> Option<u16> {
    error
        .raw_response()
        .map(|response| response.status().as_u16())
}

/// The error of a call that S3 did not carry out.
fn failed<E: ProvideErrorMetadata>(status: Option<u16>, error: &SdkError<E>) -> StoreError {
    let code = error.code().unwrap_or("no code");
    match status {
        Some(status @ 400..=499) if !matches!(status, 408 | 429) => {
            StoreError::Refused(format!("S3 answered {status}: {code}"))
        }
        Some(status) => StoreError::Unavailable(format!("S3 answered {status}: {code}")),
        None => StoreError::Unavailable("S3 did not answer".to_owned()),
    }
}

#[async_trait]
impl Blobs for S3Blobs {
    async fn put(&self, key: &str, bytes: Bytes) -> Result<(), StoreError> {
        for _ in 0..TRIES {
            match self.try_put(key, bytes.clone()).await? {
                Put::Stored => return Ok(()),
                Put::Racing => {}
                Put::Taken => match self.get(key).await? {
                    Some(stored) if stored == bytes => return Ok(()),
                    Some(_) => {
                        return Err(StoreError::Refused(format!(
                            "other bytes stand under `{key}`"
                        )));
                    }
                    // Deleted in between; the key is free again.
                    None => {}
                },
            }
        }
        Err(StoreError::Unavailable(format!(
            "puts of `{key}` kept racing"
        )))
    }

    async fn get(&self, key: &str) -> Result<Option<Bytes>, StoreError> {
        let found = self
            .client
            .get_object()
            .bucket(&self.bucket)
            .key(key)
            .send()
            .await;
        let object = match found {
            Ok(object) => object,
            Err(error) if error.code() == Some("NoSuchKey") => return Ok(None),
            Err(error) => return Err(failed(status(&error), &error)),
        };
        let body = object.body.collect().await;
        body.map(|data| Some(data.into_bytes()))
            .map_err(|_| StoreError::Unavailable("S3 broke off".to_owned()))
    }
}
